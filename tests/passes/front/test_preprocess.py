"""Pre-processing: channels reversed, means subtracted, divided by scales; folded into the convolution behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aot
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.options.texts import channels_of
from aot.passes.middle.fold_constants import fold_constants
from aot.passes.middle.layout.preprocess import MeanImage, Preprocess
from aot.passes.rewrite import RuleSet
from aot.passes.rules import algebra, conv
from aot.passes.run import run_passes
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from tests.cases import LOOSE
from tests.passes.check import after, graph_of, operations, values, weights

RULES = [fold_constants, RuleSet("rules", (*algebra.RULES, *conv.RULES)), fold_constants]
MEAN, SCALE = (1.5, -2.0, 0.25), (2.0, 4.0, -0.5)
KINDS = {"Convolution": (4, 3, 3, 3), "GroupConvolution": (3, 2, 1, 3, 3)}
IMAGE = (2, 3, 6, 5)


def convolved(kind: str, pad: int) -> Any:
    def make(b: Builder, x: OutPort) -> OutPort:
        held = b.const(weights(*KINDS[kind]), DType.F32)
        attrs: dict[str, Any] = {
            "pads_begin": (pad, pad),
            "pads_end": (pad, pad),
            "strides": (1, 1),
            "dilations": (1, 1),
        }
        return getattr(b, kind)(x, held, **attrs)

    return make


def relu(b: Builder, x: OutPort) -> OutPort:
    return b.Relu(x)


def both(b: Builder, x: OutPort, y: OutPort) -> tuple[OutPort, OutPort]:
    return b.Relu(x), b.Relu(y)


def prepared(x: Array, axis: int = 1) -> Array:
    shape = [3 if i == axis else 1 for i in range(x.ndim)]
    return (np.flip(x, axis) - np.reshape(MEAN, shape)) / np.reshape(SCALE, shape)


def changed(graph: Graph, **options: Any) -> list[str]:
    run_passes(graph, [Preprocess(**options), *RULES])
    return operations(graph)


@pytest.mark.parametrize(
    ("kind", "pad", "left"),
    [
        ("Convolution", 0, ["Convolution", "Add"]),
        ("Convolution", 1, ["Add", "Convolution"]),
        ("GroupConvolution", 0, ["Add", "Multiply", "Gather", "GroupConvolution"]),
    ],
)
def test_convolutions_take_all_but_a_mean_before_padding(kind: str, pad: int, left: list[str]) -> None:
    graph = graph_of(convolved(kind, pad), IMAGE)
    x = values(IMAGE)[0]
    expected = interpret(graph, [prepared(x).astype(np.float32)])[0]
    found = changed(graph, mean=(("x0", MEAN),), scale=((0, SCALE),), reverse=("",))
    assert sorted(found) == sorted(left)
    np.testing.assert_allclose(interpret(graph, [x])[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [1, 3])
def test_channels_are_dimension_1_or_the_last_one(axis: int) -> None:
    shape = (2, 3, 4, 5) if axis == 1 else (2, 4, 5, 3)
    graph = graph_of(relu, shape)
    x = values(shape)[0]
    changed(graph, mean=(("x0", MEAN),), scale=(("x0", SCALE),), reverse=("x0",))
    np.testing.assert_allclose(interpret(graph, [x])[0], np.maximum(prepared(x, axis), 0), rtol=1e-5, atol=1e-6)


def test_one_number_is_for_all_inputs_of_floats() -> None:
    graph = graph_of(both, (2, 3), (4,))
    changed(graph, mean=(("", (1.0,)),))
    found = interpret(graph, [np.full((2, 3), 3, np.float32), np.full(4, 3, np.float32)])
    assert [float(y.max()) for y in found] == [2, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": (("z", (1.0,)),)}, "--mean: no input 'z', the inputs are x0"),
        ({"mean": ((3, (1.0,)),)}, "no input 3"),
        ({"mean": (("x0", (1.0, 2.0)),)}, r"2 numbers do not fit input 'x0' of shape \[2,3,6,5\]"),
        ({"scale": (("x0", (1.0, 0.0, 1.0)),)}, "finite numbers but 0"),
        ({"mean": (("x0", (float("nan"),)),)}, "finite numbers"),
        ({"mean": (("x0", (1.0,)), (0, (2.0,)))}, "given once"),
        ({"reverse": ("z",)}, "--reverse-channels: no input 'z'"),
    ],
)
def test_numbers_must_fit_the_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        changed(graph_of(relu, IMAGE), **options)


def test_integers_and_networks_without_images_are_refused() -> None:
    with pytest.raises(UsageError, match="the input must have floats, got 'x0' of u8"):
        changed(graph_of(relu, IMAGE, dtype=DType.U8), mean=((0, (1.0,)),))
    with pytest.raises(UsageError, match="an input of rank 4 with 3 channels, got x0"):
        changed(graph_of(relu, (2, 4, 6, 5)), reverse=("",))
    with pytest.raises(UsageError, match="must be fixed"):
        changed(graph_of(relu, (2, "c=4", 6, 5)), reverse=("x0",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.5", (("", (127.5,)),)),
        ("1,2,3", (("", (1.0, 2.0, 3.0)),)),
        ("[1,2,3],[4]", ((0, (1.0, 2.0, 3.0)), (1, (4.0,)))),
        ("(1,2,3)", ((0, (1.0, 2.0, 3.0)),)),
        ("image[123.675, 116.28, 103.53], depth[1e2]", (("image", (123.675, 116.28, 103.53)), ("depth", (100.0,)))),
    ],
)
def test_texts_of_numbers(text: str, expected: Any) -> None:
    assert channels_of(text, "mean") == expected


@pytest.mark.parametrize("text", ["x[1", "x[]", "x[1],", "[1][2]", "x=1", "x[a]", "", "x[1]]"])
def test_wrong_texts_of_numbers_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="mean: INPUT"):
        channels_of(text, "mean")


@pytest.mark.parametrize("given", [(("x", 1.0),), (("x", ()),), ((1.5, (1.0,)),), (("x", ("1",)),), ["x"]])
def test_wrong_options_are_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="mean must be a tuple of pairs"):
        CompileOptions(mean=given)


def test_shifts_of_computed_tensors_stay() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return convolved("Convolution", 0)(b, b.Add(b.Relu(x), b.const(weights(1, 3, 1, 1), DType.F32)))

    assert after(RULES, make, IMAGE, tolerance=LOOSE) == ["Relu", "Add", "Convolution"]


def test_orders_of_channels_that_are_no_permutation_stay() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        moved = b.Gather(x, b.const(np.array([0, 0, 1]), DType.I64), b.const(np.array(1), DType.I64))
        return convolved("Convolution", 0)(b, moved)

    assert after(RULES, make, IMAGE, tolerance=LOOSE) == ["Gather", "Convolution"]


def test_compiled_networks_hold_it() -> None:
    graph = graph_of(convolved("Convolution", 1), IMAGE)
    x = values(IMAGE)[0]
    expected = interpret(graph, [prepared(x).astype(np.float32)])[0]
    given: Any = {"mean": {"x0": MEAN}, "scale": {"x0": SCALE}, "reverse_channels": ["x0"], "layouts": {"x0": "NHWC"}}
    made = aot.compile_model(graph, **given)
    found = made(np.ascontiguousarray(x.transpose(0, 2, 3, 1)))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def image(channels: int = 3) -> Array:
    return np.arange(channels * 8 * 9, dtype=np.float32).reshape(channels, 8, 9)


@pytest.mark.parametrize(("offsets", "row", "column"), [((), 1, 2), ((2, 0), 2, 0)])
def test_the_part_of_an_image_under_the_input_is_subtracted(offsets: tuple[int, ...], row: int, column: int) -> None:
    graph = graph_of(relu, IMAGE)
    changed(graph, image=MeanImage(image, offsets), reverse=("",))
    x = values(IMAGE)[0]
    part = image()[:, row : row + 6, column : column + 5]
    np.testing.assert_array_equal(interpret(graph, [x])[0], np.maximum(np.flip(x, 1) - part, 0))


UNFIT: list[tuple[Any, tuple[int, ...], Any, str]] = [
    ((), (2, 3, 9, 5), {}, "as large as the input, got 8 by 9 for 9 by 5"),
    ((3, 0), IMAGE, {}, "from row 3, column 0"),
    ((), (2, 4, 6, 5), {}, "with 3 channels, rows and columns"),
    ((), (3, 6, 5), {}, "with 3 channels, rows and columns"),
    ((), IMAGE, {"mean": (("", (1.0,)),)}, "got --mean, too"),
]


@pytest.mark.parametrize(("offsets", "shape", "options", "reason"), UNFIT, ids=[row[3] for row in UNFIT])
def test_images_that_do_not_fit(offsets: Any, shape: tuple[int, ...], options: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        changed(graph_of(relu, shape), image=MeanImage(image, offsets), **options)
