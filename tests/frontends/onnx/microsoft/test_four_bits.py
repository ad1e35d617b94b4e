"""Weights of 4 bits in ONNX take half a byte in the library, and mean what NumPy says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot import CompileOptions
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.opset.elementwise.conversion import LEVELS
from aot.runtime.abi import DType

DEEP, WIDE, BLOCK = 256, 288, 32
CLOSE = 1e-6  # of the largest sum
RNG = np.random.default_rng(0)
SCALES = RNG.uniform(0.01, 0.1, (DEEP // BLOCK, WIDE)).astype(np.float32)
ZEROS = RNG.integers(0, 16, (DEEP // BLOCK, WIDE))


def dequantized(kind: int, numbers: np.ndarray, zeros: np.ndarray | None) -> list[onnx.NodeProto | onnx.TensorProto]:
    def tensor(name: str, a: np.ndarray) -> onnx.TensorProto:
        return helper.make_tensor(name, kind, a.shape, a.reshape(-1).tolist())

    held = [tensor("q", numbers), onnx.numpy_helper.from_array(SCALES, "s")]
    held += [tensor("z", zeros)] if zeros is not None else []
    names = [t.name for t in held]
    nodes = [
        helper.make_node("DequantizeLinear", names, ["w"], axis=0, block_size=BLOCK),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    return [*nodes, *held]


def packed(rows: np.ndarray) -> np.ndarray:
    return (rows[..., 0::2] | rows[..., 1::2] << 4).astype(np.uint8)


def matmul_nbits(numbers: np.ndarray, zeros: np.ndarray | None) -> list[onnx.NodeProto | onnx.TensorProto]:
    arrays = {"q": packed(numbers.T.reshape(WIDE, -1, BLOCK)), "s": SCALES.T.reshape(-1).copy()}
    arrays |= {"z": packed(zeros.T).reshape(-1)} if zeros is not None else {}
    attributes = {"K": DEEP, "N": WIDE, "bits": 4, "block_size": BLOCK, "domain": "com.microsoft"}
    node = helper.make_node("MatMulNBits", ["x", *arrays], ["y"], **attributes)
    return [node, *(onnx.numpy_helper.from_array(a, name) for name, a in arrays.items())]


NBITS = ("MatMulNBits", "MatMulNBits with zeros")
TYPES = {"i4": TensorProto.INT4, "f4e2m1": TensorProto.FLOAT4E2M1}


@pytest.mark.parametrize("kind", ["i4", "u4", "u4 with zeros", "f4e2m1", *NBITS])
def test_they_take_half_a_byte(kind: str, tmp_path: Path) -> None:
    low = -8 if kind == "i4" else 0
    numbers, zeros = RNG.integers(low, low + 16, (DEEP, WIDE)), ZEROS if kind.endswith("zeros") else None
    if kind == "f4e2m1":
        numbers = np.array(LEVELS[DType.F4E2M1])[numbers]
    if kind in NBITS:
        parts = matmul_nbits(numbers, zeros)
    else:
        parts = dequantized(TYPES.get(kind, TensorProto.UINT4), numbers, zeros)
    nodes = [p for p in parts if isinstance(p, onnx.NodeProto)]
    held = [p for p in parts if isinstance(p, onnx.TensorProto)]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, s]) for n, s in (("x", DEEP), ("y", WIDE)))
    sets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], held), opset_imports=sets, ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    made = stages(tmp_path / "m.onnx", CompileOptions(level=None, target="x86-64-v3", activations="f32"))
    assert made.program.constant_bytes < DEEP * WIDE // 2 + (5 * SCALES.size) * 1.4 + 4096
    data = RNG.standard_normal((2, DEEP)).astype(np.float32)
    default = 8 if kind == "MatMulNBits" else 0
    points = default if zeros is None else np.repeat(zeros, BLOCK, 0)
    expected = data.astype(np.float64) @ ((numbers - points) * np.repeat(SCALES.astype(np.float64), BLOCK, 0))
    np.testing.assert_allclose(in_memory(made.built)(data)[0], expected, rtol=0, atol=CLOSE * np.abs(expected).max())
