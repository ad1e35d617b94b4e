"""Bodies that need not be control flow are put in place; those that stay lose what nobody reads."""

from __future__ import annotations

import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.text.parser import parse_graph
from aot.ir.types import Array
from aot.ir.verify import verify
from aot.passes.front.scope_region_symbols import scope_region_symbols
from aot.passes.middle.control.drop_unused_region_ports import drop_unused_region_ports
from aot.passes.middle.control.inline_regions import inline_regions
from aot.passes.middle.control.unify_branch_ranks import unify_branch_ranks
from aot.passes.middle.remove_dead_code import remove_dead_code
from aot.passes.pipeline import pipeline
from aot.passes.run import run_passes
from aot.runtime.abi import DType
from tests.passes.check import graph_of, operations, values

X = np.arange(6, dtype=np.float32).reshape(2, 3)

LOOP = """
graph m(%n: i64[], %x: f32[2,3], %k: f32[2,3]) {
  %trips = const<i64[] TRIPS>
  %yes = const<boolean[] True>
  %y, %same, %all: ?, ?, ? = Loop<input_maps=(InputMap(external=2, parameter=1), InputMap(external=3, parameter=2)),
    output_maps=(OutputMap(external=0, result=0), OutputMap(external=1, result=1),
    OutputMap(external=2, result=2, axis=0)), back_edges=(BackEdge(result=0, parameter=1),
    BackEdge(result=1, parameter=2)), current_iteration=0>(SOURCE, %yes, %x, %k) {
    body(%i: i64[], %v: f32[2,3], %k: f32[2,3]) {
      %next: ? = Add(%v, %k)
      %big: ? = Exp(%next)
      %r: ? = Result(%next)
      %s: ? = Result(%k)
      %t: ? = Result(%big)
    }
  }
  %out: ? = Result(%y)
  %sum: ? = Result(%y#1)
}"""

IF = """
graph m(%x: f32[2,3]) {
  %c = const<boolean[] CHOSEN>
  %y: ? = If<then_inputs=(InputMap(external=1, parameter=0),), then_outputs=(OutputMap(external=0, result=0),),
    else_inputs=(InputMap(external=1, parameter=0),), else_outputs=(OutputMap(external=0, result=0),)>(%c, %x) {
    then(%p: f32[2,3]) {
      %a: ? = Exp(%p)
      %r: ? = Result(%a)
    }
    else(%p: f32[2,3]) {
      %a: ? = Negative(%p)
      %r: ? = Result(%a)
    }
  }
  %out: ? = Result(%y)
}"""


def loop(trips: int | None) -> Graph:
    return parse_graph(LOOP.replace("TRIPS", str(trips or 0)).replace("SOURCE", "%n" if trips is None else "%trips"))


def results(graph: Graph, *inputs: Array) -> list[Array]:
    return interpret(graph, list(inputs))


@pytest.mark.parametrize(("chosen", "kind"), [("True", "Exp"), ("False", "Negative")])
def test_a_known_condition_chooses(chosen: str, kind: str) -> None:
    graph = parse_graph(IF.replace("CHOSEN", chosen))
    assert inline_regions(graph)
    assert operations(graph) == [kind]
    verify(graph)


@pytest.mark.parametrize(("trips", "left"), [(3, "Add"), (0, ""), (1000, "Loop")])
def test_short_loops_are_unrolled(trips: int, left: str) -> None:
    graph, arrays = loop(trips), [np.array(0), X, X]
    expected = results(graph, *arrays)
    run_passes(graph, [inline_regions, remove_dead_code])
    assert set(operations(graph)) == ({left} if left else set())
    assert all(map(np.array_equal, results(graph, *arrays), expected))


def test_values_that_a_loop_passes_on_come_from_outside() -> None:
    graph, arrays = loop(None), [np.array(4), X, X]
    expected = results(graph, *arrays)
    run_passes(graph, [drop_unused_region_ports, remove_dead_code])
    (node,) = (n for n in graph.nodes.values() if n.type == "Loop")
    assert len(node.out_ports()) == 1
    assert operations(node.regions["body"]) == ["Add"]
    assert graph.results[1].source(0) is graph.parameters[2].out_port(0)
    assert all(map(np.array_equal, results(graph, *arrays), expected))


def test_every_body_has_a_scope_of_its_own() -> None:
    outer = loop(None)
    inner, other = (loop(None) for _ in range(2))
    for node in outer.nodes.values():
        if node.type == "Loop":
            node.regions = {"body": inner, "again": other}
    assert scope_region_symbols(outer) and not scope_region_symbols(outer)
    nested = [b for g in (inner, other) for n in g.nodes.values() for b in n.regions.values()]
    assert len({g.scope for g in (outer, inner, other, *nested)}) == 5


BOUNDS = """
graph m(%c: boolean[], %x: f32[5], %n: f32[1]) {
  %a: ? = Convert<destination_type=i64>(%n)
  %b: ? = Convert<destination_type=i64>(%n)
  %y: ? = If<then_inputs=(InputMap(external=1, parameter=0), InputMap(external=2, parameter=1)),
    then_outputs=(OutputMap(external=0, result=0),), else_inputs=(InputMap(external=1, parameter=0),),
    else_outputs=(OutputMap(external=0, result=0),)>(%c, %x, %a) {
    then(%p: f32[5], %k: i64[1]) {
      %begin = const<i64[1] [0]>
      %step = const<i64[1] [1]>
      %s: ? = Slice(%p, %begin, %k, %step)
      %r: ? = Result(%s)
    }
    else(%p: f32[5]) {
      %r: ? = Result(%p)
    }
  }
  %out: ? = Result(%y)
  %other: ? = Result(%b)
}"""


def test_a_body_forgets_the_symbols_of_a_producer_that_was_replaced() -> None:
    """Sizes in a body are named after the values that go in, also where one takes the place of an equal one."""
    graph = parse_graph(BOUNDS)
    node = next(n for n in graph.nodes.values() if n.regions)
    old, new = node.source(2), graph.results[1].source(0)
    inside = node.regions["then"].parameters[1].out_port(0)
    node.operands()
    assert inside.symbols().tolist() == old.symbols().tolist()
    old.replace_by(new)
    graph.remove(old.node)
    node.operands()
    assert inside.symbols().tolist() == new.symbols().tolist()


def test_a_branch_that_never_runs_may_have_no_types() -> None:
    graph = parse_graph("""
graph m(%x: f32[1,4,1]) {
  %c = const<boolean[] True>
  %y: ? = If<then_inputs=(InputMap(external=1, parameter=0),), then_outputs=(OutputMap(external=0, result=0),),
    else_inputs=(InputMap(external=1, parameter=0),), else_outputs=(OutputMap(external=0, result=0),)>(%c, %x) {
    then(%p: f32[...]) {
      %a: ? = Exp(%p)
      %r: ? = Result(%a)
    }
    else(%q: f32[...]) {
      %s: ? = ShapeOf(%q)
      %n: ? = ShapeOf(%s)
      %two = const<i64[1] [2]>
      %g: ? = Equal(%n, %two)
      %v: ? = If<then_inputs=(InputMap(external=1, parameter=0),), then_outputs=(OutputMap(external=0, result=0),),
        else_inputs=(InputMap(external=1, parameter=0),), else_outputs=(OutputMap(external=0, result=0),)>(%g, %q) {
        then(%t: f32[...]) {
          %a: ? = Negative(%t)
          %r: ? = Result(%a)
        }
        else(%u: f32[...]) {
          %r: ? = Result(%u)
        }
      }
      %r: ? = Result(%v)
    }
  }
  %out: ? = Result(%y)
}""")
    run_passes(graph, pipeline())
    x = np.ones((1, 4, 1), np.float32)
    np.testing.assert_array_equal(results(graph, x)[0], np.exp(x))
    assert [n.type for n in graph.order()] == ["Parameter", "Exp", "Result"]


@pytest.mark.parametrize("size", ["n=1", "n=3"])
def test_consumers_of_a_dynamic_rank_may_read_other_values(size: str) -> None:
    """Each value becomes an input of the If once; all of what follows moves into the branches."""

    def make(b: Builder, x: OutPort, y: OutPort, z: OutPort) -> OutPort:
        shares = b.Softmax(b.Multiply(b.Subtract(b.Squeeze(x), y), z), axis=-1)
        return b.Reshape(b.Multiply(shares, y), b.const([-1], DType.I64))

    graph, fed = graph_of(make, (size, 1, 4), (), ()), values((size, 1, 4), (), ())
    (want,) = interpret(graph, fed)
    run_passes(graph, [unify_branch_ranks])
    verify(graph)
    np.testing.assert_array_equal(interpret(graph, fed)[0], want)
    assert operations(graph) == ["ShapeOf", "Gather", "Equal", "If"]
    (node,) = [n for n in graph.order() if n.type == "If"]
    assert [node.source(i).node.name for i in range(1, len(node.in_ports()))] == ["x0", "x1", "x2"]
