"""Layers of Caffe, against OpenCV and NumPy: `cases.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from aot.codegen.ir.loops import Var
from aot.frontends import front_passes, read_model
from aot.frontends.caffe.registry import CONVERSIONS
from aot.ir.graph import Graph
from aot.ir.interpret import interpret
from aot.opset.control.infrastructure import Parameter
from tests.each import check_each
from tests.frontends.caffe.cases import CASES, Case

STORED = np.load(Path(__file__).with_name("cases.npz"))
WALKED = {"Split"}  # read without a conversion
SAME = {"ConvolutionDepthwise", "Inner_product", "Upsampling"}  # other names of types that have cases
FIXED = {"DetectionOutput", "SPP"}  # sizes must be known
ROWS = {"DetectionOutput": 2, "Proposal": 0, "Python": 0}  # axis of the rows that are found: fewer than there may be


def converted(path: Path, changed: Callable[[Graph], Graph] = lambda graph: graph) -> Graph:
    graph = changed(read_model(path))
    for convert in front_passes():
        convert(graph)
    return graph


def opened(graph: Graph) -> Graph:
    """Return a graph whose inputs have no fixed sizes; those that are equal on an axis stay equal."""
    for node in graph.parameters:
        op = node.op
        assert isinstance(op, Parameter) and op.shape is not None
        node.op = Parameter(op.element_type, tuple(Var(f"a{a}s{n}") for a, n in enumerate(op.shape)))
    return graph


def test_layers_give_what_caffe_gives(tmp_path: Path) -> None:
    check_each(lambda case: check_layer(case, tmp_path), CASES, lambda case: case.name)


def check_layer(case: Case, folder: Path) -> None:
    path = case.write(folder)
    check(case, interpret(converted(path), list(case.inputs)))
    if case.kind not in FIXED and case.inputs:
        check(case, interpret(converted(path, opened), list(case.inputs)))


def check(case: Case, found: list[Any]) -> None:
    wanted = (
        [STORED[f"{case.name}.{i}"] for i in range(case.tops)]
        if case.wanted is None
        else case.wanted(*case.inputs, *case.blobs)
    )
    wanted = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]
    assert len(found) == len(wanted)
    for y, right in zip(found, wanted, strict=True):
        if (axis := ROWS.get(case.kind)) is not None:
            rows = np.moveaxis(y, axis, 0)
            assert len(rows) == right.shape[axis] or rows[right.shape[axis]].reshape(-1)[0] == -1
            y = y.take(range(right.shape[axis]), axis)
            if axis:  # Caffe has the boxes of a class together, OpenCV those of the best scores first
                y = y[:, :, np.argsort(-y[0, 0, :, 2], kind="stable")]
        assert y.shape == right.shape
        np.testing.assert_allclose(y, right, rtol=2e-4, atol=2e-5)


def test_every_conversion_has_a_case() -> None:
    tried = {case.kind for case in CASES} | WALKED | SAME
    assert sorted(set(CONVERSIONS.load()) - tried) == []
