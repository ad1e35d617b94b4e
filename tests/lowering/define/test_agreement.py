"""Sizes that an operation cannot take are refused by a rule that names the layer, where inference cannot know them."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.elementwise.binary import AutoBroadcast
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.runtime.model import CompiledModel
from tests.passes.check import Make

Size = int | str


def compiled(make: Make, *shapes: tuple[Size, ...]) -> CompiledModel:
    """`make(build, *ports)`; a name is a size that varies. Inputs are f32."""
    graph = Graph()
    build = Builder(graph)
    dims = [tuple(Var(n) if isinstance(n, str) else n for n in shape) for shape in shapes]
    made = make(build, *(build(Parameter(DType.F32, d), name=f"x{k}") for k, d in enumerate(dims)))
    assert isinstance(made, OutPort)
    build(Result(), made)
    return compile_model(graph, CompileOptions(level=None), threads=1)


def ints(build: Builder, *values: int) -> OutPort:
    return build.const(values, DType.I64)


def add(mode: AutoBroadcast, start: int = -1) -> Make:
    return lambda b, x, y: b.Add(x, y, auto_broadcast=mode, start_axis=start, name="sum")


def select(b: Builder, x: OutPort, y: OutPort) -> OutPort:
    condition = b.Greater(x, b.const(0, DType.F32))
    return b.Select(condition, y, y, auto_broadcast=AutoBroadcast.PDPD, start_axis=0, name="choice")


def patches(b: Builder, x: OutPort) -> OutPort:
    """Build patches and a sum over them: the error must name the patches, although the sum has sizes of its own."""
    return b.ReduceSum(b.ExtractImagePatches(x, sizes=(2, 3), name="patches"), ints(b, 2, 3))


NONE, PDPD = AutoBroadcast.NONE, AutoBroadcast.PDPD
CASES = [
    ("none", add(NONE), [("n", 3), ("m", 3)], [(2, 3), (2, 3)], [[(4, 3), (2, 3)], [(2, 3), (4, 3)], [(1, 3), (2, 3)]]),
    ("pdpd", add(PDPD, 0), [("n", 3), ("m",)], [(2, 3), (2,)], [[(4, 3), (2,)], [(1, 3), (2,)]]),
    ("pdpd of one", add(PDPD, 0), [("n", 3), ("m",)], [(2, 3), (1,)], [[(2, 3), (3,)]]),
    ("pdpd in one", add(PDPD, 0), [(1, 3), ("m",)], [(1, 3), (1,)], [[(1, 3), (2,)]]),
    ("pdpd select", select, [("n",), ("m", 3)], [(2,), (2, 3)], [[(2,), (1, 3)], [(3,), (2, 3)]]),
    ("patches", patches, [("n", 1, "h", "w")], [(1, 1, 2, 3)], [[(1, 1, 0, 3)], [(1, 1, 2, 1)], [(1, 1, 0, 0)]]),
    ("slopes", lambda b, x, y: b.PRelu(x, y), [("n",), (2,)], [(2,), (2,)], [[(1,), (2,)], [(3,), (2,)]]),
    (
        "slopes of channels",
        lambda b, x, y: b.PRelu(x, y),
        [(1, "c", 2), (1, "m", 1)],
        [(1, 3, 2), (1, 3, 1)],
        [[(1, 5, 2), (1, 3, 1)], [(1, 1, 2), (1, 3, 1)]],
    ),
    ("top", lambda b, x: b.TopK(x, ints(b, 4), axis=0, outputs=2), [("n", 3)], [(4, 3)], [[(3, 3)], [(0, 3)]]),
]


@pytest.mark.parametrize(("make", "shapes", "right", "wrong"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_sizes_that_do_not_fit_are_refused(
    make: Make, shapes: list[tuple[Size, ...]], right: list[tuple[int, ...]], wrong: list[list[tuple[int, ...]]]
) -> None:
    model = compiled(make, *shapes)
    assert np.asarray(model([np.ones(s, np.float32) for s in right])[0]).size
    for sizes in wrong:
        with pytest.raises(UsageError, match=r"must be|must not|or 1"):
            model([np.ones(s, np.float32) for s in sizes])


def test_top_of_as_many_as_there_are_needs_no_rule() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        size = b.Gather(b.ShapeOf(x, output_type=DType.I64), ints(b, 0), b.const(0, DType.I64))
        return b.TopK(x, b.Minimum(size, ints(b, 4)), axis=0, outputs=2)

    model = compiled(make, ("n", 3))
    assert not model.manifest.json.get("rules")
    assert [model([np.ones((n, 3), np.float32)])[0].shape for n in (2, 5)] == [(2, 3), (4, 3)]


def test_axes_of_a_scalar_that_are_an_input() -> None:
    def make(b: Builder, x: OutPort, axes: OutPort) -> OutPort:
        return b.ReduceL1(x, b.Convert(axes, destination_type=DType.I64))

    model = compiled(make, (), (1,))
    assert model([np.float32(-3), np.zeros(1, np.float32)])[0] == 3


@pytest.mark.parametrize("op", ["Add", "Less", "MatMul"])
@pytest.mark.parametrize("other", [("m", 4), (3, 4)], ids=["varying", "fixed"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_computed_size_of_one_stretches(op: str, other: tuple[Size, ...], swapped: bool) -> None:
    """Every second row, of one or two rows, meets sizes that vary and sizes that do not."""

    def make(b: Builder, x: OutPort, y: OutPort) -> OutPort:
        rows = b.Slice(x, ints(b, 0), ints(b, 9), ints(b, 2), ints(b, 0))
        if op == "MatMul":  # batches of matrices
            rows, y = (b.Unsqueeze(p, ints(b, k)) for p, k in ((rows, -2), (y, -1)))
        made = getattr(b, op)(*((y, rows) if swapped and op != "MatMul" else (rows, y)))
        return b.Select(made, b.const(1, DType.F32), b.const(0, DType.F32)) if op == "Less" else made

    model, rng = compiled(make, ("n", 4), other), np.random.default_rng(0)
    for n in (1, 2, 5, 6):
        x, y = (rng.integers(-9, 9, s).astype(np.float32) for s in ((n, 4), (3, 4)))
        a, b = (y, x[::2]) if swapped and op != "MatMul" else (x[::2], y)
        expected = a + b if op == "Add" else a < b if op == "Less" else a[:, None] @ b[:, :, None]
        np.testing.assert_array_equal(np.asarray(model([x, y])[0]), expected)
    with pytest.raises(UsageError, match="or 1, got"):
        model([np.ones((3, 4), np.float32), np.ones((3, 4), np.float32)])


@pytest.mark.parametrize(("axes", "right"), [((0, 1, 0), (1, 3)), ((1,), (1,)), ((0, 1), (1, 2))])
def test_shifts_are_one_or_as_many_as_axes(axes: tuple[int, ...], right: tuple[int, ...]) -> None:
    """Shifts are data, and how many there are is known when an inference begins."""
    graph = Graph()
    build = Builder(graph)
    shift = build(Parameter(DType.I32, (Var("k"),)), name="shift")
    x = build(Parameter(DType.F32, (4, 5)), name="x")
    build(Result(), build.Roll(x, shift, ints(build, *axes)))
    model, data = compile_model(graph, CompileOptions(level=None), threads=1), np.arange(20, dtype=np.float32)
    for k in (1, 2, 3, 4):
        by, given = np.array([3, -6, 2, 1][:k], np.int32), data.reshape(4, 5)
        if k in right:
            expected = np.roll(
                given, int(by[0]) if k == 1 and len(axes) == 1 else tuple(np.resize(by, len(axes))), axes
            )
            np.testing.assert_array_equal(np.asarray(model([by, given])[0]), expected)
        else:
            with pytest.raises(UsageError, match=f"one shift, or one for each of {len(axes)} axes"):
                model([by, given])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrences_have_a_length_for_each_sequence(kind: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    graph = Graph()
    build, rng = Builder(graph), np.random.default_rng(0)
    lengths = build(Parameter(DType.I64, (Var("k"),)), name="lengths")
    x = build(Parameter(DType.F32, (3, 2, 5)), name="x")
    state = build.const(np.zeros((3, 1, 4)), DType.F32)
    w, r, b = (
        build.const(rng.standard_normal(s), DType.F32) for s in ((1, 4 * gates, 5), (1, 4 * gates, 4), (1, 4 * gates))
    )
    states = [state] * (2 if kind == "LSTM" else 1)
    made = getattr(build, f"{kind}Sequence")(x, *states, lengths, w, r, b, hidden_size=4, outputs=1 + len(states))
    build(Result(), made)
    model = compile_model(graph, CompileOptions(level=None), threads=1)
    data = rng.standard_normal((3, 2, 5)).astype(np.float32)
    found = np.asarray(model([np.array([1, 2, 0]), data])[0])
    assert [bool(found[b, 0, t].any()) for b in range(3) for t in range(2)] == [True, False, True, True, False, False]
    for k in (1, 2, 4):
        with pytest.raises(UsageError, match="length for each sequence"):
            model([np.ones(k, np.int64), data])
