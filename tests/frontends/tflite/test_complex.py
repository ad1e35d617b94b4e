"""Complex tensors between a Fourier transform and what is real again: moved, added, multiplied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from aot.frontends.unsupported import UnconvertedError
from tests.frontends.onnx.models import converted, run
from tests.frontends.tflite.models import Net, Op, Tensor, constant, model
from tests.frontends.tflite.test_reader import saved

X = np.random.default_rng(6).standard_normal((2, 4, 8)).astype(np.float32)
SPECTRUM = np.fft.rfft2(X)


def c(*values: Any) -> Tensor:
    return constant(f"c{values}", np.int32(values[0] if len(values) == 1 else values))


# operator, options, constants behind the spectrum [2, 4, 5], result
MOVED: dict[str, tuple[str, str, dict[str, Any], list[Tensor], Callable[[Any], Any]]] = {
    "reshape": ("RESHAPE", "Reshape", {"NewShape": [8, 5]}, [c(8, 5)], lambda s: s.reshape(8, 5)),
    "expand": ("EXPAND_DIMS", "ExpandDims", {}, [c(1)], lambda s: s[:, None]),
    "slice": ("SLICE", "Slice", {}, [c(0, 1, 2), c(2, 2, 3)], lambda s: s[:, 1:3, 2:]),
    "strided": (
        "STRIDED_SLICE",
        "StridedSlice",
        {},
        [c(0, 3, 0), c(2, 0, 5), c(1, -1, 2)],
        lambda s: s[:, 3:0:-1, ::2],
    ),
    "transpose": ("TRANSPOSE", "Transpose", {}, [c(2, 0, 1)], lambda s: s.transpose(2, 0, 1)),
    "gather": ("GATHER", "Gather", {"Axis": 2}, [c(4, 0)], lambda s: s[:, :, [4, 0]]),
    "tile": ("TILE", "Tile", {}, [c(1, 2, 1)], lambda s: np.tile(s, (1, 2, 1))),
    "pad": ("PAD", "Pad", {}, [c([[0, 0], [1, 0], [0, 2]])], lambda s: np.pad(s, ((0, 0), (1, 0), (0, 2)))),
    "reverse": ("REVERSE_V2", "ReverseV2", {}, [c([1])], lambda s: s[:, ::-1]),
    "sum": ("SUM", "Reducer", {}, [c([1])], lambda s: s.sum(1)),
    "negated": ("NEG", "Neg", {}, [], lambda s: -s),
    "multiplied": ("MUL", "Mul", {}, [], lambda s: s * (0.5 - 2j)),
    "added": ("ADD", "Add", {}, [], lambda s: s + (0.5 - 2j)),
    "joined": ("CONCATENATION", "Concatenation", {"Axis": 2}, [], lambda s: np.concatenate([s, s], 2)),
    "packed": ("PACK", "Pack", {"Axis": 0, "ValuesCount": 2}, [], lambda s: np.stack([s, s])),
}


def network(kind: str, options: str, fields: dict[str, Any], more: list[Tensor], shape: list[int]) -> bytes:
    """RFFT2D, an operator, and its result's real and imaginary parts and absolute values."""
    half = Tensor("number", "complex64", [], np.complex64(0.5 - 2j).tobytes())
    tensors = [Tensor("x", "f32", X.shape), c(4, 8), Tensor("s", "complex64", [2, 4, 5]), half, *more]
    given = [2, *range(4, 4 + len(more))]
    given += {"MUL": [3], "ADD": [3], "CONCATENATION": [2], "PACK": [2]}.get(kind, [])
    first = len(tensors)
    tensors += [Tensor("moved", "complex64", shape), *(Tensor(n, "f32", shape) for n in ("re", "im", "abs"))]
    parts = [Op(k, [first], [first + 1 + i]) for i, k in enumerate(("REAL", "IMAG", "COMPLEX_ABS"))]
    ops = [Op("RFFT2D", [0, 1], [2], "Rfft2d"), Op(kind, given, [first], options, fields), *parts]
    return model(Net(tensors, ops, [0], [first + 1, first + 2, first + 3]))


@pytest.mark.parametrize("name", MOVED)
def test_complex_tensors_are_moved_and_computed_with(name: str, tmp_path: Path) -> None:
    *operator, expected = MOVED[name]
    right = expected(SPECTRUM)
    found = run(saved(tmp_path, network(*operator, list(right.shape))), X)
    for got, wanted in zip(found, (right.real, right.imag, np.abs(right)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_compiled_spectrogram_with_a_squeeze(tmp_path: Path) -> None:
    tensors = [Tensor("x", "f32", [1, 1, 16]), c(1, 16), Tensor("s", "complex64", [1, 1, 9])]
    tensors += [Tensor("flat", "complex64", [9]), Tensor("y", "f32", [9])]
    ops = [
        Op("RFFT2D", [0, 1], [2]),
        Op("SQUEEZE", [2], [3], "Squeeze", {"SqueezeDims": [0, 1]}),
        Op("COMPLEX_ABS", [3], [4]),
    ]
    x = X.reshape(-1)[:16].reshape(1, 1, 16)
    found = aot.compile_model(saved(tmp_path, model(Net(tensors, ops, [0], [4]))))(x)[0]
    np.testing.assert_allclose(found, np.abs(np.fft.rfft(x[0, 0])), rtol=1e-4, atol=1e-5)


def test_complex_outputs_are_refused_by_name(tmp_path: Path) -> None:
    tensors = [Tensor("x", "f32", X.shape), c(4, 8), Tensor("s", "complex64", [2, 4, 5])]
    file = saved(tmp_path, model(Net(tensors, [Op("RFFT2D", [0, 1], [2])], [0], [2])))
    with pytest.raises(UnconvertedError, match="outputs must be tensors, got complex numbers"):
        converted(file)


@pytest.mark.parametrize("kind", ["REDUCE_MAX", "RELU", "EQUAL"])
def test_operations_of_real_numbers_alone_refuse_complex_ones(kind: str, tmp_path: Path) -> None:
    more = [c([1])] if kind == "REDUCE_MAX" else []
    with pytest.raises(UnconvertedError, match="complex numbers are not supported"):
        converted(saved(tmp_path, network(kind, "", {}, more, [2, 4, 5])))
