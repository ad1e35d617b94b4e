"""Single operations against ONNX Runtime: all cases of a family in one network for each opset."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import aot
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from tests.frontends.onnx.case import FAMILIES, Group, feeds, groups, model_of, problems
from tests.frontends.onnx.models import Array, converted, save

pytestmark = pytest.mark.oracle
FAST = CompileOptions(level=None)


def opened(group: Group) -> Group:
    """Return the cases whose sizes may be left open."""
    return tuple(entry for entry in group if entry[1].open)


def interpreted(folder: Path, group: Group, opens: bool) -> dict[str, Array]:
    """Return the outputs of cases, by the references of the opset."""
    graph = converted(save(folder, model_of(group, opens)))
    given = feeds(group)
    results = interpret(graph, [given[node.name] for node in graph.parameters])
    return dict(zip([node.name.split(".")[0] for node in graph.results], results, strict=True))


@pytest.mark.parametrize("sizes", ["fixed", "open"])
@pytest.mark.parametrize("family", FAMILIES)
def test_conversions_mean_what_onnx_runtime_computes(family: str, sizes: str, tmp_path: Path) -> None:
    found: list[str] = []
    for group in groups(family):
        chosen = group if sizes == "fixed" else opened(group)
        found += problems(family, chosen, interpreted(tmp_path, chosen, sizes == "open")) if chosen else ()
    assert not found, "\n".join(found)


def first_of_each(family: str) -> list[Group]:
    """Return the first case of each operation, by opset."""
    kept: dict[str, int] = {}
    for number, one in chain(*groups(family)):
        kept.setdefault(f"{one.op} {[node.op_type for node in one.nodes]}", number)
    chosen = (tuple(entry for entry in group if entry[0] in kept.values()) for group in groups(family))
    return [group for group in chosen if group]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_operations_give_what_onnx_runtime_gives(family: str, tmp_path: Path) -> None:
    """`tests/opset` compiles what conversions lead to, with all attributes and types."""
    found: list[str] = []
    for group in first_of_each(family):
        model = aot.compile_model(save(tmp_path, model_of(group)), FAST, threads=1)
        given = feeds(group)
        results = model([given[t.name] for t in model.inputs])
        found += problems(family, group, {n: np.asarray(v) for n, v in dict(results).items()})
    assert not found, "\n".join(found)
