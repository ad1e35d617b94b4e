"""append_variables: what grows along one dimension becomes Append; anything else is left to carry_variables."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.interpret import interpret
from aot.ir.origin import Origin
from aot.ir.text.printer import print_graph
from aot.ir.types import Array
from aot.opset.control.growing_variables import Append, CacheSizes
from aot.opset.movement.movement import Concat
from aot.passes.middle.control.append_variables import append_variables
from aot.passes.middle.control.shorten_variables import ShortenVariables
from aot.precision import precision_of
from aot.runtime.abi import DType
from tests.dynamic.networks import compiled
from tests.dynamic.test_append import attention, close
from tests.dynamic.test_variables import adding, cache, loop, two_caches


def test_keys_have_tokens_as_neighbours_and_values_do_not() -> None:
    graph = attention()
    assert append_variables(graph)
    assert not append_variables(graph)
    ops = [n.op for n in graph.nodes.values()]
    appended = {op.variable_id: op.last for op in ops if isinstance(op, Append)}
    assert appended == {"0.key": True, "0.value": False}
    assert [(op.runs, op.widths) for op in ops if isinstance(op, CacheSizes)] == [((24, 3), (1, 8))]
    assert "ReadValue<" not in print_graph(graph)


def test_numbers_that_bf16_holds_stay_exact() -> None:
    """Keys and values are whole numbers, over 8: the network with short variables computes what it did."""
    graph, state, rng = attention(), dict[str, Array](), np.random.default_rng(0)
    assert append_variables(graph)
    assert ShortenVariables(precision_of("bf16"))(graph)
    assert not ShortenVariables(precision_of("bf16"))(graph)
    request = compiled(graph).create_infer_request()
    for count in (5, 1, 40):
        x = (rng.integers(-9, 10, (2, 3, count, 8)) / 8).astype(np.float32)
        given = [x, np.arange(2, dtype=np.int32)]
        close(request.infer(given)[0], interpret(attention(), given, state=state)[0])
    for variable in request.query_state():
        bits = state[variable.name].astype(ml_dtypes.bfloat16).view(np.uint16)
        np.testing.assert_array_equal(variable.state.view(np.uint16), bits)


@pytest.mark.parametrize("precision", ["f32", "f16", "bf16,keys=f32"])
def test_variables_of_other_types_stay_f32(precision: str) -> None:
    graph = attention()
    assert append_variables(graph)
    next(n for n in graph.order() if isinstance(n.op, Append)).origin = Origin(("keys",))
    before = print_graph(graph)
    assert not ShortenVariables(precision_of(precision))(graph)
    assert print_graph(graph) == before


def from_something() -> Graph:
    graph = cache()
    read = graph.get_op_nodes("ReadValue")[0]
    read.in_port(0).connect(Builder(graph).const([[[1.0, 2.0]]], DType.F32))
    return graph


def along_rows() -> Graph:
    graph = cache()
    concat = graph.get_op_nodes("Concat")[0]
    concat.op = Concat(axis=0)
    return graph


def in_front() -> Graph:
    graph = cache()
    concat = graph.get_op_nodes("Concat")[0]
    old, new = (p.source for p in concat.in_ports().values())
    assert old is not None
    assert new is not None
    concat.in_port(0).connect(new)
    concat.in_port(1).connect(old)
    return graph


@pytest.mark.parametrize(
    "make",
    [from_something, along_rows, in_front, two_caches, lambda: loop(adding(1.0), outside=True), lambda: Graph("empty")],
)
def test_others_are_left(make: Callable[[], Graph]) -> None:
    graph = make()
    before = print_graph(graph)
    assert not append_variables(graph)
    assert print_graph(graph) == before
