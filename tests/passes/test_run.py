"""The runner: times, verifies, numbers, stops, and names the pass that fails."""

from __future__ import annotations

import pytest

from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, Origin, OutPort
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.elementwise.unary import Abs, Cos, Negative, Sin
from aot.passes.pass_order import sort_passes
from aot.passes.rewrite import RuleSet, rule
from aot.passes.run import run_items, run_passes
from aot.runtime.abi import DType
from aot.runtime.errors import PassError, ShapeError, UnsupportedError, UsageError


@rule(Negative)
def negative_to_abs(node: Node, op: Negative, build: Builder) -> OutPort | None:
    """-x -> |x|"""
    return build.Abs(node.source(0))


@rule(Sin)
def sin_to_cos(node: Node, op: Sin, build: Builder) -> OutPort | None:
    """sin x -> cos x"""
    return build.Cos(node.source(0))


@rule(Cos)
def cos_to_sin(node: Node, op: Cos, build: Builder) -> OutPort | None:
    """cos x -> sin x"""
    return build.Sin(node.source(0))


def chain(*types: type) -> Graph:
    graph = Graph()
    build = Builder(graph)
    port = build(Parameter(DType.F32, (2, 3)), name="x")
    for i, cls in enumerate(types):
        port = build(cls(), port, name=f"{cls.__name__.lower()}{i}")
    build(Result(), port, name="y")
    return graph


def types(graph: Graph) -> list[str]:
    return [n.type for n in graph.order()]


ABS = RuleSet("to_abs", (negative_to_abs,))


def test_the_report_counts_rewrites_by_pass_and_rule() -> None:
    graph = chain(Negative, Negative)
    report = run_passes(graph, [ABS, ABS])
    assert [(p.name, p.changed, p.rewrites) for p in report.passes] == [("to_abs", True, 2), ("to_abs.2", False, 0)]
    assert report.rules == {"negative_to_abs": 2}
    assert report.rewrites == 2
    assert "to_abs.2: unchanged (" in str(report)
    assert types(graph) == ["Parameter", "Abs", "Abs", "Result"]


def test_stop_after_rewrite() -> None:
    graph = chain(Negative, Negative, Negative)
    report = run_passes(graph, [ABS], stop_after_rewrite=2)
    assert report.rewrites == 2
    assert types(graph) == ["Parameter", "Abs", "Abs", "Negative", "Result"]


def test_required_passes_run_after_the_limit() -> None:
    graph = chain(Negative)
    run_passes(graph, [ABS, RuleSet("needed", (negative_to_abs,), required=True)], stop_after_rewrite=0)
    assert types(graph) == ["Parameter", "Abs", "Result"]


def test_names_stay() -> None:
    graph = chain(Negative, Negative)
    graph.nodes[1].out_port(0).add_tensor_names(["middle"])
    run_passes(graph, [ABS])
    assert [n.name for n in graph.order()] == ["x", "negative0", "negative1", "y"]
    assert graph.order()[1].out_port(0).names == ("middle",)


def test_endless_rules_are_named() -> None:
    with pytest.raises(PassError, match="turn: rules do not terminate; these fire: cos_to_sin, sin_to_cos"):
        run_passes(chain(Sin), [RuleSet("turn", (sin_to_cos, cos_to_sin))])


def test_failure_names_the_pass_and_the_last_rewrite() -> None:
    def broken(graph: Graph) -> bool:
        raise KeyError("oops")

    expected = "broken: 'oops'; last rewrite: 1 negative_to_abs at 'negative0'; passes before it: to_abs"
    with pytest.raises(PassError, match=expected):
        run_passes(chain(Negative), [ABS, broken])


@pytest.mark.parametrize("passes", [[ABS], ["FrontStart", ABS, "FrontFinish", ABS]])
def test_a_wrong_model_is_not_a_failing_pass(passes: list[object]) -> None:
    graph = Graph()
    build = Builder(graph)
    x, y = (build(Parameter(DType.F32, (2, n)), name=f"x{n}") for n in (3, 4))
    build(Result(), build.Add(build.Negative(x), y))
    with pytest.raises(ShapeError, match="Add: shapes do not broadcast: 3 and 4"):
        run_passes(graph, passes)


def test_broken_graph_is_found() -> None:
    def cut(graph: Graph) -> bool:
        graph.results[0].in_port(0).disconnect()
        return True

    with pytest.raises(PassError, match=r"^cut: "):
        run_passes(chain(Abs), [cut])


def test_unsupported_stays_unsupported() -> None:
    def refuse(graph: Graph) -> bool:
        raise UnsupportedError("Abs: no")

    with pytest.raises(UnsupportedError, match="Abs: no") as caught:
        run_passes(chain(Abs), [refuse])
    assert caught.value.__notes__ == ["in pass refuse"]


def test_a_replacement_of_another_type_is_refused() -> None:
    @rule(Abs)
    def shrink(node: Node, op: Abs, build: Builder) -> OutPort | None:
        """|x| -> 1"""
        return build.const(1, DType.F32)

    with pytest.raises(PassError, match=r"shrink: 'abs0' was f32\[2,3\], its replacement is f32\[\]"):
        run_passes(chain(Abs), [RuleSet("wrong", (shrink,))])


def test_extension_with_condition_and_switch() -> None:
    class ToAbs:
        enabled = True
        graph_condition = (lambda graph: len(graph.nodes) == 3,)

        def find_and_replace_pattern(self, graph: Graph) -> None:
            ABS(graph)

    for graph, expected in ((chain(Negative), "Abs"), (chain(Negative, Negative), "Negative")):
        run_passes(graph, ["MiddleStart", "MiddleFinish"], [ToAbs])
        assert types(graph)[1] == expected
    ToAbs.enabled = False
    graph = chain(Negative)
    run_passes(graph, ["MiddleStart", "MiddleFinish"], [ToAbs])
    assert types(graph)[1] == "Negative"


def test_observer_sees_the_graph_after_each_pass() -> None:
    seen: list[tuple[str, list[str]]] = []
    run_passes(chain(Negative), [ABS], observe=lambda report, graph: seen.append((report.name, types(graph))))
    assert seen == [("to_abs", ["Parameter", "Abs", "Result"])]


def test_unused_nodes_of_a_declining_rule_vanish() -> None:
    @rule(Abs)
    def hesitate(node: Node, op: Abs, build: Builder) -> OutPort | None:
        """|x| -> |x|"""
        build.Sin(build.Cos(node.source(0)))
        return None

    graph = chain(Abs)
    assert not RuleSet("never", (hesitate,))(graph)
    assert types(graph) == ["Parameter", "Abs", "Result"]


def test_origins_merge() -> None:
    @rule(Negative)
    def join(node: Node, op: Negative, build: Builder) -> OutPort | None:
        """-(-x) -> |x|"""
        above = node.source(0).node
        return build.Abs(above.source(0)) if isinstance(above.op, Negative) else None

    graph = chain(Negative, Negative)
    graph.nodes[1].origin, graph.nodes[2].origin = Origin(("one",)), Origin(("two",))
    RuleSet("join", (join,))(graph)
    assert graph.order()[1].origin.layers == ("two", "one")


def test_bodies_of_sub_graphs_are_rewritten_too() -> None:
    graph, body = chain(Abs), chain(Negative)
    graph.nodes[1].regions["body"] = body
    seen: list[Graph] = []

    class Look:
        run_not_recursively = True

        def __call__(self, graph: Graph) -> bool:
            seen.append(graph)
            return False

    report = run_passes(graph, [ABS, Look()], check=lambda graph: None)
    assert types(body) == ["Parameter", "Abs", "Result"]
    assert report.rewrites == 1
    assert seen == [graph]


def test_check_each_left_out_checks_extensions_and_the_last_graph() -> None:
    def cut(graph: Graph) -> bool:
        graph.results[0].source(0).destinations.clear()
        return True

    graph = chain(Negative)
    with pytest.raises(PassError, match=r"^graph passes: .*; --verify finds the pass; .*: cut, to_abs$"):
        run_items(graph, sort_passes([cut, ABS], ()), check_each=False)
    with pytest.raises(UsageError, match=r"^extension cut: InternalError: "):
        run_items(chain(Abs), sort_passes(["MiddleStart", ABS, "MiddleFinish"], [cut]), check_each=False)
