"""Operations of PaddlePaddle, against its own results: `cases.py`."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.frontends import front_passes, read_model
from aot.frontends.paddle.older import read_older, rows
from aot.frontends.paddle.pir import read_program
from aot.frontends.paddle.program import Block
from aot.frontends.paddle.registry import CONVERSIONS
from aot.ir.graph import Graph
from aot.ir.interpret import interpret
from aot.opset.control.infrastructure import Parameter
from tests.each import check_each
from tests.frontends.paddle.case import Case, array, stored
from tests.frontends.paddle.cases import CASES

SUFFIXES = ("json", "pdmodel")
MADE = {"builtin.scalar"}  # by the reader, for loops
CHOSEN = {"select_input"}  # which the reader makes an `if` of


def written(case: Case, suffix: str, folder: Path) -> Path:
    """Return the file of a case."""
    path = folder / f"m.{suffix}"
    path.write_bytes(b64decode(stored()[case.name][suffix]["file"]))
    return path


def converted(path: Path, is_open: bool = False) -> Graph:
    """Return the network in a file; with inputs of no fixed sizes, of which those that are equal on an axis stay so."""
    graph = read_model(path)
    for node in graph.parameters if is_open else ():
        op = node.op
        assert isinstance(op, Parameter) and op.shape is not None
        node.op = Parameter(op.element_type, tuple(Var(f"a{a}s{n}") for a, n in enumerate(op.shape)))
    for convert in front_passes():
        convert(graph)
    return graph


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_operations_give_what_paddlepaddle_gives(suffix: str, tmp_path: Path) -> None:
    cases = [case for case in CASES if suffix in stored()[case.name]]
    check_each(lambda case: check_operation(case, suffix, tmp_path), cases, lambda case: case.name)


def check_operation(case: Case, suffix: str, folder: Path) -> None:
    path = written(case, suffix, folder)
    for is_open in (False,) if case.fixed else (False, True):
        graph = converted(path, is_open)
        given = {f"x{i}": x for i, x in enumerate(case.inputs)}
        found = interpret(graph, [given[node.name] for node in graph.parameters])
        check(found, stored()[case.name][suffix]["results"])


def check(found: list[Any], results: list[Any]) -> None:
    assert len(found) == len(results)
    for y, right in zip(found, map(array, results), strict=True):
        assert y.shape == right.shape and y.dtype == right.dtype
        np.testing.assert_allclose(y, right, rtol=2e-4, atol=2e-5)


def kinds(block: Block) -> set[str]:
    """Return the kinds of the operations of a block and of its blocks."""
    return {op.kind for op in block.operations}.union(*(kinds(b) for op in block.operations for b in op.blocks))


def test_every_conversion_has_a_case(tmp_path: Path) -> None:
    tried, older = set[str](), set[str]()
    for case in CASES:
        kept = stored()[case.name]
        if "json" in kept:
            tried |= kinds(read_program(written(case, "json", tmp_path)).block)
        if "pdmodel" in kept:
            older |= kinds(read_older(written(case, "pdmodel", tmp_path)).block)
    assert sorted(CONVERSIONS.load().keys() - MADE - {k.rstrip("_") for k in tried} - older) == []
    assert sorted({row.kind for row in rows().values()} - older - CHOSEN) == []
