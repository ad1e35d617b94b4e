"""Graphs: links, types that follow changes, the rules of verify, interpretation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import aot.opset  # noqa: F401
from aot.codegen.ir.loops import Var
from aot.ir.graph import Graph, InPort, Node
from aot.ir.interpret import interpret
from aot.ir.op import Foreign
from aot.ir.registry import all_operations
from aot.ir.text.parser import parse_graph
from aot.ir.verify import verify
from aot.runtime.errors import InternalError, ModelError, UnsupportedError, UsageError

TEXT = """
graph m(%x: f32[2,3], %y: f32[3,4]) {
  %c = const<f32[4,1] [1, 2, 3, 4]>
  %a: ? = MatMul(%x, %y)
  %b: ? = MatMul(%a, %c)
  %r: ? = Result(%b)
  %s: ? = Result(%a)
}
"""
X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)


def node(graph: Graph, name: str) -> Node:
    return next(n for n in graph.nodes.values() if n.name == name)


def test_names_are_made_unique() -> None:
    graph = parse_graph(TEXT)
    added = graph.add(all_operations()["Result"](), node(graph, "a").out_port(0), name="r")
    assert added.name != "r"
    verify(graph)


def test_types_follow_changes() -> None:
    graph = parse_graph(TEXT)
    assert str(node(graph, "r").out_port(0).type) == "f32[2,1]"
    node(graph, "x").op = all_operations()["Parameter"](shape=(5, 3))
    assert str(node(graph, "r").out_port(0).type) == "f32[5,1]"
    node(graph, "b").in_port(0).connect(node(graph, "c").out_port(0))
    with pytest.raises(ModelError, match=r"MatMul: inner dimensions must be equal, got 1 and 4"):
        node(graph, "r").out_port(0).type  # noqa: B018


def test_inference_ends_where_types_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse_graph(TEXT)
    verify(graph)
    asked: list[str] = []
    for name in ("MatMul", "Result", "Abs"):
        kind = all_operations()[name]

        def infer(self: Any, *inputs: Any, kind: Any = kind, usual: Any = kind.infer) -> Any:
            asked.append(kind.type)
            return usual(self, *inputs)

        monkeypatch.setattr(kind, "infer", infer)
    added = graph.add(all_operations()["Abs"](), node(graph, "x").out_port(0))
    node(graph, "a").in_port(0).connect(added.out_port(0))
    verify(graph)
    assert asked == ["Abs"]
    node(graph, "a").in_port(0).connect(node(graph, "x").out_port(0))
    assert node(graph, "s").is_inferred
    node(graph, "y").op = all_operations()["Parameter"](shape=(3, Var("n", 9, 4, 5)))
    assert str(node(graph, "s").out_port(0).type) == "f32[2,n]"
    node(graph, "y").op = all_operations()["Parameter"](shape=(3, Var("n", 9, 4, 6)))
    size = node(graph, "s").out_port(0).shape[1]
    assert isinstance(size, Var)
    assert size.typical == 6


def test_the_order_follows_changes() -> None:
    graph = parse_graph(TEXT)
    assert [n.name for n in graph.order()] == ["x", "y", "c", "a", "b", "r", "s"]
    node(graph, "s").in_port(0).connect(node(graph, "c").out_port(0))
    added = graph.add(all_operations()["Abs"](), node(graph, "y").out_port(0), name="n")
    node(graph, "a").in_port(1).connect(added.out_port(0))
    assert [n.name for n in graph.order()] == ["x", "y", "c", "n", "a", "b", "r", "s"]
    graph.remove(node(graph, "s"))
    assert "s" not in [n.name for n in graph.order()]


def test_errors_of_inference_name_layer_and_inputs() -> None:
    graph = parse_graph(TEXT.replace("f32[3,4]", "f32[7,4]"))
    with pytest.raises(ModelError) as caught:
        verify(graph)
    assert caught.value.__notes__ == ["in layer 'a': MatMul(x, y)"]


def test_cycles_are_named() -> None:
    graph = parse_graph(TEXT)
    node(graph, "a").in_port(0).connect(node(graph, "b").out_port(0))
    for ask in (graph.order, lambda: node(graph, "r").out_port(0).type):
        with pytest.raises(ModelError, match=r"graph: cycle through layers (a -> b|b -> a)"):
            ask()


def test_order_is_that_of_addition_where_it_is_free() -> None:
    graph = parse_graph(TEXT)
    assert [n.name for n in graph.order()] == ["x", "y", "c", "a", "b", "r", "s"]


def cut(graph: Graph) -> None:
    node(graph, "b").in_port(1).disconnect()


def forget_reader(graph: Graph) -> None:
    node(graph, "a").out_port(0).destinations.pop()


def stray_reader(graph: Graph) -> None:
    node(graph, "a").out_port(0).destinations.append(InPort(node(graph, "b"), 0))


def reader_outside(graph: Graph) -> None:
    del graph.nodes[node(graph, "s").id]


def source_outside(graph: Graph) -> None:
    del graph.nodes[node(graph, "c").id]


def number_wrong(graph: Graph) -> None:
    node(graph, "b").in_port(1).idx = 5


def drop_result(graph: Graph) -> None:
    graph.results.pop()


def list_twice(graph: Graph) -> None:
    graph.parameters.append(graph.parameters[0])


def same_name(graph: Graph) -> None:
    node(graph, "a").name = "b"


def no_data(graph: Graph) -> None:
    node(graph, "c").data = None


def wrong_data(graph: Graph) -> None:
    node(graph, "c").data = np.zeros((4, 1), np.int32)


def no_regions(graph: Graph) -> None:
    graph.add(all_operations()["If"](), node(graph, "a").out_port(0), name="choice")


@pytest.mark.parametrize(
    ("break_it", "error", "message"),
    [
        (cut, ModelError, r"MatMul: input 1 is not connected"),
        (forget_reader, InternalError, r"s \(Result\): input 0 is listed 0 times at 'a'|output 0"),
        (stray_reader, InternalError, r"a \(MatMul\): output 0 lists <in 0 of b>, which reads something else"),
        (reader_outside, InternalError, r"a \(MatMul\): output 0 is read by 's', which is not in the graph"),
        (source_outside, InternalError, r"b \(MatMul\): input 1 reads 'c', which is not in the graph"),
        (number_wrong, InternalError, r"b \(MatMul\): input 1 is numbered 5"),
        (drop_result, InternalError, r"its list of Result nodes is wrong about \['s'\]"),
        (list_twice, InternalError, r"its list of Parameter nodes is wrong about a node listed twice"),
        (same_name, InternalError, r"names must differ, got 2 nodes named 'b'"),
        (no_data, InternalError, r"c \(Constant\): has data without being a Constant, or is one without data"),
        (wrong_data, InternalError, r"c \(Constant\): is declared f32 but holds int32"),
        (no_regions, InternalError, r"choice \(If\): has regions without being a RegionOp"),
    ],
)
def test_illegal_graphs(break_it: Callable[[Graph], None], error: type[Exception], message: str) -> None:
    graph = parse_graph(TEXT)
    verify(graph)
    break_it(graph)
    with pytest.raises(error, match=message):
        verify(graph)


def test_a_graph_is_interpreted_by_its_references() -> None:
    first, second = interpret(parse_graph(TEXT), [X, Y])
    assert np.array_equal(second, X @ Y)
    assert np.array_equal(first, X @ Y @ np.array([[1], [2], [3], [4]], np.float32))


def test_interpret_shows_every_value_once() -> None:
    seen: dict[str, np.ndarray] = {}
    interpret(parse_graph(TEXT), [X, Y], observe=lambda port, value: seen.update({port.node.name: value}))
    assert list(seen) == ["x", "y", "c", "a", "b", "r", "s"]
    assert np.array_equal(seen["a"], X @ Y)


def test_interpret_refuses() -> None:
    graph = parse_graph(TEXT)
    with pytest.raises(UsageError, match="2 inputs are needed, got 1"):
        interpret(graph, [X])
    with pytest.raises(InternalError, match=r"MatMul: the reference failed on float32\[3, 4\], float32.*in layer 'a'"):
        interpret(graph, [Y, Y])
    graph.add(Foreign(dialect="tf", kind="Pack"), name="p")
    with pytest.raises(UnsupportedError, match=r"tf\.Pack: a foreign operation has no reference, in layer 'p'"):
        interpret(graph, [X, Y])


def test_state_is_kept_between_runs() -> None:
    graph = parse_graph("""
        graph m(%x: f32[2]) {
          %zero = const<f32[2] [10, 20]>
          %old: ? = ReadValue_6<variable_id="v", variable_shape=(2,)>(%zero)
          %new: ? = Assign<variable_id="v">(%x)
          %r: ? = Result(%old)
        }""")
    verify(graph)
    assert graph.results[0].source(0).value is None  # what it begins with is not what it stays
    state: dict[str, np.ndarray] = {}
    runs = [interpret(graph, [np.full(2, i, np.float32)], state=state)[0].tolist() for i in range(3)]
    assert runs == [[10, 20], [0, 0], [1, 1]]
