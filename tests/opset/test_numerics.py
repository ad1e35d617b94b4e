"""The lines of docs/use/compile/numerics.md, compiled: what integers, roundings and NaN give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from aot.compilation.driver import compile_model
from aot.ir.op import Op
from aot.ir.types import Array
from aot.opset.detection.suppression.rotated_suppression import NMSRotated
from aot.opset.detection.suppression.suppression import NonMaxSuppression
from aot.opset.elementwise.activation import Elu, HSigmoid, HSwish, Relu, Sigmoid
from aot.opset.elementwise.binary import Add, Divide, FloorMod, Maximum, Minimum, Mod, Multiply, Power, Subtract
from aot.opset.elementwise.comparison import Equal, Less, NotEqual
from aot.opset.elementwise.conversion import Convert, converted
from aot.opset.elementwise.unary import Acos, Exp, Round, Rounding, Sign, Sqrt
from aot.opset.image.colour import I420toRGB, RGBtoNV12
from aot.opset.products.pooling import AvgPool
from aot.opset.reduction.reduction import ReduceMean, ReduceSum
from aot.opset.reduction.scan import CumSum
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.properties.compiled import network
from tests.properties.drawing import Trial

ROOT = Path(__file__).parent.parent.parent
NAN, INF = np.nan, np.inf
AWAY = Rounding.HALF_AWAY_FROM_ZERO
Line = tuple[Op, list[Array], Any]


def array(kind: str, *values: float) -> Array:
    return np.array(values, kind)


LINES: list[Line] = [
    (Add(), [array("i1", 127), array("i1", 1)], [-128]),
    (Subtract(), [array("u2", 0), array("u2", 1)], [65535]),
    (Multiply(), [array("i4", 65536), array("i4", 65536)], [0]),
    (Divide(), [array("i4", -7, 7, 7), array("i4", 2, -2, 2)], [-4, -4, 3]),
    (Divide(m_pythondiv=False), [array("i4", -7, 7, 7), array("i4", 2, -2, 2)], [-3, -3, 3]),
    (FloorMod(), [array("i4", -7, 7), array("i4", 3, -3)], [2, -2]),
    (Mod(), [array("i4", -7, 7), array("i4", 3, -3)], [-1, 1]),
    *((op, [array("i4", 5, -5), array("i4", 0, 0)], [0, 0]) for op in (Divide(), Mod(), FloorMod())),
    (Power(), [array("i4", 2, -1, 1), array("i4", -1, -3, -5)], [0, -1, 1]),
    (Exp(), [array("i4", 1, -1, 2**31 - 1)], [3, 0, 2**31 - 1]),
    (Acos(), [array("i4", 2, 1, 0)], [0, 0, 2]),
    (Sigmoid(), [array("i4", 0, 1, -1)], [0, 1, 0]),
    (HSigmoid(), [array("u1", 0, 1, 3)], [0, 1, 1]),
    (HSwish(), [array("i1", -1, 1, 5)], [0, 1, 5]),
    (Elu(0.7), [array("i4", 3, -1, -9)], [3, 0, -1]),
    (ReduceMean(), [array("i4", -1, -2), np.array([0])], -1),
    (AvgPool(kernel=(2,)), [np.array([[[2, 3, 4]]], "i4")], [[[2, 4]]]),
    (Convert(DType.U8), [array("f4", 300.7, -3, 2.9, NAN)], [255, 0, 2, 0]),
    (Convert(DType.I32), [array("f4", 1e20, -1e20, -2.9, NAN)], [2**31 - 1, -(2**31), -2, 0]),
    (Convert(DType.U8), [array("i4", 300, -1)], [44, 255]),
    (Round(), [array("f4", 2.5, 3.5, -2.5)], [2, 4, -2]),
    (Round(AWAY), [array("f4", 2.5, 3.5, -2.5)], [3, 4, -3]),
    (ReduceSum(), [array("f2", 2048, 1, 1), np.array([0])], 2050),
    (Relu(), [array("f4", NAN, -INF, INF)], [NAN, 0, INF]),
    *((op, [array("f4", NAN, 1), array("f4", 1, NAN)], [NAN, NAN]) for op in (Maximum(), Minimum())),
    (Equal(), [array("f4", NAN), array("f4", NAN)], [False]),
    (Less(), [array("f4", NAN), array("f4", 1)], [False]),
    (NotEqual(), [array("f4", NAN), array("f4", NAN)], [True]),
    (Sign(), [array("f4", NAN, -2, 0)], [NAN, -1, 0]),
    (Sqrt(), [array("f4", -1, 4)], [NAN, 2]),
]
FIXED = {ReduceMean: frozenset({1}), ReduceSum: frozenset({1})}


def test_edge_values_give_the_documented_results() -> None:
    trials = [Trial(op, arrays, FIXED.get(type(op), frozenset())) for op, arrays, _ in LINES]
    graph, fed = network(trials)
    results = compile_model(graph, CompileOptions(level=None), threads=1)(*fed)
    for n, (op, arrays, expected) in enumerate(LINES):
        np.testing.assert_array_equal(np.asarray(results[n]), expected, f"{op} of {arrays}")


@pytest.mark.parametrize(("op", "boxes"), [(NonMaxSuppression(), 4), (NMSRotated(), 5)])
def test_scores_equal_to_the_threshold(op: Op, boxes: int) -> None:
    places = np.arange(2, dtype=np.float32)[None, :, None] * 50 + np.array([0, 0, 5, 5, 0], np.float32)[:boxes]
    limits = [np.array(5), np.array(0.5, np.float32), np.array(0.25, np.float32)]
    inputs = [places.astype(np.float32), np.array([[[0.25, 0.5]]], np.float32), *limits]
    graph, fed = network([Trial(op, inputs, frozenset({2, 3, 4}))])
    assert np.asarray(compile_model(graph, CompileOptions(level=None), threads=1)(*fed)[0]).tolist() == [[0, 0, 1]]


def test_page_names_tests_that_are_there() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs" / "use" / "compile" / "numerics.md").read_text()))
    assert named and all((ROOT / name).is_file() for name in named)


def test_short_integers_of_files_wrap() -> None:
    held = np.array([-1, -8, 7], ml_dtypes.int4)
    assert converted(held, DType.U8).tolist() == [255, 248, 7]
    assert converted(held, DType.I32).tolist() == [-1, -8, 7]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_long_cumulative_sums_do_not_lose_small_terms(exclusive: bool, reverse: bool) -> None:
    x = np.full(200_000, 0.1, np.float32)
    wide = np.cumsum(x, dtype=np.float64)
    right = (np.insert(wide, 0, 0)[:-1] if exclusive else wide)[:: -1 if reverse else 1]
    graph, fed = network([Trial(CumSum(exclusive, reverse), [x], frozenset())])
    found = compile_model(graph, CompileOptions(level=None), threads=1)(*fed)[0]
    np.testing.assert_allclose(found, right, rtol=1e-5)  # one chain of f32 errs by 1e-3


def test_colours_between_two_integers_are_rounded_from_sums_of_f32() -> None:
    """A few sums lie exactly between two levels: a contracted multiplication gives the other one."""
    generator = np.random.default_rng(0)
    planes = [generator.integers(0, 256, (1, 512, 512, 1), np.uint8)]
    planes += [generator.integers(0, 256, (1, 256, 256, 1), np.uint8) for _ in range(2)]
    back = generator.integers(0, 256, (1, 256, 256, 3), np.uint8)
    trials = [Trial(I420toRGB(), [*planes], frozenset()), Trial(RGBtoNV12(False), [back], frozenset())]
    graph, fed = network(trials)
    colours, light, _ = compile_model(graph, CompileOptions(level=None), threads=1)(*fed).values()
    y, u, v = (p.astype(np.float32)[..., 0].repeat(n, 1).repeat(n, 2) for p, n in zip(planes, (1, 2, 2), strict=True))
    f, du, dv = np.float32, u - 128, v - 128
    brightness = (y - 16) * f(1.164)
    sums = (brightness + dv * f(1.596), brightness + du * f(-0.391) + dv * f(-0.813), brightness + du * f(2.018))
    r, g, b = np.moveaxis(back.astype(np.float32), -1, 0)
    for found, total in (
        *((np.moveaxis(colours, -1, 0)[n], total) for n, total in enumerate(sums)),
        (light[..., 0], r * f(0.257) + g * f(0.504) + b * f(0.098) + f(16)),
    ):
        clipped = np.clip(total, 0, 255)
        np.testing.assert_array_equal(found, np.floor(clipped) + (clipped % 1 >= 0.5))
