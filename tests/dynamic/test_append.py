"""Variables that grow in place. The oracle is the interpreter on the network as it was, call by call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

from aot import stages
from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.opset.control.state import Assign, ReadValue_6
from aot.passes.middle.control.append_variables import append_variables
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from tests.dynamic.networks import CLOSE, compiled, parameter, result

HEADS, WIDTH = 3, 8
Call = list[Array]


def attention(*, layers: int = 1, gathered: bool = True) -> Graph:
    """Queries, keys and values are the input, times a number for each layer; gives the mixed values."""
    graph = Graph("attention")
    b = Builder(graph)
    x = parameter(graph, "x", Var("batch", None, 1), HEADS, Var("n", None, 1), WIDTH)
    beams = parameter(graph, "beams", Var("rows", None, 1), dtype=DType.I32) if gathered else None
    zero = b.const(0, DType.I64)
    sizes = b.ShapeOf(x, output_type=DType.I64)
    nothing = b.Concat(b.Gather(sizes, b.const([0], DType.I64), zero), b.const([HEADS, 0, WIDTH], DType.I64), axis=0)
    for layer in range(layers):
        kept = list[OutPort]()
        for kind, factor in (("key", 0.5 + layer), ("value", 2.0)):
            past, rows = (Var(f"{name}{layer}{kind}", None, 0) for name in ("past", "rows"))
            op = ReadValue_6(f"{layer}.{kind}", DType.F32, (rows, HEADS, past, WIDTH))
            old = b(op, b.Broadcast(b.const(0.0, DType.F32), nothing))
            old = old if beams is None else b.Gather(old, beams, zero)
            kept.append(b.Concat(old, b.Multiply(x, factor), axis=2))
            graph.add(Assign(f"{layer}.{kind}"), kept[-1])
        scores = b.Softmax(b.MatMul(x, kept[0], transpose_b=True), axis=-1)
        x = b.Add(x, b.MatMul(scores, kept[1]))
    result(graph, x)
    return graph


def follows(make: Callable[[], Graph], calls: Sequence[Sequence[Array]]) -> None:
    """Each call of one request gives what the interpreter gives, with the state that the calls before have left."""
    request, state = compiled(make()).create_infer_request(), dict[str, Array]()
    for arrays in calls:
        found = request.infer(list(arrays))
        for i, expected in enumerate(interpret(make(), arrays, state=state)):
            close(found[i], expected)
    for variable in request.query_state():
        close(variable.state, state[variable.name])


def close(found: Array, expected: Array) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=CLOSE * np.abs(expected).max())


def new(batch: int, count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((batch, HEADS, count, WIDTH)).astype(np.float32)


def beams(*rows: int) -> Array:
    return np.array(rows, np.int32)


@pytest.mark.parametrize("layers", [1, 2])
def test_keys_and_values_are_appended(layers: int) -> None:
    """Beyond the first room, which is 192 tokens, and the next ones."""
    calls: list[Call] = [[new(2, n, n), beams(0, 1)] for n in (1, 5, 1, 150, 100, 1, 600, 2)]
    assert append_variables(attention())
    follows(partial(attention, layers=layers), calls)


def test_rows_follow_beams() -> None:
    orders = [(0,), (0, 0, 0), (2, 0, 1), (1, 1, 1), (2, 0), (1,), (0, 0)]
    calls: list[Call] = [[new(len(order), 1 + k, k), beams(*order)] for k, order in enumerate(orders)]
    follows(attention, calls)


def test_rows_follow_beams_where_all_move_to_more_room() -> None:
    calls: list[Call] = [[new(1, 190), beams(0)], [new(4, 10), beams(0, 0, 0, 0)], [new(3, 300), beams(3, 1, 2)]]
    follows(attention, calls)


def test_batch_stays_without_beams() -> None:
    request = compiled(attention(gathered=False)).create_infer_request()
    state: dict[str, Array] = {}
    for n in (3, 1, 250):
        (expected,) = interpret(attention(gathered=False), [new(2, n)], state=state)
        close(request.infer([new(2, n)])[0], expected)
    with pytest.raises(UsageError, match="rows move by beam_idx only"):
        request.infer([new(3, 1)])
    request.reset_state()
    assert request.infer([new(3, 1)])[0].shape == (3, HEADS, 1, WIDTH)


def test_variables_are_set_and_cut_by_hand() -> None:
    model = compiled(attention())
    one, other = model.create_infer_request(), model.create_infer_request()
    one.infer([new(2, 300), beams(0, 1)])
    one.infer([new(2, 4, 1), beams(0, 1)])
    for mine, theirs in zip(other.query_state(), one.query_state(), strict=True):
        assert mine.state.shape == (0, HEADS, 0, WIDTH)
        mine.state = theirs.state
        np.testing.assert_array_equal(mine.state, theirs.state)
    last = [new(2, 2, 2), beams(0, 1)]
    np.testing.assert_array_equal(one.infer(last)[0], other.infer(last)[0])
    for request in (one, other):
        for variable in request.query_state():
            variable.truncate(7)
    assert other.query_state()[0].state.shape == (2, HEADS, 7, WIDTH)
    np.testing.assert_array_equal(one.infer(last)[0], other.infer(last)[0])
    with pytest.raises(UsageError, match=r"truncate: '0.key' keeps 0 to 9 elements .*, got 10"):
        one.query_state()[0].truncate(10)


@pytest.mark.parametrize("index", [0, 1, 3])
def test_sizes_that_disagree_are_refused(index: int) -> None:
    request = compiled(attention(layers=2)).create_infer_request()
    request.infer([new(1, 5), beams(0)])
    request.query_state()[index].truncate(4)
    with pytest.raises(UsageError, match="keep as many rows and tokens as each other"):
        request.infer([new(1, 1), beams(0)])
    request.query_state()[index].reset()
    request.reset_state()
    assert request.infer([new(1, 1), beams(0)])[0].shape == (1, HEADS, 1, WIDTH)


def test_rows_stay_where_sizes_depend_on_data() -> None:
    graph = attention()
    result(graph, Builder(graph).NonZero(graph.parameters[0].out_port(0)))
    request = compiled(graph).create_infer_request()
    request.infer([new(2, 5), beams(0, 1)])
    assert request.infer([new(2, 1), beams(0, 1)])[1].shape == (4, 2 * HEADS * WIDTH)
    with pytest.raises(UsageError, match="rows do not move where sizes depend on data"):
        request.infer([new(2, 1), beams(1, 0)])


def other_variable() -> Graph:
    graph = attention()
    b = Builder(graph)
    x = graph.parameters[0].out_port(0)
    graph.add(
        Assign("sum"),
        b.Add(
            b(ReadValue_6("sum", DType.F32, (1, 1, 1, 1)), b.const(np.zeros((1, 1, 1, 1)), DType.F32)),
            b.ReduceSum(x, b.const([0, 1, 2, 3], DType.I64), keep_dims=True),
        ),
    )
    return graph


def read_as_it_was() -> Graph:
    graph = attention(gathered=False)
    read = graph.get_op_nodes("ReadValue")[0]
    result(graph, Builder(graph).ReduceSum(read.out_port(0), Builder(graph).const([2], DType.I64)))
    return graph


@pytest.mark.parametrize("make", [other_variable, read_as_it_was])
def test_other_networks_keep_copies(make: Callable[[], Graph]) -> None:
    calls: list[Call] = [[new(2, n, n), beams(0, 1)][: len(make().parameters)] for n in (2, 1, 90)]
    assert not append_variables(make())
    follows(make, calls)


def test_rules_of_equal_layers_are_checked_once() -> None:
    steps = stages(attention(layers=3)).steps
    rules = [(rule.one, rule.other) for step in steps.steps for rule in step.checks]
    assert rules
    assert len(set(rules)) == len(rules)
