"""Small ONNX models for tests, and what ONNX Runtime says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from aot.frontends import front_passes, read_model
from aot.ir.graph import Graph
from aot.ir.interpret import interpret

Array = NDArray[Any]


class Numbers:
    """Arrays of random numbers, the same in each run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def f32(self, *shape: int, size: float = 1.0) -> Array:
        return (self.rng.standard_normal(shape) * size).astype(np.float32)

    def u8(self, *shape: int) -> Array:
        return self.rng.integers(0, 256, shape).astype(np.uint8)

    def i8(self, *shape: int) -> Array:
        return self.rng.integers(-128, 128, shape).astype(np.int8)

    def i7(self, *shape: int) -> Array:
        """For weights: ONNX Runtime adds two products in 16 bits on machines without VNNI, which 8 bits overflow."""
        return self.rng.integers(-64, 64, shape).astype(np.int8)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Array | tuple[Any, ...]],
    outputs: list[str],
    constants: dict[str, Array] | None = None,
    opset: int = 17,
    domain: str = "",
    **more: Any,
) -> onnx.ModelProto:
    """`inputs`: arrays that have the inputs' types, or (dtype, shape)."""
    infos = []
    for name, given in inputs.items():
        dtype, shape = (given.dtype, given.shape) if isinstance(given, np.ndarray) else given
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
    results = [onnx.ValueInfoProto(name=o) for o in outputs]  # types are found by inference
    held = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "test", infos, results, held)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, **more)


def save(folder: Path, made: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def converted(path: Path, seed: int | None = None) -> Graph:
    """The graph after the front passes."""
    graph = read_model(path)
    for run in front_passes(seed):
        run(graph)
    return graph


def run(path: Path, *inputs: Array, seed: int | None = None) -> list[Array]:
    """Outputs by the references of the opset."""
    return interpret(converted(path, seed), inputs)
