"""append_variables: what grows along one dimension becomes Append; anything else is left to carry_variables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.text.printer import print_graph
from aot.opset.control.cache import Append, CacheSizes
from aot.opset.movement.movement import Concat
from aot.passes.middle.control.append_variables import append_variables
from runtime.abi import DType
from tests.dynamic.test_append import attention
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
