"""Transposes meet and cancel; the graph between them is turned around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.compilation.recorded_options import recorded_options
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from aot.passes.middle.fold_constants import fold_constants
from aot.passes.middle.layout.change_layout import change_layout
from aot.passes.middle.layout.interface_layout import InterfaceLayout
from aot.passes.rewrite import RuleSet
from aot.passes.rules import shape
from aot.passes.run import run_passes
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from tests.cases import LOOSE
from tests.passes.check import after, graph_of, operations, values, weights

PASSES = [RuleSet("shape", shape.RULES), change_layout, RuleSet("shape", shape.RULES), fold_constants]
TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
Between = Callable[[Builder, OutPort], OutPort]
PADS: dict[str, Any] = {"pads_begin": (1, 1), "pads_end": (1, 1), "strides": (1, 1), "dilations": (1, 1)}


def ints(b: Builder, *numbers: int) -> OutPort:
    return b.const(numbers, DType.I64)


def moved(b: Builder, x: OutPort, order: tuple[int, ...]) -> OutPort:
    return b.Transpose(x, ints(b, *order))


def f32(b: Builder, *dims: int) -> OutPort:
    return b.const(weights(*dims), DType.F32)


def nhwc(between: Between) -> Callable[[Builder, OutPort], OutPort]:
    """Build the layers between two convolutions of a model made for NHWC."""
    return lambda b, x: moved(b, between(b, moved(b, x, TO_NHWC)), TO_NCHW)


def split(b: Builder, x: OutPort) -> OutPort:
    node = b.Split(x, b.const(-1, DType.I64), num_splits=2, outputs=2).node
    return b.Concat(b.Relu(node.out_port(1)), node.out_port(0), axis=-1)


def strided(b: Builder, x: OutPort) -> OutPort:
    return b.StridedSlice(x, ints(b, 0, 4, 1), ints(b, 0, 1, 4), ints(b, 1, -2, 1), end_mask=(1, 0, 0))


CARRIED: dict[str, tuple[list[str], Between]] = {
    "relu": (["Relu"], lambda b, x: b.Relu(x)),
    "bias": (["Add"], lambda b, x: b.Add(x, f32(b, 4))),
    "full constant": (["Multiply"], lambda b, x: b.Multiply(f32(b, 1, 5, 6, 4), x)),
    "slope by channel": (["PRelu"], lambda b, x: b.PRelu(x, f32(b, 5))),
    "slope at the end": (["PRelu"], lambda b, x: b.PRelu(x, f32(b, 4))),
    "softmax": (["Softmax"], lambda b, x: b.Softmax(x, axis=3)),
    "mvn": (["MVN"], lambda b, x: b.MVN(x, ints(b, 1, 2), eps=1e-5)),
    "mean": (["ReduceMean", "Multiply"], lambda b, x: b.Multiply(x, b.ReduceMean(x, ints(b, 1, 2), keep_dims=True))),
    "pad": (["Pad"], lambda b, x: b.Pad(x, ints(b, 0, 1, 2, 0), ints(b, 0, 0, 1, 0), 0.0)),
    "slice": (["Slice"], lambda b, x: b.Slice(x, ints(b, 1, 0), ints(b, 4, 3), ints(b, 2, 1), ints(b, 1, -1))),
    "slice of the first": (["Slice"], lambda b, x: b.Slice(x, ints(b, 0, 1), ints(b, 2, 4), ints(b, 1, 1))),
    "strided slice": (["StridedSlice"], strided),
    "split": (["Split", "Relu", "Concat"], split),
    "tile": (["Tile"], lambda b, x: b.Tile(x, ints(b, 1, 2, 1, 3))),
    "reverse": (["Reverse"], lambda b, x: b.Reverse(x, ints(b, 1, 3))),
    "cumulative sum": (["CumSum"], lambda b, x: b.CumSum(x, b.const(2, DType.I64))),
    "gather": (["Gather"], lambda b, x: b.Gather(x, ints(b, 3, 0, 1), b.const(-1, DType.I64))),
    "largest": (["TopK"], lambda b, x: b.TopK(x, b.const(2, DType.I64), axis=3, outputs=2)),
    "blocks": (["SpaceToBatch"], lambda b, x: b.SpaceToBatch(x, ints(b, 1, 1, 3, 1), *[ints(b, 0, 0, 0, 0)] * 2)),
    "quantize": (["FakeQuantize"], lambda b, x: b.FakeQuantize(x, f32(b, 4), 3.0, -1.0, f32(b, 4), levels=16)),
}


@pytest.mark.parametrize("name", CARRIED)
def test_between_convolutions(name: str) -> None:
    expected, between = CARRIED[name]
    assert after(PASSES, nhwc(between), (2, 4, 5, 6), tolerance=LOOSE) == expected


def gate(b: Builder, x: OutPort) -> OutPort:
    """Channels scaled by their mean, whose reduction drops axes."""
    mean = b.Sigmoid(b.ReduceMean(x, ints(b, 1, 2)))
    return b.Multiply(x, b.Reshape(mean, ints(b, 2, 1, 1, 4)))


def of_shape(b: Builder, x: OutPort) -> OutPort:
    height = b.Convert(b.Gather(b.ShapeOf(x), ints(b, 1), b.const(0, DType.I64)), destination_type=DType.F32)
    return b.Multiply(b.Relu(x), height)


def one_row(b: Builder, x: OutPort) -> OutPort:
    """A row of all images, taken out by one index, beside all of them."""
    row = b.Gather(x, b.const(1, DType.I64), b.const(1, DType.I64))
    return b.Add(b.Relu(x), b.ReduceMax(row, ints(b, 0, 1, 2)))


@pytest.mark.parametrize(
    ("between", "sizes"),
    [(gate, (2, 4, 5, 6)), (of_shape, (2, 4, "h=5", 6)), (one_row, (2, 4, 5, 6))],
    ids=["gate", "shape", "row"],
)
def test_readers_take_any_order(between: Between, sizes: tuple[int | str, ...]) -> None:
    """No Transpose is left that moves the whole tensor: reductions, shapes and single slices read the new order."""
    left = after(PASSES, nhwc(between), sizes, tolerance=LOOSE)
    assert left.count("Transpose") == (1 if between is one_row else 0)  # a row [batch, width, channels] is turned


def test_vector_along_channels_is_carried() -> None:
    def make(b: Builder, x: OutPort, bias: OutPort) -> OutPort:
        return nhwc(lambda b, y: b.Relu(b.Add(y, bias)))(b, x)

    assert after(PASSES, make, (1, 4, 5, 6), (4,)) == ["Unsqueeze", "Add", "Relu"]


def test_run_time_sizes() -> None:
    assert after(PASSES, nhwc(lambda b, x: b.Add(x, f32(b, 4))), ("batch=2", 4, "h=5", 6)) == ["Add"]


def test_transposes_around_a_residual_sum_vanish() -> None:
    def make(b: Builder, x: OutPort, y: OutPort) -> OutPort:
        left, right = moved(b, x, TO_NHWC), moved(b, y, TO_NHWC)
        return moved(b, b.Relu(b.Add(left, b.Sigmoid(right))), TO_NCHW)

    assert after(PASSES, make, (1, 4, 5, 6), (1, 4, 5, 6)) == ["Sigmoid", "Add", "Relu"]


def test_it_turns_only_where_that_saves_transposes() -> None:
    def heads(b: Builder, x: OutPort) -> tuple[OutPort, OutPort]:
        y = b.Relu(moved(b, x, TO_NHWC))
        return b.Sigmoid(y), b.Tanh(y)

    assert after(PASSES, heads, (1, 4, 5, 6)) == ["Transpose", "Relu", "Sigmoid", "Tanh"]


def test_squeeze_and_excitation() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = moved(b, x, TO_NHWC)
        pooled = b.ReduceMean(y, ints(b, 1, 2), keep_dims=True)
        inner = b.Convolution(moved(b, pooled, TO_NCHW), f32(b, 4, 4, 1, 1))
        return moved(b, b.Multiply(y, moved(b, b.Sigmoid(inner), TO_NHWC)), TO_NCHW)

    assert after(PASSES, make, (1, 4, 5, 6), tolerance=LOOSE) == ["ReduceMean", "Convolution", "Sigmoid", "Multiply"]


def test_head_that_drops_pixels() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.ReduceMean(b.Relu(moved(b, x, TO_NHWC)), ints(b, 1, 2))

    assert after(PASSES, make, (2, 4, 5, 6)) == ["Relu", "ReduceMean"]


def test_attention_keeps_its_transposes() -> None:
    def make(b: Builder, q: OutPort, k: OutPort) -> OutPort:
        left, right = moved(b, q, (0, 2, 1, 3)), moved(b, k, (0, 2, 3, 1))
        return b.MatMul(b.Multiply(left, 0.5), right)

    assert after(PASSES, make, (1, 7, 2, 4), (1, 7, 2, 4), tolerance=LOOSE).count("Transpose") == 2


MOVES: list[tuple[list[str], Between]] = [
    ([], lambda b, x: moved(b, moved(b, x, TO_NHWC), TO_NCHW)),
    (["Transpose"], lambda b, x: moved(b, moved(b, x, TO_NHWC), (0, 2, 1, 3))),
    (["Transpose"], lambda b, x: moved(b, x, TO_NCHW)),
    (["Reshape"], lambda b, x: moved(b, b.Unsqueeze(b.Reshape(x, ints(b, 2, 120)), ints(b, 1)), (0, 2, 1))),
    ([], lambda b, x: b.Squeeze(b.Unsqueeze(x, ints(b, 1)), ints(b, 1))),
    ([], lambda b, x: b.Reshape(b.Reshape(x, ints(b, 8, 30)), ints(b, 2, 4, 5, 6))),
    (["Reshape"], lambda b, x: b.Reshape(b.Reshape(x, ints(b, 8, 30)), ints(b, 2, -1))),
    (["MatMul"], lambda b, x: b.MatMul(x, moved(b, f32(b, 7, 6), (1, 0)))),
    (["MatMul"], lambda b, x: b.MatMul(moved(b, x, (0, 1, 3, 2)), f32(b, 5, 7))),
    (["Add"], lambda b, x: b.Add(b.Broadcast(f32(b, 6), ints(b, 5, 6)), x)),
    ([], lambda b, x: b.Concat(x, axis=1)),
    (["Concat"], lambda b, x: b.Concat(b.Concat(x, x, axis=1), x, axis=-3)),
    ([], lambda b, x: b.Pad(x, ints(b, 0, 0, 0, 0), ints(b, 0, 0, 0, 0), 0.0)),
    ([], lambda b, x: b.Tile(x, ints(b, 1, 1, 1, 1))),
    (
        ["Relu", "Tile", "Transpose"],  # the repeats add a dimension
        lambda b, x: moved(b, b.Tile(b.Relu(x), ints(b, 3, 1, 1, 1, 1)), (1, 2, 3, 4, 0)),
    ),
    ([], lambda b, x: b.Identity(x)),
]


def test_computed_targets_are_written_out() -> None:
    def heads(b: Builder, x: OutPort) -> OutPort:
        sizes = b.ShapeOf(x)
        split = b.Reshape(x, b.Concat(b.StridedSlice(sizes, *(ints(b, n) for n in (0, 2, 1))), ints(b, 2, 3), axis=0))
        return b.Transpose(split, ints(b, 0, 2, 1, 3))

    assert after(PASSES, heads, ("batch=2", "n=5", 6)) == ["Reshape", "Transpose"]


@pytest.mark.parametrize(("expected", "make"), MOVES, ids=range(len(MOVES)))
def test_transposes_move_through_movements(expected: list[str], make: Between) -> None:
    assert after(PASSES, make, (2, 4, 5, 6), tolerance=LOOSE) == expected


def test_interface_in_another_layout() -> None:
    graph = graph_of(lambda b, x: b.Convolution(x, f32(b, 2, 4, 3, 3), **PADS), (1, 4, 5, 6))
    x = values((1, 4, 5, 6))[0]
    expected = interpret(graph, [x])[0]
    run_passes(graph, [InterfaceLayout((("x0", "NHWC"),))])
    assert operations(graph) == ["Transpose", "Convolution"]
    assert graph.parameters[0].out_port(0).shape == (1, 5, 6, 4)
    np.testing.assert_array_equal(interpret(graph, [np.ascontiguousarray(x.transpose(TO_NHWC))])[0], expected)


def test_interface_layout_must_fit() -> None:
    graph = graph_of(lambda b, x: b.Relu(x), (1, 4, 5))
    with pytest.raises(UsageError, match="no input 'z', the inputs are x0"):
        run_passes(graph, [InterfaceLayout((("z", "NHWC"),))])
    with pytest.raises(UsageError, match=r"NHWC does not fit input 'x0' of shape \[1,4,5\]"):
        run_passes(graph, [InterfaceLayout((("x0", "NHWC"),))])


def test_the_change_can_be_disabled() -> None:
    """Then the Transposes of a NHWC network stay, and so do its results; the library tells it."""

    def network(b: Builder, x: OutPort) -> OutPort:
        y = b.Convolution(moved(b, x, TO_NCHW), f32(b, 5, 4, 3, 3), **PADS)
        return moved(
            b, b.Convolution(moved(b, b.Relu(moved(b, y, TO_NHWC)), TO_NCHW), f32(b, 4, 5, 3, 3), **PADS), TO_NHWC
        )

    x = values((1, 5, 6, 4))
    made = [
        stages(graph_of(network, (1, 5, 6, 4)), CompileOptions(level=None, disable_layout_change=disabled))
        for disabled in (False, True)
    ]
    counts = [operations(m.optimized).count("Transpose") for m in made]
    assert counts == [2, 4]
    results = [np.asarray(in_memory(m.built, 1)(x)[0]) for m in made]
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)
    assert [recorded_options(m.options, 0).get("disable_layout_change") for m in made] == [None, True]
