"""Reports of why a rule or a transformation did not fire: rules, patterns of functions, Model Optimizer's patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from typer.testing import CliRunner

from aot import cli
from aot.mo.middle.partial_match import PartialMatch
from aot.mo.middle.pattern_match import node_match
from aot.options import CompileOptions
from aot.runtime.errors import UsageError
from aot.tools.why_not import attempts
from tests.mo.graphs import build, op

FOLDER = Path(__file__).parents[2] / "examples" / "extensions"
DECORATORS = FOLDER / "decorators"
HEAD = '<ir_version: 10, opset_import: ["": 21, "me": 1]> m (float[1,3,5,5] x) => (float[n,c,h,w] y) '


def model(tmp_path: Path, body: str) -> Path:
    made = onnx.parser.parse_model(f"{HEAD}{{ {body} }}")
    for node in made.graph.node:
        node.name = node.output[0]
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def told(tmp_path: Path, body: str, name: str, **options: Any) -> list[str]:
    return [str(one) for one in attempts(model(tmp_path, body), name, CompileOptions(**options))]


@pytest.mark.parametrize(
    ("body", "rule", "expected"),
    [
        ("y = Relu(x)", "swish", []),
        ("s = Sigmoid(x) y = Mul(s, x)", "swish", ["y: swish fired"]),
        ("s = Sigmoid(x) t = Relu(x) y = Mul(s, t)", "swish", ["y: swish ended in line 14 of 14: none of its cases"]),
        (
            "y = Relu(x)",
            "drop_repeated_relu",
            ["y: drop_repeated_relu ended in line 6 of 7: inner is None: inner = source("],
        ),
        (
            "a = Relu(x) y = Relu(a)",
            "drop_repeated_relu",
            ["y: drop_repeated_relu fired", "a: drop_repeated_relu ended in line 6 of"],
        ),
    ],
    ids=range(5),
)
def test_rules_of_the_compiler_say_where_they_end(body: str, rule: str, expected: list[str], tmp_path: Path) -> None:
    found = told(tmp_path, body, rule)
    assert [line[: len(part)] for part, line in zip(expected, found, strict=True)] == expected


def test_a_report_tells_the_tensors_that_a_rule_looked_at(tmp_path: Path) -> None:
    assert told(tmp_path, "y = Relu(x)", "drop_repeated_relu")[0].endswith("is output 0 of Parameter 'x'")


def test_patterns_of_functions_say_what_does_not_fit(tmp_path: Path) -> None:
    found = told(tmp_path, "a = Relu(x) b = Sigmoid(x) y = Add(a, b)", "doubled_relu", extensions=DECORATORS)
    assert found == ["y: doubled_relu, 2 of 3 operations fit: input 1 of Add 'y' is made by Sigmoid 'b', not by Relu"]
    found = told(tmp_path, "a = Relu(x) b = Relu(a) y = Add(a, b)", "doubled_relu", extensions=DECORATORS)
    assert found[0].startswith(
        "y: doubled_relu, 3 of 3 operations fit: input 0 of Relu 'b' is another tensor than x elsewhere"
    )


def test_transformations_of_model_optimizer_say_what_does_not_fit(tmp_path: Path) -> None:
    folder = FOLDER / "mish"
    name = next(cls for cls in (folder / "front").glob("*.py")).read_text().partition("class ")[2].partition("(")[0]
    found = told(tmp_path, "s = Softplus(x) t = Tanh(s) y = Mul(x, t)", name, extensions=folder)
    assert found[0].endswith(f"{name} fired")
    found = told(tmp_path, "s = Softplus(x) t = Sigmoid(s) y = Mul(x, t)", name, extensions=folder)
    assert "node tanh of the pattern" in found[0]
    assert "has op = 'Sigmoid', not 'Tanh'" in found[0]


def test_unknown_rules_are_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="got swsh; did you mean swish"):
        told(tmp_path, "y = Relu(x)", "swsh")


NODES = [("a", {"op": "A"}), ("b", {"op": "B"}), ("c", {"op": "C"})]
EDGES = [("a", "b", {"in": 0}), ("b", "c", {"in": 1})]


@pytest.mark.parametrize(
    ("ops", "links", "matched", "reason"),
    [
        ("ABC", [("n0", "n1"), ("n1", "n2", {"in": 1})], 3, ""),
        (
            "ABC",
            [("n0", "n1"), ("n1", "n2", {"in": 0})],
            2,
            "node c of the pattern: 'n2' has no edge b -> c with {'in': 1}",
        ),
        ("ABD", [("n0", "n1"), ("n1", "n2", {"in": 1})], 2, "node c of the pattern: 'n2' has op = 'D', not 'C'"),
        ("AXC", [("n0", "n1")], 1, "node b of the pattern: 'n1' has op = 'X', not 'B'"),
        ("ABC", [], 1, "node b of the pattern: the nodes before it have no neighbour there"),
        ("XYZ", [], 0, "node a of the pattern: 'n0' has op = 'X', not 'A'; 'n1' has op = 'Y', not 'A'; 'n2' has"),
    ],
    ids=range(6),
)
def test_largest_part_of_a_pattern(ops: str, links: list[Any], matched: int, reason: str) -> None:
    graph = build({f"n{i}": op(kind) for i, kind in enumerate(ops)}, links)
    part = PartialMatch(graph, NODES, EDGES, node_match).search()
    assert len(part.best) == matched
    assert part.reason.startswith(reason) if matched < 3 else True


def test_command_line(tmp_path: Path) -> None:
    path = model(tmp_path, "s = Sigmoid(x) y = Mul(s, x)")
    result = CliRunner().invoke(cli.app, ["rewrite", str(path), "--explain", "swish"])
    assert (result.exit_code, result.stdout) == (0, "y: swish fired\n")
    assert CliRunner().invoke(cli.app, ["rewrite", str(path), "--explain", "absent"]).exit_code == 2
