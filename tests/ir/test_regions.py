"""If, Loop, TensorIterator: their types from those of their bodies, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Var, as_expr
from aot.ir.graph import Graph
from aot.ir.interpret import interpret
from aot.ir.text.parser import parse_graph
from aot.ir.types import dim_text
from aot.ir.verify import verify
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError

IF = """
graph m(%c: boolean[], %x: f32[n,3], %w: f32[3,3]) {
  %y: ? = If<then_inputs=(InputMap(external=1, parameter=0), InputMap(external=2, parameter=1)),
    then_outputs=(OutputMap(external=0, result=0),), else_inputs=(InputMap(external=1, parameter=0),),
    else_outputs=(OutputMap(external=0, result=0),)>(%c, %x, %w) {
    then(%p: f32[m,3], %q: f32[3,3]) {
      %a: ? = MatMul(%p, %q)
      %r: ? = Result(%a)
    }
    else(%p: f32[k,3]) {
      %r: ? = Result(%p)
    }
  }
  %out: ? = Result(%y)
}"""

# h = x[:, i] @ h, h0 = given; returns the last h and all of them along axis 0
ITERATE = """
graph m(%x: f32[2,SIZE,2], %h: f32[2,1,2]) {
  %y, %y#1: ?, ? = TensorIterator<input_maps=(InputMap(external=0, parameter=0, axis=1ORDER),
    InputMap(external=1, parameter=1)), output_maps=(OutputMap(external=1, result=0, axis=1ORDER),
    OutputMap(external=0, result=0)), back_edges=(BackEdge(result=0, parameter=1),)>(%x, %h) {
    body(%part: f32[2,1,2], %state: f32[2,1,2]) {
      %next: ? = Add(%part, %state)
      %r: ? = Result(%next)
    }
  }
  %last: ? = Result(%y)
  %all: ? = Result(%y#1)
}"""

# doubles v while it stays below `limit` and at most `trips` times
LOOP = """
graph m(%trips: i64[], %v: f32[1], %limit: f32[1]) {
  %yes = const<boolean[] True>
  %y: ? = Loop<input_maps=(InputMap(external=2, parameter=1), InputMap(external=3, parameter=2)),
    output_maps=(OutputMap(external=0, result=1),), back_edges=(BackEdge(result=1, parameter=1),),
    current_iteration=0, execution_condition=0>(%trips, %yes, %v, %limit) {
    body(%i: i64[], %v: f32[1], %limit: f32[1]) {
      %twice: ? = Add(%v, %v)
      %small: ? = Less(%twice, %limit)
      %go: ? = Result(%small)
      %r: ? = Result(%twice)
    }
  }
  %out: ? = Result(%y)
}"""


def checked(text: str) -> Graph:
    graph = parse_graph(text)
    verify(graph)
    return graph


def test_if_runs_one_branch() -> None:
    graph = checked(IF)
    assert str(graph.results[0].out_port(0).type) == "f32[n,3]"
    x, w = np.ones((2, 3), np.float32), np.full((3, 3), 2, np.float32)
    assert np.array_equal(interpret(graph, [np.array(True), x, w])[0], x @ w)
    assert np.array_equal(interpret(graph, [np.array(False), x, w])[0], x)


def test_if_with_branches_of_different_shape() -> None:
    graph = checked(IF.replace("%w: f32[3,3]", "%w: f32[3,5]").replace("%q: f32[3,3]", "%q: f32[3,5]"))
    n, size = graph.results[0].out_port(0).shape
    assert (dim_text(n), bounds(normal(as_expr(size, DType.I64), {}))) == ("n", (3, 5))


def test_if_with_branches_of_different_rank_takes_the_first() -> None:
    graph = checked(IF.replace("f32[3,3]", "f32[3]"))
    assert str(graph.results[0].out_port(0).type) == "f32[n]"


def test_if_with_branches_of_different_element_types() -> None:
    with pytest.raises(ShapeError, match="If: branches must give equal element types"):
        checked(IF.replace("%a: ? = MatMul(%p, %q)", "%a: ? = Convert<destination_type=i32>(%p)"))


def test_bodies_have_the_types_of_what_goes_in() -> None:
    with pytest.raises(ShapeError, match=r"If: parameter 'q' is f32\[3,3\], got f32\[3,5\]"):
        checked(IF.replace("%w: f32[3,3]", "%w: f32[3,5]"))


@pytest.mark.parametrize("order", ["", ", start=-1, end=0, stride=-1"])
def test_tensor_iterator(order: str) -> None:
    graph = checked(ITERATE.replace("ORDER", order).replace("SIZE", "4"))
    assert [str(r.out_port(0).type) for r in graph.results] == ["f32[2,1,2]", "f32[2,4,2]"]
    x, h = np.arange(16, dtype=np.float32).reshape(2, 4, 2), np.ones((2, 1, 2), np.float32)
    last, every = interpret(graph, [x, h])
    sums = (h + x[:, ::-1].cumsum(1))[:, ::-1] if order else h + x.cumsum(1)
    assert np.array_equal(every, sums)
    assert np.array_equal(last, sums[:, :1] if order else sums[:, -1:])


@pytest.mark.parametrize("wrong", [", start=4", ", end=9", ", start=-5", ", part_size=0", ", stride=0"])
def test_slices_must_lie_in_their_input(wrong: str) -> None:
    with pytest.raises(ShapeError, match="sliced input: "):
        checked(ITERATE.replace("ORDER", wrong).replace("SIZE", "4"))


def test_tensor_iterator_over_a_size_known_at_run_time() -> None:
    graph = checked(ITERATE.replace("ORDER", "").replace("SIZE", "n"))
    assert str(graph.results[1].out_port(0).type) == "f32[2,n,2]"


@pytest.mark.parametrize(("trips", "limit", "result"), [(3, 1e9, 8), (-1, 20, 32), (0, 1e9, 1), (100, 1, 2)])
def test_a_loop_ends_at_its_count_or_condition(trips: int, limit: float, result: float) -> None:
    graph = checked(LOOP)
    assert str(graph.results[0].out_port(0).type) == "f32[1]"
    one = np.ones(1, np.float32)
    assert interpret(graph, [np.array(trips), one, one * np.float32(limit)])[0].tolist() == [result]


def test_loop_of_unknown_length_collects_as_many_as_it_runs() -> None:
    graph = checked(LOOP.replace("external=0, result=1)", "external=0, result=1, axis=0)"))
    (size,) = graph.results[0].out_port(0).shape
    assert isinstance(size, Var)
    one = np.ones(1, np.float32)
    assert interpret(graph, [np.array(9), one, one * np.float32(9)])[0].tolist() == [2, 4, 8, 16]


def test_a_carried_size_that_grows_is_a_symbol() -> None:
    graph = checked(
        LOOP.replace("%twice: ? = Add(%v, %v)", "%twice: ? = Concat<axis=0>(%v, %v)")
        .replace("Less(%twice, %limit)", "Less(%limit, %limit)")
        .replace("%i: i64[], %v: f32[1]", "%i: i64[], %v: f32[m]")
    )
    (size,) = graph.results[0].out_port(0).shape
    assert isinstance(size, Var)


def test_a_loop_must_end() -> None:
    forever = LOOP.replace("%small: ? = Less(%twice, %limit)", "%small = const<boolean[1] [True]>")
    forever = forever.replace("%trips: i64[], ", "").replace("%yes =", "%trips = const<i64[] -1>\n  %yes =")
    with pytest.raises(UnsupportedError, match="Loop: it must end by its condition or after a number of iterations"):
        checked(forever)
