"""Windows of pooling are clipped to what lies in the data, without a change of any value."""

from __future__ import annotations

import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.passes.pipeline import simplify
from aot.passes.run import run_passes
from tests.passes.check import after, graph_of

HUGE = (1 << 32) - 1


Fields = dict[str, object]


def pool(kind: str, size: int, pads: tuple[int, int], stride: int = 1, **more: object) -> tuple[str, Fields]:
    before, after_ = pads
    fields: Fields = {"kernel": (size, 3), "strides": (stride, 1)}
    return kind, fields | {"pads_begin": (before, 1), "pads_end": (after_, 1)} | more


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        pool("MaxPool", 25, (12, 12)),
        pool("MaxPool", 25, (12, 12), 3),
        pool("AvgPool", 25, (12, 12), exclude_pad=True),
        pool("AvgPool", 25, (12, 12), exclude_pad=False),
        pool("AvgPool", 19, (18, 3), 2, exclude_pad=False),
        pool("AvgPool_16", 9, (12, 12), exclude_pad=True, dilations=(3, 1)),
        pool("DilatedMaxPool", 9, (12, 12), dilations=(3, 1)),
        pool("MaxPool", 25, (12, 12), rounding_type="ceil"),
    ],
)
def test_values_stay(kind: str, fields: Fields) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return getattr(b, kind)(x, **fields)

    left = after([simplify], make, (2, 3, 5, 6))
    assert left[0] == kind.removesuffix("_16")
    graph = graph_of(make, (2, 3, 5, 6))
    run_passes(graph, [simplify])
    (node,) = [n for n in graph.order() if hasattr(n.op, "kernel")]
    assert node.op.kernel[0] < fields["kernel"][0]  # type: ignore[index]


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
def test_windows_of_billions_of_rows_are_as_high_as_the_data(kind: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        half = HUGE // 2
        return getattr(b, kind)(x, **pool(kind, HUGE, (half, half))[1])

    graph = graph_of(make, (1, 1, 5, 5))
    run_passes(graph, [simplify])
    (node,) = [n for n in graph.order() if hasattr(n.op, "kernel")]
    assert node.op.kernel == (9, 3)


def test_windows_that_fit_stay() -> None:
    assert after([simplify], lambda b, x: b.MaxPool(x, **pool("MaxPool", 3, (1, 1))[1]), (1, 2, 9, 9)) == ["MaxPool"]
