"""Products with rows between them: attention, a block of rows at a time."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Reduce, Var, dense
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array, Dim
from aot.opset.elementwise.broadcasting import BroadcastMode
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.cases import Tolerance
from tests.dynamic.networks import check, parameter, result
from tests.lowering.check import Make, compiled, ints, weights
from tests.passes.check import graph_of

V3 = "x86-64-v3"  # an L2 of 512 KB: scores of 4 heads and 200 x 200 are larger
HEADS = (1, 4, 200, 16)


def attention(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
    scores = b.Multiply(b.MatMul(q, k, transpose_b=True), 0.25)
    return b.MatMul(b.Softmax(scores, axis=-1), v)


def biased(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
    scores = b.Add(b.Multiply(b.MatMul(q, k, transpose_b=True), 0.25), weights(b, 1, 4, 200, 200))
    return b.MatMul(b.Softmax(scores, axis=-1), v)


def causal(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
    return b.ScaledDotProductAttention(q, k, v, causal=True)


def heads_last(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
    turned = b.Transpose(attention(b, q, k, v), ints(b, 0, 2, 1, 3))
    return b.Relu(b.Reshape(turned, ints(b, 1, 200, 64)))


def masked(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    return b.ScaledDotProductAttention(q, k, v, mask)


def over_pixels(b: Builder, x: OutPort, heads: int) -> OutPort:
    """Each pixel attends to all pixels; queries, keys and values are channels of one convolution."""
    ones, none = (1, 1), (0, 0)
    mixed = b.Convolution(x, weights(b, 96, 8, 1, 1), strides=ones, dilations=ones, pads_begin=none, pads_end=none)
    flat = b.Reshape(mixed, ints(b, 1, 3, heads, 32 // heads, -1))
    q, k, v = (b.Gather(flat, b.const(n, DType.I64), b.const(1, DType.I64)) for n in range(3))
    rows = b.Softmax(b.Multiply(b.MatMul(q, k, transpose_a=True), 0.125), axis=-1)
    return b.MatMul(v, rows, transpose_b=True)


@pytest.mark.parametrize("make", [attention, biased, causal, heads_last])
def test_attention_is_one_kernel(make: Make) -> None:
    made = compiled(make, HEADS, HEADS, HEADS, target=V3)
    assert "group chain" in made.groups


@pytest.mark.parametrize(("heads", "size"), [(1, (24, 17)), (4, ("h=24", "w=17"))])
def test_pixels_that_attend_to_each_other_are_one_axis(heads: int, size: tuple[int | str, int | str]) -> None:
    made = compiled(lambda b, x: over_pixels(b, x, heads), (1, 8, *size), target=V3)
    assert "group chain" in made.groups


def shared_keys(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
    """Three heads of queries for each head of keys and values, which are repeated as exporters write it."""

    def repeated(x: OutPort) -> OutPort:
        wide = b.Broadcast(b.Unsqueeze(x, ints(b, 2)), ints(b, 1, 1, 3, 1, 1), mode=BroadcastMode.BIDIRECTIONAL)
        return b.Reshape(wide, ints(b, 1, 6, -1, 16))

    return b.ScaledDotProductAttention(q, repeated(k), repeated(v))


def test_heads_that_share_keys_read_them_where_they_lie() -> None:
    """Six heads of queries, two of keys: a copy would have the keys and values of every token three times."""
    made = compiled(shared_keys, (1, 6, "t=5", 16), (1, 2, "s=7", 16), (1, 2, "s=7", 16), target=V3)
    assert made.groups.count("c * 3 + j") >= 2  # heads of queries are two axes of both products
    assert "// 3" not in made.groups


def test_a_batch_that_run_time_knows() -> None:
    made = compiled(attention, *[("n=3", *HEADS[1:])] * 3, target=V3)
    assert "group chain" in made.groups


@pytest.mark.parametrize("target", [V3, "native"])
def test_a_length_that_run_time_knows(target: str) -> None:
    """Scores of a block of rows are in scratch memory, however long they are; each size gives the same bits."""

    def graph(n: Dim) -> Graph:
        made = Graph("attention")
        b = Builder(made)
        q, k, v = (parameter(made, name, 2, 3, n, 16) for name in "qkv")
        result(made, attention(b, q, k, v))
        return made

    made = stages(graph(Var("n")), CompileOptions(level=None, target=target))
    assert "group chain" in made.groups
    one, two = (in_memory(made.built, threads) for threads in (1, 2))
    for n in (0, 1, 5, 24, 25, 300):
        given: list[Array] = [np.random.default_rng(k).normal(size=(2, 3, n, 16)).astype(np.float32) for k in range(3)]
        check(one, graph(n), given)
        assert np.asarray(one(given)[0]).tobytes() == np.asarray(two(given)[0]).tobytes()
    assert made.built.manifest["scratch"] not in (0, None)


def test_a_mask_that_may_be_one_number_for_all() -> None:
    """Its length is a size of its own: 1, or that of the keys."""
    made = Graph("masked")
    b = Builder(made)
    q, k, v = (parameter(made, name, 1, 2, Var(n), 16) for name, n in zip("qkv", "nmm", strict=True))
    mask = parameter(made, "mask", 1, 1, 1, Var("o"))
    scores = b.Add(b.MatMul(q, k, transpose_b=True), mask)
    result(made, b.MatMul(b.Softmax(scores, axis=-1), v))
    model = in_memory(stages(made, CompileOptions(level=None)).built, threads=1)
    for n, m, o in ((7, 40, 40), (7, 40, 1), (30, 1, 1), (3, 17, 17)):
        rng = np.random.default_rng(n)
        given: list[Array] = [rng.normal(size=(1, 2, s, 16)).astype(np.float32) for s in (n, m, m)]
        check(model, made, [*given, rng.normal(size=(1, 1, 1, o)).astype(np.float32)])


def test_a_length_that_an_inference_computes() -> None:
    """Scratch memory is reserved before it."""
    made = Graph("chosen")
    b = Builder(made)
    x = parameter(made, "x", Var("n"), 16)
    places = b.Reshape(b.NonZero(b.Greater(b.ReduceSum(x, ints(b, 1)), b.const(0.0, DType.F32))), ints(b, -1))
    rows = b.Gather(x, places, b.const(0, DType.I64))
    result(made, attention(b, rows, rows, rows))
    done = stages(made, CompileOptions(level=None))
    assert "group chain" not in done.groups
    model = in_memory(done.built, threads=1)
    for n in (5, 60):
        check(model, made, [np.random.default_rng(n).normal(size=(n, 16)).astype(np.float32)])


@pytest.mark.parametrize(("batch", "rows"), [(2, (190, 211)), (1, (197, 197))])
def test_other_keys_than_queries_and_a_mask(batch: int, rows: tuple[int, int]) -> None:
    q, k = ((batch, 4, n, 16) for n in rows)
    made = compiled(masked, q, k, k, (batch, 1, 1, rows[1]), target=V3)
    assert "group chain" in made.groups


def test_doubles_stay_doubles() -> None:
    tight = Tolerance("double", 1e-12, 1e-12)
    made = compiled(attention, HEADS, HEADS, HEADS, target=V3, dtype=DType.F64, tolerance=tight)
    assert "group chain" in made.groups


def test_equal_bits_for_any_number_of_threads() -> None:
    graph = graph_of(attention, HEADS, HEADS, HEADS)
    built = stages(graph, CompileOptions(level=None, target=V3)).built
    given: list[Array] = [np.random.default_rng(k).normal(size=HEADS).astype(np.float32) for k in range(3)]
    one, two = (np.asarray(in_memory(built, threads)(given)[0]) for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_axes_that_are_called_alike() -> None:
    """Rows of a picture, whose last axis is called as the columns of a matrix."""

    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 512, 8, 1, 1)
        y = b.Convolution(x, w, strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))
        return b.MatMul(b.Softmax(b.Transpose(y, ints(b, 0, 2, 3, 1)), axis=-1), weights(b, 512, 8))

    assert "group chain" in compiled(make, (1, 8, 28, 28), target=V3).groups


def groups_of(make: Make, *shapes: tuple[int, ...]) -> str:
    return stages(graph_of(make, *shapes), CompileOptions(level=None, target=V3)).groups


def test_values_smaller_than_their_factors_are_not_grouped() -> None:
    """A convolution of channels by themselves, a norm, a matrix."""

    def make(b: Builder, x: OutPort) -> OutPort:
        w, around = weights(b, 96, 1, 1, 7, 7), (3, 3)
        y = b.GroupConvolution(x, w, strides=(1, 1), dilations=(1, 1), pads_begin=around, pads_end=around)
        rows = b.Transpose(y, ints(b, 0, 2, 3, 1))
        norm = b.MVN(rows, ints(b, -1), normalize_variance=True, eps=1e-6, eps_mode="INSIDE_SQRT")
        return b.Gelu(b.MatMul(norm, weights(b, 96, 384)))

    assert "group chain" not in groups_of(make, (1, 96, 56, 56))


def test_small_scores_stay_apart() -> None:
    small = (1, 4, 32, 16)
    assert "group chain" not in groups_of(attention, small, small, small)


def test_scores_that_are_read_elsewhere_stay_apart() -> None:
    def make(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> tuple[OutPort, ...]:
        scores = b.Multiply(b.MatMul(q, k, transpose_b=True), 0.25)
        return b.MatMul(b.Softmax(scores, axis=-1), v), b.Sigmoid(scores)

    assert "group chain" not in groups_of(make, HEADS, HEADS, HEADS)


@pytest.mark.parametrize(("rows", "size"), [(1024, 64), (197, 64), (210, 42), (50, 50)])
def test_blocks_divide_the_rows_where_they_can(rows: int, size: int) -> None:
    i, j, k, d = Var("i", rows), Var("j", 64), Var("k", 32), Var("d", 32)
    s, top, p = dense("s", i, 64), dense("top", i), dense("p", i, 64)
    first = Definition(s, (i, j), Reduce("add", (k,), dense("q", rows, 32)[i, k] * dense("w", 32, 64)[k, j]))
    between = Group(
        "rows",
        (i,),
        (top,),
        (
            Definition(top, (i,), Reduce("max", (j,), s[i, j])),
            Definition(p, (i, j), s[i, j] - top[i]),
        ),
    )
    last = Definition(dense("y", rows, 32), (i, d), Reduce("add", (j,), p[i, j] * dense("v", 64, 32)[j, d]))
    plan = choose(Group("chain", (i,), (s, p), (first, between, last)), Target.parse(V3), frozenset())
    assert plan.size("i").size == size
    assert [bool(m.members) for m in plan.members] == [False, True, False]
