"""QUANTIZE and DEQUANTIZE of numbers that f32 does not hold."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import floor
from pathlib import Path

import numpy as np
import pytest

import aot
from tests.frontends.onnx.models import run
from tests.frontends.tflite.models import Net, Op, Tensor, model
from tests.frontends.tflite.test_reader import saved

TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32}
FACTORS = {"i8": (1365, 1), "u8": (1365, 1), "i16": (1365, 1), "i32": (3, 1)}  # products beyond 2^24


def exact(x: np.ndarray, factor: Fraction, kind: str) -> list[int]:
    """x factor, to the nearest number of a type, halves away from zero."""
    limits = np.iinfo(TYPES[kind])
    products = [factor * int(v) for v in x]
    rounded = [floor(abs(p) + Fraction(1, 2)) * (1 if p >= 0 else -1) for p in products]
    return [min(max(v, int(limits.min)), int(limits.max)) for v in rounded]


def numbers(kind: str) -> np.ndarray:
    limits = np.iinfo(TYPES[kind])
    ends = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 17, 101]
    wide = [(1 << 24) + 1, (1 << 24) + 3, -(1 << 24) - 1, 700_000_001] if kind == "i32" else []
    return np.array([*ends, *wide], TYPES[kind])


def file_of(kind: str, output: str, scales: tuple[float, float], x: np.ndarray, operation: str = "QUANTIZE") -> bytes:
    quantized = Tensor("x", kind, x.shape, scales=[scales[0]], zeros=[0])
    after = Tensor("y", output, x.shape, scales=[] if output == "f32" else [scales[1]])
    return model(Net([quantized, after], [Op(operation, [0], [1])], [0], [1]))


@pytest.mark.parametrize(("kind", "output"), [*product(TYPES, TYPES)])
@pytest.mark.parametrize("divided", [False, True])
def test_quantize_of_integers_is_exact(kind: str, output: str, divided: bool, tmp_path: Path) -> None:
    """For all types, at numbers where one rounding and the two of LiteRT agree."""
    scales, x = (1, 128) if divided else FACTORS[kind], numbers(kind)
    found = run(saved(tmp_path, file_of(kind, output, scales, x)), x)[0]
    assert found.tolist() == exact(x, Fraction(*scales), output)


def test_numbers_that_leave_32_bits_saturate(tmp_path: Path) -> None:
    x = np.array([-32768, -2147, 2, 2148, 32767], np.int16)
    compiled = aot.compile_model(saved(tmp_path, file_of("i16", "i32", (1_000_000, 1), x)))
    assert compiled(x)[0].tolist() == [-(1 << 31), -2_147_000_000, 2_000_000, (1 << 31) - 1, (1 << 31) - 1]


def test_numbers_of_32_bits_are_rounded_once(tmp_path: Path) -> None:
    """(x - zero) scale in f32: the nearest to the exact product."""
    x = np.random.default_rng(5).integers(-(1 << 31), 1 << 31, 500).astype(np.int32)
    found = run(saved(tmp_path, file_of("i32", "f32", (0.037, 1), x, "DEQUANTIZE")), x)[0]
    np.testing.assert_array_equal(found, (x * np.float64(np.float32(0.037))).astype(np.float32))


def test_quantize_gives_numbers_of_32_and_of_4_bits(tmp_path: Path) -> None:
    x = np.float32([-1e30, -3, 0.4, 2**24 + 2, 1e30])
    for kind, wanted in (
        ("i32", [-(1 << 31), -4, 1, 22369624, (1 << 31) - 1]),
        ("i4", [-8, -4, 1, 7, 7]),
    ):
        tensors = [Tensor("x", "f32", x.shape), Tensor("y", kind, x.shape, scales=[0.75])]
        found = run(saved(tmp_path, model(Net(tensors, [Op("QUANTIZE", [0], [1])], [0], [1]))), x)[0]
        assert found.tolist() == wanted
