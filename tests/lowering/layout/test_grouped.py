"""Convolutions in many small groups: lanes over several groups, shuffled out of one vector, where these fill it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from aot.compilation.compilation import Compilation
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from tests.lowering.check import compiled, conv, weights


def network(
    side: tuple[int, ...],
    groups: int,
    width: int,
    *,
    inner: int = 0,
    taps: int = 3,
    stride: int = 1,
    dilation: int = 1,
    dtype: DType = DType.F32,
    target: str = "native",
    batch: int = 1,
) -> Compilation:
    """A grouped convolution between two plain ones; `inner` channels of a group give `width`."""
    inner = inner or width
    n = len(side)

    def make(b: Builder, x: OutPort) -> OutPort:
        y = plain(b, x, groups * inner)
        w = weights(b, groups, width, inner, *[taps] * n)
        w = w if dtype is DType.F32 else b.Convert(w, destination_type=dtype)
        pads = [dilation * (taps - 1) // 2] * n
        steps, apart = [stride] * n, [dilation] * n
        y = b.GroupConvolution(y, w, strides=steps, pads_begin=pads, pads_end=pads, dilations=apart)
        return plain(b, b.Relu(y), 8)

    def plain(b: Builder, x: OutPort, channels: int) -> OutPort:
        if n == 2 and dtype is DType.F32:
            return conv(b, x, channels, 1, begin=(0, 0))
        w = weights(b, channels, x.type.static_shape[1], *[1] * n)
        w = w if dtype is DType.F32 else b.Convert(w, destination_type=dtype)
        ones, zeros = [1] * n, [0] * n
        return b.Convolution(x, w, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones)

    return compiled(make, (batch, 8, *side), target=target, dtype=dtype)


def lanes_of(made: Compilation) -> set[str]:
    """The axes of the lanes of grouped products: `v` for channels of several groups."""
    lines = made.groups.splitlines()
    found = (n for n, line in enumerate(lines) if re.search(r"add\[.*\* w0\[c, j", line))
    return {m[1] for n in found if (m := re.search(r"lanes\[(\w+):", lines[n + 1]))}


@pytest.mark.parametrize(
    ("groups", "width", "target"), [(16, 2, "x86-64-v3"), (8, 4, "native"), (12, 4, "x86-64-v3"), (16, 2, "native")]
)
def test_groups_that_share_a_vector(groups: int, width: int, target: str) -> None:
    made = network((9, 13), groups, width, target=target)
    assert lanes_of(made) == {"v"}
    assert f"* w0[(c * {width} + j) // " in made.loops()


@pytest.mark.parametrize(
    ("side", "options"),
    [
        ((9, 14), {"stride": 2}),
        ((12, 12), {"dilation": 2}),
        ((7, 7), {"taps": 5}),
        ((12, 9), {"taps": 9}),
        ((1, 1), {"taps": 1}),
        ((33,), {}),
        ((4, 5, 6), {}),
        ((6, 6), {"batch": 3}),
        ((8, 8), {"dtype": DType.F64}),
        ((8, 8), {"dtype": DType.F16}),
    ],
)
def test_windows_of_all_kinds(side: tuple[int, ...], options: dict[str, Any]) -> None:
    network(side, 8, 4, **options)


@pytest.mark.parametrize(("inner", "width"), [(1, 2), (1, 4), (2, 4), (4, 2), (3, 4), (8, 4)])
def test_groups_have_any_number_of_input_channels(inner: int, width: int) -> None:
    network((6, 10), 16, width, inner=inner, target="x86-64-v3")


@pytest.mark.parametrize(("groups", "width"), [(12, 3), (3, 4), (5, 2), (6, 6), (2, 12)])
def test_groups_that_do_not_fill_vectors_evenly(groups: int, width: int) -> None:
    made = network((6, 10), groups, width, target="x86-64-v3")
    assert lanes_of(made) == {"j"}


def test_four_lanes() -> None:
    assert lanes_of(network((6, 10), 8, 2, target="x86-64-v2")) == {"v"}
