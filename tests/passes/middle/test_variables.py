"""carry_variables: what bodies read and set goes through the nodes around them."""

from __future__ import annotations

from aot.ir.graph import Graph
from aot.ir.text.printer import print_graph
from aot.passes.middle.control.carry_variables import carry_variables
from tests.dynamic.test_variables import adding, cache, in_branches, loop, plain


def carried(graph: Graph) -> str:
    assert carry_variables(graph)
    assert not carry_variables(graph)
    return print_graph(graph)


def test_branches_pass_on_what_they_do_not_assign() -> None:
    text = carried(in_branches(lambda: adding(2.0), plain)())
    assert text.count("IsSet<") == text.count("KeptValue<") == text.count("AssignCarried<") == 1
    assert "Select(" in text
    assert text.count("= Result(") == 1 + 2 * 3


def test_a_loop_carries_a_variable() -> None:
    text = carried(loop(adding(1.0), outside=True))
    assert "BackEdge(result=1, parameter=1), BackEdge(result=2, parameter=2)" in text
    assert "ReadValue" not in text.replace("%ReadValue", "")


def test_variables_of_dynamic_size_get_symbols() -> None:
    assert "f32[1,v10_1,2] = KeptValue" in carried(cache(initial=False))


def test_variables_of_fixed_size_in_the_network_stay_as_they_are() -> None:
    graph = cache(initial=False, shape=(1, 4, 2))
    (sink,) = graph.sinks
    sink.in_port(0).connect(graph.get_op_nodes("ReadValue")[0].out_port(0))
    assert not carry_variables(graph)
