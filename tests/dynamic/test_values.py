"""Sizes and bounds that are values of tensors, known when a model runs; outputs whose sizes depend on the data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.codegen.llvm.driver.control import control_functions
from aot.compilation.driver import compile_model, stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array, Shape
from aot.opset.control.infrastructure import Parameter
from aot.opset.detection.suppression.suppression import NonMaxSuppression
from aot.opset.elementwise.broadcasting import BroadcastMode
from aot.opset.movement.padding import PadMode
from aot.opset.movement.sparse import SparseFillEmptyRows
from aot.opset.reduction.nonzero import Unique
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import BudgetError, UsageError

F32, I32, I64 = DType.F32, DType.I32, DType.I64
FAST = CompileOptions(level=None)
FAR = 2**63 - 1
Make = Callable[..., OutPort | tuple[OutPort, ...]]
X = np.arange(24, dtype=np.float32).reshape(4, 6)


def graph_of(inputs: list[tuple[DType, Shape]], make: Make) -> Graph:
    graph = Graph("values")
    build = Builder(graph)
    ports = [build(Parameter(d, s), name=f"in{i}") for i, (d, s) in enumerate(inputs)]
    found = make(build, *ports)
    for port in found if isinstance(found, tuple) else (found,):
        build.Result(port)
    return graph


def check(inputs: list[tuple[DType, Shape]], make: Make, *runs: tuple[Array, ...]) -> None:
    """One compiled model gives what the references give, for all runs, with one thread and with two."""
    built = stages(graph_of(inputs, make), FAST).built
    models = [in_memory(built, threads) for threads in (1, 2)]
    for given in runs:
        expected = interpret(graph_of(inputs, make), given)
        one, two = (model(list(given)).to_tuple() for model in models)
        for a, b, wanted in zip(one, two, expected, strict=True):
            assert a.shape == wanted.shape
            assert a.tobytes() == b.tobytes()
            np.testing.assert_allclose(a, wanted, rtol=1e-5)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def number(value: int) -> Array:
    return np.array(value, np.int64)


def outputs(build: Builder, op: object, *inputs: OutPort, count: int) -> tuple[OutPort, ...]:
    return tuple(build.node(op, *inputs, outputs=count).out_ports().values())  # type: ignore[arg-type]


def test_reshapes_follow_computed_patterns() -> None:
    plain = [(F32, (4, 6)), (I64, (2,))]
    runs = [(X, ints(*p)) for p in ((3, 8), (24, 1), (-1, 12), (2, -1))]
    check(plain, lambda b, x, p: b.Reshape(x, p), *runs)
    check(plain, lambda b, x, p: b.Relu(b.Reshape(x, p)), *runs)
    check(plain, lambda b, x, p: b.Reshape(x, p, special_zero=True), (X, ints(0, -1)), (X, ints(-1, 0)))
    runs = [(X, ints(2, 4)), (X, ints(-1, 1))]
    check(plain, lambda b, x, p: b.Reshape(x, b.Concat(p, b.const([3], I64), axis=0)), *runs)


@pytest.mark.parametrize("seed", range(4))
def test_slices_follow_computed_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [(F32, (4, 6)), (I64, (2,)), (I64, (2,)), (I64, (2,))]
    some = [rng.integers(-8, 9, (3, 2)) for _ in range(24)]
    far = [np.array([[0, -FAR], [FAR, FAR], [1, 2]]), np.array([[FAR, -1], [-FAR, -FAR - 1], [-1, -3]])]
    runs = [(X, a, b, np.where(s == 0, 1, s)) for a, b, s in (*some, *far)]
    check(inputs, lambda b, *ports: b.Slice(*ports), *runs)
    check(inputs, lambda b, *ports: b.Sigmoid(b.StridedSlice(*ports, begin_mask=(0, 1), end_mask=(1, 0))), *runs)


def test_stretched_and_repeated() -> None:
    runs = [(X[:1], ints(2, 4, 6)), (X[:1], ints(1, 1, 6))]
    check([(F32, (1, 6)), (I64, (3,))], lambda b, x, s: b.Broadcast(x, s), *runs)
    both = BroadcastMode.BIDIRECTIONAL
    runs = [(X[:1], ints(1, 4, 1)), (X[:1], ints(3, 4, 6))]
    check([(F32, (1, 6)), (I64, (3,))], lambda b, x, s: b.Broadcast(x, s, mode=both), *runs)
    runs = [(X, ints(*r)) for r in ((1, 2), (3, 1), (0, 1))]
    check([(F32, (4, 6)), (I64, (2,))], lambda b, x, r: b.Tile(x, r), *runs)


@pytest.mark.parametrize("mode", PadMode)
def test_pads_follow_computed_counts(mode: PadMode) -> None:
    counts = [(1, 2, 0, 3), (0, 0, 0, 0), (3, 5, 3, 5), *([(-1, 2, 0, -3)] if mode is PadMode.CONSTANT else [])]
    runs = [(X, ints(*c[:2]), ints(*c[2:])) for c in counts]
    inputs = [(F32, (4, 6)), (I64, (2,)), (I64, (2,))]
    check(inputs, lambda b, x, low, high: b.Pad(x, low, high, b.const(7.0, F32), pad_mode=mode), *runs)


def test_numbers_in_order() -> None:
    given = [(0, 9, 2), (5, -3, -1), (5, -3, 1), (2, 2, 1)]
    runs = [tuple(map(number, g)) for g in given]
    check([(I64, ())] * 3, lambda b, *ports: b.Range(*ports), *runs)
    floats = [tuple(np.array(v, np.float32) for v in g) for g in (*given, (0.5, 3.0, 0.25))]
    check([(F32, ())] * 3, lambda b, *ports: b.Range(*ports, output_type=F32), *floats)
    check([(I64, ())] * 2, lambda b, n, m: b.Eye(n, m, b.const(1, I64), output_type=F32), (number(3), number(5)))


def test_best_elements() -> None:
    runs = [(X % 7, number(k)) for k in (2, 6, 0)]
    check([(F32, (4, 6)), (I64, ())], lambda b, x, k: b.TopK(x, k, axis=1, outputs=2), *runs)


@pytest.mark.parametrize("shape", [(7,), (3, 4, 2), ("n", 4)])
def test_places_that_are_not_zero(shape: tuple[int | str, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    dims = tuple(Var(n) if isinstance(n, str) else n for n in shape)
    sizes = tuple(5 if isinstance(n, str) else n for n in shape)
    runs = [(rng.integers(0, most, sizes).astype(np.int32),) for most in (1, 2, 3, 9)]
    check([(I32, dims)], lambda b, x: b.NonZero(x), *runs)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_different_elements(ordered: bool, axis: int | None) -> None:
    rng = np.random.default_rng(0)
    runs = [(rng.integers(0, most, (6, 5)).astype(np.int32),) for most in (1, 2, 3, 40)]
    at = [] if axis is None else [axis]
    check(
        [(I32, (6, 5))],
        lambda b, x: outputs(b, Unique(ordered), x, *(b.const(a, I64) for a in at), count=4),
        *runs,
    )


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_boxes_that_are_kept(sigma: float) -> None:
    rng = np.random.default_rng(1)
    limits = [np.float32(0.4), np.float32(0.2), np.float32(sigma)]

    def make(b: Builder, boxes: OutPort, scores: OutPort, most: OutPort) -> tuple[OutPort, ...]:
        given = (b.const(v, F32) for v in limits)
        return outputs(b, NonMaxSuppression(), boxes, scores, most, *given, count=3)

    boxes = rng.uniform(0, 1, (2, 12, 4)).astype(np.float32)
    scores = rng.permutation(72).reshape(2, 3, 12).astype(np.float32) / 72
    runs = [(boxes, scores, number(most)) for most in (0, 3, 40, -1)]
    check([(F32, (2, 12, 4)), (F32, (2, 3, 12)), (I64, ())], make, *runs)


def chained(b: Builder, x: OutPort) -> OutPort:
    """Rows of x with a positive first element, times their transpose: products of run-time sizes."""
    first = b.Gather(x, b.const(0, I64), b.const(1, I64))
    places = b.Reshape(b.NonZero(b.Greater(first, b.const(0.0, F32))), b.const([-1], I64))
    rows = b.Gather(x, places, b.const(0, I64))
    return b.Relu(b.MatMul(rows, rows, transpose_b=True))


def test_later_layers_have_data_dependent_sizes() -> None:
    rng = np.random.default_rng(2)
    runs = [(rng.uniform(low, low + 1, (40, 8)).astype(np.float32),) for low in (-0.5, 0.1, -2)]
    check([(F32, (40, 8))], chained, *runs)


def layers(count: int) -> Make:
    def make(b: Builder, x: OutPort) -> OutPort:
        first = b.Gather(x, b.const(0, I64), b.const(1, I64))
        places = b.Reshape(b.NonZero(b.Greater(first, b.const(0.0, F32))), b.const([-1], I64))
        rows = b.Gather(x, places, b.const(0, I64))
        for n in range(count):
            rows = b.Add(b.Softmax(b.MatMul(rows, b.const(np.eye(8) * (n + 1), F32)), axis=1), rows)
        return rows

    return make


def test_drivers_do_not_grow_with_equal_layers() -> None:
    rng = np.random.default_rng(3)
    runs = [(rng.uniform(low, low + 1, (40, 8)).astype(np.float32),) for low in (-0.5, 0.1, -2)]
    check([(F32, (Var("n"), 8))], layers(70), *runs)
    programs = [stages(graph_of([(F32, (Var("n"), 8))], layers(count)), FAST).program for count in (70, 90)]
    assert len(programs[0].computed) == len(programs[1].computed)
    few, many = (sum(text.count("\n") for text in control_functions(program, "layers")) for program in programs)
    assert few == many


@pytest.mark.parametrize("pattern", [(5, 5), (-1, -1), (-2, -12), (0, 0), (FAR, 2), (3689348814741910328, 5)])
def test_wrong_values_are_refused(pattern: tuple[int, int]) -> None:
    model = compile_model(graph_of([(F32, (4, 6)), (I64, (2,))], lambda b, x, p: b.Reshape(x, p)), FAST, threads=1)
    with pytest.raises(UsageError, match=rf"infer: Reshape 'Reshape_2': .*_0 = {pattern[0]}, .*_1 = {pattern[1]}"):
        model([X, ints(*pattern)])
    np.testing.assert_array_equal(model([X, ints(6, 4)])[0], X.reshape(6, 4))


def test_room_grows_and_ends() -> None:
    graph = graph_of([(I64, ())], lambda b, n: b.Range(b.const(0, I64), n, b.const(1, I64)))
    model = compile_model(graph, FAST, threads=1)
    for n in (3, 1000, 5):
        np.testing.assert_array_equal(model([number(n)])[0], np.arange(n))
    for n in (1 << 39, 1 << 50):
        with pytest.raises(BudgetError):
            model([number(n)])
    np.testing.assert_array_equal(model([number(7)])[0], np.arange(7))


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("name", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"])
def test_reductions_along_axes_of_run_time(name: str, kept: bool) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
    runs = [(x, ints(*a)) for a in ((0, 2), (1, -1), (-3, 1))]
    check([(F32, (2, 3, 4)), (I64, (2,))], lambda b, x, a: getattr(b, name)(x, a, keep_dims=kept), *runs)


@pytest.mark.slow
def test_reductions_of_many_axes_that_are_all_open() -> None:
    x = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5) - 70
    shape = tuple(Var(f"n{k}", None) for k in range(4))
    check([(F32, shape), (I64, (2,))], lambda b, x, a: b.ReduceSum(x, a, keep_dims=True), (x, ints(1, -1)))


def test_ids_determine_the_number_of_segments() -> None:
    x = np.arange(18, dtype=np.float32).reshape(6, 3) - 7
    runs = [(x, np.array(ids, np.int32)) for ids in ((0, 0, 1, 3, 3, 3), (0, 0, 0, 0, 0, 0), (2, 2, 5, 5, 9, 9))]
    check([(F32, (6, 3)), (I32, (6,))], lambda b, x, ids: b.SegmentMax(x, ids), *runs)


def test_rows_that_were_empty() -> None:
    rng = np.random.default_rng(3)
    runs = [
        (rng.standard_normal(4).astype(np.float32), ints(rows, 5), rng.integers(0, 5, (4, 2)), np.float32(-1))
        for rows in (5, 9, 2)
    ]
    inputs: list[tuple[DType, Shape]] = [(F32, (4,)), (I64, (2,)), (I64, (4, 2)), (F32, ())]
    check(inputs, lambda b, *ports: outputs(b, SparseFillEmptyRows(), *ports, count=3), *runs)


def test_a_count_and_a_dimension_of_one_size() -> None:
    def make(b: Builder, k: OutPort) -> OutPort:
        count = b.Range(b.const(0, I64), k, b.const(1, I64), output_type=I64)
        return b.Add(count, b.Broadcast(b.const(7, I64), b.Reshape(k, b.const(np.array([1]), I64))))

    check([(I64, ())], make, (number(6),), (number(1),), (number(0),))
