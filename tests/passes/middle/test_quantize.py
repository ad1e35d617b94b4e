"""FakeQuantize in steps: as a clamped whole number, and from there back to the range of the output."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.text.printer import print_graph
from aot.ir.types import Array
from aot.opset.elementwise.binary import AutoBroadcast
from aot.passes.middle.decompose import decompose
from aot.passes.run import run_passes
from aot.runtime.abi import DType
from tests.passes.check import Make, after, graph_of

STEPS = {"Subtract", "Divide", "Round", "Clamp", "Multiply", "Add"}
BYTES = ["Clamp", "Convert", "Convert"]
SHAPE = (2, 3, 5)


def quantize(limits: tuple[object, ...], levels: int = 256, dtype: DType = DType.F32) -> Make:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.FakeQuantize(x, *(b.const(v, dtype) for v in limits), levels=levels)

    return make


def text(make: Make) -> str:
    graph = graph_of(make, (2, 3))
    run_passes(graph, [decompose])
    return print_graph(graph)


def test_unsigned_range() -> None:
    assert text(quantize((0, 6, 0, 6), 4)) == dedent("""\
        graph model(%x0: f32[2,3]) {
          %Constant_7 = const<f32[] 2.0>
          %Divide_8: f32[2,3] = Divide(%x0, %Constant_7)
          %Round_9: f32[2,3] = Round(%Divide_8)
          %Clamp_10: f32[2,3] = Clamp<max=3.0>(%Round_9)
          %Convert_11: u8[2,3] = Convert<destination_type=u8>(%Clamp_10)
          %Convert_12: f32[2,3] = Convert(%Convert_11)
          %Constant_13 = const<f32[] 2.0>
          %FakeQuantize_5: f32[2,3] = Multiply(%Convert_12, %Constant_13)
          %y0: f32[2,3] = Result(%FakeQuantize_5)
        }
        """)


def test_signed_range() -> None:
    assert text(quantize((-1, 3, -2, 6), 5)) == dedent("""\
        graph model(%x0: f32[2,3]) {
          %Constant_7 = const<f32[] -1.0>
          %Subtract_8: f32[2,3] = Subtract(%x0, %Constant_7)
          %Constant_9 = const<f32[] 1.0>
          %Divide_10: f32[2,3] = Divide(%Subtract_8, %Constant_9)
          %Round_11: f32[2,3] = Round(%Divide_10)
          %Clamp_12: f32[2,3] = Clamp<max=4.0>(%Round_11)
          %Convert_13: u8[2,3] = Convert<destination_type=u8>(%Clamp_12)
          %Convert_14: f32[2,3] = Convert(%Convert_13)
          %Constant_15 = const<f32[] 1.0>
          %Subtract_16: f32[2,3] = Subtract(%Convert_14, %Constant_15)
          %Constant_17 = const<f32[] 2.0>
          %FakeQuantize_5: f32[2,3] = Multiply(%Subtract_16, %Constant_17)
          %y0: f32[2,3] = Result(%FakeQuantize_5)
        }
        """)


@pytest.mark.parametrize(
    ("limits", "levels", "last"),
    [
        ((0.0, 3.9, 0.0, 3.9), 256, [*BYTES, "Multiply"]),
        ((-4.0, 3.9, -128, 127), 256, [*BYTES, "Subtract", "Multiply"]),
        ((-1.28, 1.27, -1.28, 1.27), 256, [*BYTES, "Subtract", "Multiply"]),
        ((-1.27, 1.27, -1.27, 1.27), 255, [*BYTES, "Subtract", "Multiply"]),
        ((-3.0, 3.0, -3.0, 3.0), 256, [*BYTES, "Multiply", "Add"]),  # zero lies between two steps
        ((0.5, 2.9, 0.5, 2.9), 16, [*BYTES, "Multiply", "Add"]),
        ((0.5, 3.0, 0.5, 3.0), 16, [*BYTES, "Subtract", "Multiply"]),  # three steps above zero
        ((-1.5, 2.5, 0.25, 1.0), 2, [*BYTES, "Multiply", "Add"]),
        ((-3.0, -1.0, 0.0, 2.0), 1000, ["Clamp", "Multiply"]),
    ],
)
def test_shift_and_scale_are_left_out_if_neutral(limits: tuple[float, ...], levels: int, last: list[str]) -> None:
    found = after([decompose], quantize(limits, levels), SHAPE)
    assert found[-len(last) :] == last
    assert ("Subtract" in found[:1]) == (limits[0] != 0)


def test_limits_of_each_channel() -> None:
    low, high = np.array([[-4], [-2], [0]], np.float32), np.array([[3.5], [2], [4]], np.float32)
    found = after([decompose], quantize((low, high, low, high), 16), SHAPE)
    assert "FakeQuantize" not in found and "Add" in found
    unsigned = after([decompose], quantize((0 * low, high, 0, high), 16), SHAPE)
    assert unsigned == ["Divide", "Round", *BYTES, "Multiply"]


def test_run_time_sizes() -> None:
    assert "FakeQuantize" not in after([decompose], quantize((-1, 3, -2, 6), 5), ("n=3", 4))


@pytest.mark.parametrize(
    "limits",
    [
        (1.0, 1.0, 0.0, 1.0),
        (2.0, -2.0, 0.0, 1.0),
        (-2.0, 2.0, 1.0, 0.0),
        (-2.0, 2.0, 1.0, 1.0),
        (-np.inf, 2.0, 0.0, 1.0),
        (-2.0, 2.0, 0.0, np.inf),
        (-2.0, np.nan, 0.0, 1.0),
        (np.array([[-1], [3], [0]], np.float32), 3.0, 0.0, 1.0),  # one channel is out of order
    ],
    ids=str,
)
def test_limits_that_make_no_steps(limits: tuple[object, ...]) -> None:
    graph = graph_of(quantize(limits), SHAPE)
    run_passes(graph, [decompose])
    assert STEPS.isdisjoint(n.type for n in graph.order())


def test_limits_that_nobody_knows() -> None:
    def make(b: Builder, x: OutPort, low: OutPort) -> OutPort:
        return b.FakeQuantize(x, low, *(b.const(v, DType.F32) for v in (5, -5, 5)), levels=16)

    assert after([decompose], make, SHAPE, (1,)) == ["FakeQuantize"]


def test_limits_that_widen_the_data_are_left_alone() -> None:
    low = np.full((4, 1, 1, 1), -1.0)
    assert after([decompose], quantize((low, 1.0, -1.0, 1.0)), (3, 5)) == ["FakeQuantize"]


def test_the_other_broadcast_is_left_alone() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        limits = [b.const(np.linspace(v, v + 1, 3).reshape(3, 1), DType.F32) for v in (-3, 2, -1, 1)]
        return b.FakeQuantize(x, *limits, levels=5, auto_broadcast=AutoBroadcast.PDPD)

    assert after([decompose], make, (2, 3, 1)) == ["FakeQuantize"]


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F64])
def test_other_floats_are_left_alone(dtype: DType) -> None:
    graph = graph_of(quantize((-1, 3, -2, 6), 5, dtype), (2, 3), dtype=dtype)
    run_passes(graph, [decompose])
    assert "Clamp" not in [n.type for n in graph.order()]


def test_data_outside_of_the_range() -> None:
    """At the limits, beyond them, and without end; NaN has the lowest level."""
    x = np.array([-1, -1.0001, 3, 3.0001, -1e30, 1e30, -np.inf, np.inf, np.nan, 0.0, -0.0], np.float32)
    found: list[Array] = []
    for passes in ([], [decompose]):
        graph = graph_of(quantize((-1, 3, -2, 6), 5), x.shape)
        run_passes(graph, passes)
        found += interpret(graph, [x])
    np.testing.assert_array_equal(found[1], found[0])
    assert found[1][np.isnan(x)] == -2


def test_ties_are_those_of_the_reference_where_steps_are_exact() -> None:
    x = (np.arange(-20, 60) / 8).astype(np.float32)
    graph = graph_of(quantize((-1, 3, -1, 3), 17), x.shape)
    expected = interpret(graph, [x])[0]
    run_passes(graph, [decompose])
    np.testing.assert_array_equal(interpret(graph, [x])[0], expected)
