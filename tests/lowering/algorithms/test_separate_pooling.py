"""Windows of maxima and sums that are taken apart into columns and rows."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Group
from aot.codegen.ir.loops import Var
from aot.compilation.compilation import Compilation
from aot.compilation.driver import compile_model, stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.opset.products.pooling import AvgPool, DilatedMaxPool, MaxPool
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.dynamic.networks import check, parameter, result
from tests.lowering.check import compiled, conv, ints, weights
from tests.passes.check import graph_of


def apart(made: Compilation) -> int:
    """Return the number of separated windows."""
    works = [w for step in made.steps.steps for w in step.works]
    return sum(isinstance(w, Group) and w.name == "window" for w in works)


def square(size: int, pad: int, stride: int = 1) -> dict[str, tuple[int, int]]:
    return {
        "strides": (stride, stride),
        "pads_begin": (pad, pad),
        "pads_end": (pad, pad),
        "kernel": (size, size),
    }


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (MaxPool(**square(5, 2)), 1),
        (MaxPool(**square(3, 1)), 1),
        (MaxPool(**square(3, 1, 2)), 0),
        (MaxPool(**square(2, 0)), 0),
        (MaxPool(**square(9, 4, 2)), 1),
        (AvgPool(**square(5, 2), exclude_pad=True), 1),
        (AvgPool(**square(3, 1), exclude_pad=True), 0),
        (AvgPool(**square(7, 3), exclude_pad=False), 1),
        (DilatedMaxPool(**square(4, 3), dilations=(2, 3)), 1),
    ],
    ids=str,
)
def test_windows_are_taken_apart_where_that_is_less_work(op: MaxPool | AvgPool | DilatedMaxPool, expected: int) -> None:
    made = compiled(lambda b, x: b(op, conv(b, x, 32 if expected else 5)), (2, 3, 21, 18))
    assert apart(made) == expected
    other = stages(
        graph_of(lambda b, x: b(op, conv(b, x, 5 if expected else 32)), (2, 3, 21, 18)), CompileOptions(level=None)
    )
    assert apart(other) == expected


@pytest.mark.parametrize("dtype", [DType.F32, DType.I32, DType.I8])
def test_lanes_need_not_hold_channels(dtype: DType) -> None:
    """Rows are lanes; three taps each way do not pay."""
    made = compiled(lambda b, x: b(MaxPool(**square(5, 0)), x), (2, 3, 21, 40), dtype=dtype)
    assert apart(made) == 1
    assert apart(compiled(lambda b, x: b(MaxPool(**square(3, 0)), x), (2, 3, 21, 40), dtype=dtype)) == 0


def test_three_dimensions_and_one() -> None:
    cube = {n: (v,) * 3 for n, v in (("strides", 1), ("pads_begin", 1), ("pads_end", 1), ("kernel", 3))}
    assert apart(compiled(lambda b, x: b(MaxPool(**cube), x), (1, 2, 5, 6, 20))) == 1
    line = {n: (v,) for n, v in (("strides", 1), ("pads_begin", 2), ("pads_end", 2), ("kernel", 5))}
    assert apart(compiled(lambda b, x: b(MaxPool(**line), x), (1, 2, 20))) == 0


def test_consumer_is_fused_into_the_last_pooling() -> None:
    made = compiled(lambda b, x: b.Relu(b(MaxPool(**square(5, 2)), conv(b, x, 32))), (1, 3, 12, 12))
    assert apart(made) == 1 and len(made.steps.steps) == 3


@pytest.mark.parametrize("reduce", ["ReduceSum", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("repeats", [(1, 1, 1, 3), (1, 2, 2, 1), (2, 1, 1, 2)], ids=str)
def test_reductions_of_repeated_values_are_no_windows(reduce: str, repeats: tuple[int, ...]) -> None:
    """A reduction axis that no index reads: sums count it, maxima do not."""

    def make(b: Builder, x: OutPort) -> OutPort:
        return getattr(b, reduce)(b.Tile(x, ints(b, *repeats)), ints(b, 0, 1, 2, 3), keep_dims=True)

    graph = graph_of(make, (2, 1, 5, 5))
    x = np.random.default_rng(0).integers(-9, 9, (2, 1, 5, 5)).astype(np.float32)
    tiled = np.tile(x, repeats)
    expected = {"ReduceSum": tiled.sum(), "ReduceMax": tiled.max(), "ReduceMin": tiled.min()}[reduce]
    assert compile_model(graph)(x)[0].reshape(-1).tolist() == [expected]


def test_not_a_number_is_found_and_no_other_window_sees_it() -> None:
    graph = graph_of(lambda b, x: b(MaxPool(**square(5, 2)), x), (1, 1, 30, 40))
    x = np.random.default_rng(0).standard_normal((1, 1, 30, 40), np.float32)
    x[0, 0, 9, 11] = np.nan
    found = np.isnan(compile_model(graph)(x)[0][0, 0])
    expected = np.zeros((30, 40), bool)
    expected[7:12, 9:14] = True
    np.testing.assert_array_equal(found, expected)


def test_a_batch_and_rows_that_vary() -> None:
    graph = Graph("windows")
    build = Builder(graph)
    x = parameter(graph, "x", Var("n"), 3, Var("h"), 24)
    around = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    y = build.Convolution(x, weights(build, 32, 3, 3, 3), **around)
    result(graph, build(MaxPool(**square(5, 2)), y))
    made = stages(graph, CompileOptions(level=None))
    assert apart(made) == 1
    model = in_memory(made.built, threads=2)
    for n, h in ((1, 9), (3, 2), (2, 30)):
        check(model, graph, [np.random.default_rng(h).standard_normal((n, 3, h, 24), np.float32)])


@pytest.mark.parametrize("name", ["v", "a", "c", "split", "combines", "t0"])
def test_values_may_have_the_names_of_what_groups_keep_to_themselves(name: str) -> None:
    """Read by a pooling and by a convolution that becomes Winograd's, and written by one."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, OutPort]:
        around = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
        y = b.Convolution(conv(b, x, 32), weights(b, 32, 32, 3, 3), name=name, **around)
        return b(MaxPool(**square(5, 0)), y), conv(b, y, 32)

    made = compiled(make, (1, 32, 20, 24))
    assert apart(made) == 1
    assert sum(".winograd" in n for n in made.steps.values) > 0
