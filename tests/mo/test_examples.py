"""The example extensions: what they make of small ONNX models, and that near misses stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from typer.testing import CliRunner

from aot import cli
from aot.compilation.driver import compile_model, stages
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from tests.frontends.onnx.models import Array, model, save

EXAMPLES = Path(__file__).parents[2] / "examples" / "extensions"
X = np.random.default_rng(0).standard_normal((2, 4, 3, 5)).astype(np.float32)


def options(name: str) -> CompileOptions:
    folder = EXAMPLES / name
    return CompileOptions(level=None, extensions=folder, transformations_config=tuple(folder.glob("*.json")))


def chain(*steps: str | tuple[Any, ...], x: Array = X, constants: dict[str, Array] | None = None) -> onnx.ModelProto:
    """Nodes (kind, inputs, name, attributes), each giving the tensor of its name; the last one is the output."""
    nodes: list[onnx.NodeProto] = []
    for kind, inputs, name, *rest in steps:
        attrs: dict[str, Any] = dict(rest[0]) if rest else {}
        nodes.append(helper.make_node(kind, inputs, [name], name=name, **attrs))
    return model(nodes, {"x": x}, [nodes[-1].output[0]], constants, opset=11, domain="me")


def mish(x: Array) -> Array:
    return x * np.tanh(np.log1p(np.exp(x)))


def region(x: Array) -> Array:
    """Classes and coordinates of boxes, from OpenVINO's definition for do_softmax = 0: sigmoid of all but w, h."""
    boxes = x.reshape(x.shape[0], 2, 25, *x.shape[2:])
    made = 1 / (1 + np.exp(-boxes))
    made[:, :, 2:4] = boxes[:, :, 2:4]
    return made.reshape(x.shape)


@dataclass(frozen=True)
class Case:
    name: str
    made: Callable[[], onnx.ModelProto]
    wanted: Callable[[Array], Array]
    has: tuple[str, ...]  # types of the imported network that must be there after its phases
    not_has: tuple[str, ...] = ()
    x: Array = field(default_factory=lambda: X)


MISH: list[tuple[Any, ...]] = [("Softplus", ["x"], "soft"), ("Tanh", ["soft"], "tanh"), ("Mul", ["x", "tanh"], "y")]
NEAR: list[tuple[Any, ...]] = [
    ("Sin", ["x"], "s"),
    ("Softplus", ["x"], "soft"),
    ("Tanh", ["soft"], "tanh"),
    ("Mul", ["s", "tanh"], "y"),
]
BLOCKS: list[tuple[Any, ...]] = [("Relu", ["x"], "in")]
for block, source in ((0, "in"), (1, "net/block_0/concat")):
    at = f"net/block_{block}"
    BLOCKS += [
        ("Relu", [source], f"{at}/left"),
        ("Tanh", [source], f"{at}/right"),
        ("Concat", [f"{at}/left", f"{at}/right"], f"{at}/concat", {"axis": 1}),
    ]
BLOCKS.append(("Sin", ["net/block_1/concat"], "y"))
HEAD: list[tuple[Any, ...]] = [
    ("Abs", ["x"], "pre"),
    ("Sigmoid", ["pre"], "head/sigmoid"),
    ("Mul", ["head/sigmoid", "two"], "head/mul"),
    ("Sub", ["head/mul", "two"], "boxes"),
]
NORM: list[tuple[Any, ...]] = [
    ("Mul", ["x", "x"], "square"),
    ("ReduceSum", ["square"], "sum", {"axes": [1]}),
    ("Max", ["sum", "eps"], "max"),
    ("Sqrt", ["max"], "sqrt"),
    ("Div", ["x", "sqrt"], "y"),
]
TWO, EPS = {"two": np.float32(2)[None]}, {"eps": np.float32(0.25)[None]}
PACK: list[tuple[Any, ...]] = [
    ("Abs", ["x"], "a"),
    ("Pack", ["x", "a"], "p", {"axis": 1, "domain": "me"}),
    ("Sin", ["p"], "y"),
]


def norm(x: Array) -> Array:
    return x / np.sqrt(np.maximum((x * x).sum(1, keepdims=True), 0.25))


CASES = [
    Case("mish", lambda: chain(*MISH), mish, ("Mish",), ("Tanh", "SoftPlus")),
    Case("mish", lambda: chain(*NEAR), lambda x: np.sin(x) * mish(x) / x, ("Tanh",), ("Mish",)),
    Case("pack", lambda: chain(*PACK), lambda x: np.sin(np.stack([x, np.abs(x)], 1)), ("Unsqueeze", "Concat")),
    Case(
        "squeeze",
        lambda: chain(("Squeeze", ["x"], "y", {"axes": [1, 3]})),
        lambda x: x[:, 0, :, 0],
        ("Squeeze",),
        x=X[:, :1, :, :1],
    ),
    Case("squeeze", lambda: chain(("Identity", ["x"], "i"), ("Sin", ["i"], "y")), np.sin, ("Sin",), ("Squeeze",)),
    Case(
        "own_softmax",
        lambda: chain(("Softmax", ["x"], "y", {"axis": 1})),
        lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
        ("Softmax",),
    ),
    Case(
        "constant",
        lambda: chain(
            ("Constant", [], "c", {"value": onnx.numpy_helper.from_array(X[:1])}),
            ("Add", ["x", "c"], "y"),
        ),
        lambda x: x + X[:1],
        ("Add",),
    ),
    Case(
        "region",
        lambda: chain(("Neg", ["x"], "y"), x=np.zeros((1, 50, 2, 3), np.float32)),
        lambda x: region(-x),
        ("RegionYolo",),
        x=X.reshape(-1)[:100].repeat(3).reshape(1, 50, 2, 3),
    ),
    Case(
        "block",
        lambda: chain(*BLOCKS),
        lambda x: np.sin(np.concatenate([np.maximum(x, 0)] * 4, 1)),
        ("Concat",),
        ("Tanh",),
    ),
    Case("head", lambda: chain(*HEAD, constants=TWO), lambda x: mish(np.abs(x)), ("Mish",), ("Sigmoid",)),
    Case("l2norm", lambda: chain(*NORM, constants=EPS), norm, ("NormalizeL2",), ("Divide", "Sqrt")),
    Case(
        "l2norm",
        lambda: chain(*NORM[:-1], ("Div", ["square", "sqrt"], "y"), constants=EPS),
        lambda x: norm(x) * x,
        ("Divide",),
        ("NormalizeL2",),
    ),
    Case(
        "swap",
        lambda: chain(("Neg", ["x"], "n"), ("Abs", ["n"], "a"), ("Sin", ["a"], "y")),
        lambda x: np.sin(np.abs(x)),
        ("Abs",),
        ("Negative",),
    ),
    Case("swap", lambda: chain(("Neg", ["x"], "n"), ("Tanh", ["n"], "y")), lambda x: np.tanh(-x), ("Negative",)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_an_example_changes_what_it_says_and_nothing_else(tmp_path: Path, case: Case) -> None:
    made = case.made()
    for info, size in zip(made.graph.input[0].type.tensor_type.shape.dim, case.x.shape, strict=True):
        info.dim_value = size
    path = save(tmp_path, made)
    shown: dict[str, str] = {}
    given = options(case.name)
    last = "mo_middle" if case.name in ("l2norm", "swap") else "onnx_to_opset"
    fields = {f: getattr(given, f) for f in ("level", "extensions", "transformations_config")}
    compiled = stages(path, CompileOptions(**fields, print_after=(last,), on_dump=shown.__setitem__))
    _ = compiled.optimized
    text = shown[last]
    assert all(f" = {kind}" in text for kind in case.has), text
    assert not any(f" = {kind}" in text for kind in case.not_has), text
    found = interpret(compiled.optimized, [case.x])
    np.testing.assert_allclose(found[0], case.wanted(case.x), rtol=2e-5, atol=2e-6)


def test_a_compiled_example_computes_the_same_under_the_same_names(tmp_path: Path) -> None:
    path = save(tmp_path, chain(*MISH))
    plain, changed = compile_model(path, CompileOptions(level=None)), compile_model(path, options("mish"))
    assert [o.name for o in changed.outputs] == [o.name for o in plain.outputs] == ["y"]
    np.testing.assert_allclose(changed(X)[0], mish(X), rtol=2e-5, atol=2e-6)


def test_the_command_line_reads_the_files_of_both_spellings(tmp_path: Path) -> None:
    path = save(tmp_path, chain(*BLOCKS))
    for option in ("--transformations-config", "--transformations_config"):
        command = ["dump", str(path), "--stage", "optimized", "--extensions", str(EXAMPLES / "block")]
        done = CliRunner().invoke(cli.app, [*command, option, str(EXAMPLES / "block" / "block.json")])
        assert done.exit_code == 0
        assert "Tanh" not in done.output


def test_inputs_and_outputs_are_written_into_a_template(tmp_path: Path) -> None:
    path, template = save(tmp_path, chain(*BLOCKS)), tmp_path / "t.json"
    template.write_text('[{"id": "Block", "match_kind": "scope", "instances": ["net/block_0"]}]')
    done = CliRunner().invoke(cli.app, ["config", str(path), str(template)])
    assert done.exit_code == 0
    for text in ('"node": "left$"', '"node": "right$"', '"node": "concat$"'):
        assert text in done.output
