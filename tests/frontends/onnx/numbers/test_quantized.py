"""A small convolutional network as ONNX Runtime's quantiser leaves it, compiled, against ONNX Runtime."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import aot
from aot.compilation.driver import stages
from aot.options import CompileOptions
from tests.frontends.onnx.models import Array, Numbers, model, save
from tests.frontends.onnx.oracle import expected

quantization = pytest.importorskip("onnxruntime.quantization")

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
f32 = Numbers(5).f32
INPUT = (1, 3, 16, 16)


def network(folder: Path) -> Path:
    """Convolutions with a residual and a pooling, and two products."""
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], name="c0", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c0"], ["r0"], name="r0"),
        helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"], name="c1", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["r0", "c1"], ["a"], name="a"),
        helper.make_node("Relu", ["a"], ["r1"], name="r1"),
        helper.make_node("MaxPool", ["r1"], ["m"], name="m", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["m", "w2", "b2"], ["c2"], name="c2", group=8, strides=[2, 2]),
        helper.make_node("Sigmoid", ["c2"], ["s"], name="s"),
        helper.make_node("Concat", ["s", "c2"], ["j"], name="j", axis=1),
        helper.make_node("GlobalAveragePool", ["j"], ["p"], name="p"),
        helper.make_node("Flatten", ["p"], ["f"], name="f"),
        helper.make_node("MatMul", ["f", "w3"], ["h"], name="h"),
        helper.make_node("Add", ["h", "b3"], ["i"], name="i"),
        helper.make_node("Gemm", ["i", "w4", "b4"], ["y"], name="g", transB=1),
    ]
    held = {
        "w0": f32(8, 3, 3, 3, size=0.2),
        "b0": f32(8, size=0.1),
        "w1": f32(8, 8, 3, 3, size=0.1),
        "b1": f32(8, size=0.1),
        "w2": f32(8, 1, 3, 3, size=0.3),
        "b2": f32(8, size=0.1),
        "w3": f32(16, 12, size=0.3),
        "b3": f32(12),
        "w4": f32(10, 12, size=0.3),
        "b4": f32(10),
    }
    return save(folder, model(nodes, {"x": (np.float32, INPUT)}, ["y"], held))


def activations(folder: Path) -> Path:
    """Convolutions with SiLU, of which ONNX Runtime quantises the sigmoid, too, and with hard swish."""
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], name="c0"),
        helper.make_node("Sigmoid", ["c0"], ["s"], name="s"),
        helper.make_node("Mul", ["c0", "s"], ["m"], name="m"),
        helper.make_node("Conv", ["m", "w1", "b0"], ["c1"], name="c1"),
        helper.make_node("HardSigmoid", ["c1"], ["h"], name="h", alpha=1 / 6),
        helper.make_node("Mul", ["c1", "h"], ["y"], name="y"),
    ]
    held = {"w0": f32(16, 3, 1, 1, size=0.5), "b0": f32(16, size=0.1), "w1": f32(16, 16, 1, 1, size=0.2)}
    return save(folder, model(nodes, {"x": (np.float32, INPUT)}, ["y"], held))


class Samples(quantization.CalibrationDataReader):
    """Inputs by which the quantiser finds ranges."""

    def __init__(self) -> None:
        self.left = [{"x": f32(*INPUT)} for _ in range(8)]

    def get_next(self) -> dict[str, Array] | None:
        return self.left.pop() if self.left else None


def static(folder: Path, network: Callable[[Path], Path] = network, **options: Any) -> Path:
    made = folder / "quantised.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantization.quantize_static(network(folder), made, Samples(), **options)
    return made


def levels(path: Path) -> Iterator[tuple[Array, Array]]:
    """Return the results of the compiled library and of ONNX Runtime for four inputs, in f32."""
    compiled = aot.compile_model(path, threads=1)
    for _ in range(4):
        x = f32(*INPUT)
        yield np.asarray(compiled(x)[0]), expected(path, x)[0]


U8, I8 = quantization.QuantType.QUInt8, quantization.QuantType.QInt8
FORMS = quantization.QuantFormat


@pytest.mark.parametrize("form", [FORMS.QDQ, FORMS.QOperator], ids=["qdq", "qoperator"])
@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
def test_statically_quantized_networks_agree_with_onnx_runtime(tmp_path: Path, form: Any, per_channel: bool) -> None:
    """Outputs are whole levels; a level may differ where a number lies in the middle of two.

    Weights have 7 bits: products of 8 overflow in ONNX Runtime on machines without VNNI.
    """
    types = {"activation_type": U8, "weight_type": I8, "reduce_range": True}
    path = static(tmp_path, quant_format=form, per_channel=per_channel, **types)
    for found, wanted in levels(path):
        step = np.abs(np.diff(np.unique(wanted))).min()
        assert np.abs(found - wanted).max() <= 1.01 * step


@pytest.mark.parametrize("types", [(U8, I8), (I8, I8)], ids=["u8", "i8"])
def test_activations_between_levels_agree_with_onnx_runtime(tmp_path: Path, types: tuple[Any, Any]) -> None:
    path = static(tmp_path, activations, activation_type=types[0], weight_type=types[1], reduce_range=True)
    assert stages(path, CompileOptions(target="native")).groups.count("lookup(") >= 2
    for found, wanted in levels(path):
        step = np.abs(np.diff(np.unique(wanted))).min()
        assert np.abs(found - wanted).max() <= 2.01 * step  # of two layers
        assert (found != wanted).mean() < 0.01


def test_dynamically_quantized_networks_agree_with_onnx_runtime(tmp_path: Path) -> None:
    made = tmp_path / "quantised.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantization.quantize_dynamic(network(tmp_path), made, weight_type=U8)
    for found, wanted in levels(made):
        np.testing.assert_allclose(found, wanted, atol=0.02 * np.abs(wanted).max())
