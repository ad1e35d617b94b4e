"""Windows over channels with what makes their input and what reads their result: a strip of rows at a time."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Group
from aot.codegen.schedules.row_strips import rows_of
from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.opset.products.pooling import MaxPool
from aot.options import CompileOptions
from tests.lowering.check import Make, calls, compiled, conv, weights
from tests.passes.check import graph_of, values

V3 = "x86-64-v3"  # an L2 of 512 KB, and no L3 near
TALL = (1, 6, 100, 26)  # 32 channels of it take more than half of that


def depthwise(
    b: Builder,
    x: OutPort,
    size: int = 3,
    *,
    stride: int = 1,
    begin: tuple[int, int] = (1, 1),
    end: tuple[int, int] = (1, 1),
    dilation: int = 1,
) -> OutPort:
    w = weights(b, x.type.static_shape[1], 1, 1, size, size)
    steps = {"strides": (stride, stride), "dilations": (dilation, dilation)}
    return b.GroupConvolution(x, w, **steps, pads_begin=begin, pads_end=end)


def expanded(b: Builder, x: OutPort, channels: int = 32) -> OutPort:
    """Not 0 where `x` is, so that halos differ from what lies beside them."""
    made = conv(b, x, channels, 1, begin=(0, 0))
    return b.Clamp(b.Add(made, weights(b, 1, channels, 1, 1)), min=0.0, max=6.0)


def projected(b: Builder, x: OutPort, channels: int = 6) -> OutPort:
    return conv(b, x, channels, 1, begin=(0, 0), seed=1)


def inverted(b: Builder, x: OutPort) -> OutPort:
    """MobileNetV2's block."""
    return b.Add(projected(b, b.Relu(depthwise(b, expanded(b, x)))), x)


def strips(made: Compilation) -> list[Group]:
    works = [w for step in made.steps.steps for w in step.works]
    return [w for w in works if isinstance(w, Group) and w.name == "strips"]


def test_a_block_with_its_residual_is_one_kernel() -> None:
    made = compiled(lambda b, x: inverted(b, b.Relu(x)), TALL, target=V3)
    (group,) = strips(made)
    assert [t.name for t in group.temps] == ["read'", "between'"]
    assert calls(made) == 2  # with the input's rectifier, which lays it out


@pytest.mark.parametrize(
    "windows",
    [
        lambda b, x: depthwise(b, x, stride=2),
        lambda b, x: depthwise(b, x, begin=(0, 1), end=(2, 0)),
        lambda b, x: depthwise(b, x, begin=(0, 0), end=(0, 0)),
        lambda b, x: depthwise(b, x, 5, stride=2, begin=(1, 2), end=(2, 2)),
        lambda b, x: depthwise(b, x, stride=2, dilation=2, begin=(2, 2), end=(2, 2)),
        lambda b, x: b(MaxPool((2, 2), (1, 1), (1, 1), (3, 3)), b.Subtract(x, 7.0)),
    ],
    ids=["stride", "above", "inside", "5x5", "dilation", "maximum"],
)
def test_windows_become_one_group_of_strips(windows: Make) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return projected(b, windows(b, expanded(b, x, 40)))

    assert len(strips(compiled(make, (2, *TALL[1:]), target=V3))) == 1


def test_strips_need_no_product_at_the_end() -> None:
    """A result of the network, and one that two read, are written by the windows."""
    (group,) = strips(compiled(lambda b, x: depthwise(b, expanded(b, x)), TALL, target=V3))
    assert [t.name for t in group.temps] == ["read'"]

    def twice(b: Builder, x: OutPort) -> OutPort:
        made = depthwise(b, expanded(b, x))
        return b.Add(projected(b, made), projected(b, b.Sigmoid(made)))

    assert len(strips(compiled(twice, TALL, target=V3))) == 1


def test_the_last_strip_is_shorter() -> None:
    """101 is a prime."""
    made = compiled(lambda b, x: inverted(b, b.Relu(x)), (1, 6, 101, 26), target=V3)
    (group,) = strips(made)
    assert 1 < rows_of(group, Target.parse(V3)) < 101


def test_values_that_fit_the_cache_are_not_grouped() -> None:
    assert not strips(compiled(inverted, (1, 6, 40, 26), target=V3))


def test_values_with_two_consumers_stay_in_memory() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        wide = expanded(b, x)
        return b.Add(depthwise(b, wide), b.Sigmoid(wide))

    assert not strips(compiled(make, TALL, target=V3))


def test_windows_that_would_make_too_much_twice_stay_apart() -> None:
    """So few rows fit that a quarter of them would be made again."""

    def make(b: Builder, x: OutPort) -> OutPort:
        return depthwise(b, expanded(b, x, 64), 5, begin=(2, 2), end=(2, 2))

    assert not strips(compiled(make, TALL, target=V3))


def test_full_windows_stay_apart() -> None:
    """Each of their products reads all channels: that is much work for what is read."""
    assert not strips(compiled(lambda b, x: conv(b, expanded(b, x), 8, 5, begin=(2, 2)), TALL, target=V3))


def test_targets_with_a_near_l3_have_no_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Target, "near_l3", True)
    assert not strips(compiled(inverted, TALL, target=V3))


def test_bits_are_those_of_any_number_of_threads() -> None:
    graph, inputs = graph_of(inverted, TALL), values(TALL)
    built = stages(graph, CompileOptions(level=None, target=V3)).built
    one, three = (in_memory(built, threads=n)(*inputs)[0] for n in (1, 3))
    np.testing.assert_array_equal(one, three)
