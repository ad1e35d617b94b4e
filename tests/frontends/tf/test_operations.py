"""Single operations against TensorFlow: all cases of a family in one network, sizes fixed and sizes left open.

`make_op_cases.py` wrote graphs, inputs and expected values. Integers are equal; floats within the bounds below.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import aot
from aot.frontends import front_passes, read_model
from aot.ir.interpret import interpret

FAMILIES = sorted(Path(__file__).parent.glob("op_cases/*.zip"))
NAMES = [p.stem for p in FAMILIES]
BOUNDS = {
    np.dtype(np.float16): 2e-3,
    np.dtype(np.float32): 1e-5,
    np.dtype(np.float64): 1e-11,
}  # relative; tenths absolute
Entry = list[Any]  # name, element type, shape, place of the first byte


def contents(path: Path) -> tuple[dict[str, bytes], dict[str, list[dict[str, Any]]], bytes]:
    """Graphs, cases of each graph, and elements."""
    with ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    cases = json.loads(files.pop("cases.json"))
    return files, cases, files.pop("data.bin")


def array(entry: Entry, data: bytes) -> np.ndarray[Any, Any]:
    _, dtype, shape, place = entry  # of strings: the strings themselves
    if dtype == "string":
        return np.array(place, object).reshape(shape)
    return np.frombuffer(data, np.dtype(dtype), int(np.prod(shape)), place).reshape(shape)


def inputs(cases: list[dict[str, Any]], data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Return the inputs of cases by name."""
    return {entry[0]: array(entry, data) for case in cases for entry in case["inputs"]}


def differs(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], own: float) -> str:
    """Return a text about the first difference; empty if the arrays are equal within the bound."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"{found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
    if wanted.dtype == object:
        return "" if found.tolist() == wanted.tolist() else f"{found.tolist()} instead of {wanted.tolist()}"
    bound = own or BOUNDS.get(wanted.dtype, 0.0)
    if np.allclose(found, wanted, rtol=bound, atol=bound / 10, equal_nan=True):
        return ""
    return f"{found.tolist()} instead of {wanted.tolist()}"


def problems(cases: list[dict[str, Any]], found: dict[str, Any], data: bytes) -> list[str]:
    """The outputs that differ."""
    return [
        f"{case['name']}, {entry[0]}: {text}"
        for case in cases
        for entry in case["outputs"]
        if (text := differs(np.asarray(found[entry[0]]), array(entry, data), case["tolerance"]))
    ]


def compiled(path: Path, sizes: str, folder: Path) -> list[str]:
    """Compile and run a graph; the outputs that differ."""
    graphs, cases, data = contents(path)
    file = folder / f"{path.stem}.pb"
    file.write_bytes(graphs[f"{sizes}.pb"])
    model = aot.compile_model(file, threads=1, max_seconds=600)  # a busy machine
    fed = inputs(cases[sizes], data)
    return problems(cases[sizes], dict(model([fed[t.name] for t in model.inputs])), data)


@pytest.mark.parametrize("sizes", ["graph", "graph_dynamic"])
@pytest.mark.parametrize("path", FAMILIES, ids=NAMES)
def test_conversions_mean_what_tensorflow_computes(path: Path, sizes: str, tmp_path: Path) -> None:
    """By the references of the opset."""
    graphs, cases, data = contents(path)
    file = tmp_path / f"{path.stem}.pb"
    file.write_bytes(graphs[f"{sizes}.pb"])
    graph = read_model(file)
    for front_pass in front_passes():
        front_pass(graph)
    fed = inputs(cases[sizes], data)
    results = interpret(graph, [fed[node.name] for node in graph.parameters])
    names = [node.name.split(".")[0] for node in graph.results]
    assert not problems(cases[sizes], dict(zip(names, results, strict=True)), data)


@pytest.mark.parametrize("path", FAMILIES, ids=NAMES)
def test_operations_give_what_tensorflow_gives(path: Path, tmp_path: Path) -> None:
    assert not compiled(path, "graph", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", FAMILIES, ids=NAMES)
def test_operations_give_it_where_sizes_are_left_open(path: Path, tmp_path: Path) -> None:
    assert not compiled(path, "graph_dynamic", tmp_path)
