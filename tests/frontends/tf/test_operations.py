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
from aot.runtime.arrays.strings import PARTS, encode, texts
from tests.inferred import results_of

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


def in_parts(arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays, those of strings as the three tensors that compiled code reads."""
    found = dict(arrays)
    for name in [n for n, array in arrays.items() if array.dtype == object]:
        found |= zip((f"{name}.{part}" for part in PARTS), encode(arrays[name]), strict=True)
    return found


def of_parts(names: list[str], arrays: list[np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Return results by name; three tensors of one name are strings."""
    found: dict[str, list[np.ndarray[Any, Any]]] = {}
    for name, array in zip(names, arrays, strict=True):
        found.setdefault(name.split(".")[0], []).append(array)
    return {name: texts(*parts) if parts[1:] else parts[0] for name, parts in found.items()}


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


@pytest.mark.parametrize("sizes", ["graph", "graph_dynamic"])
@pytest.mark.parametrize("path", FAMILIES, ids=NAMES)
def test_conversions_mean_what_tensorflow_computes(path: Path, sizes: str, tmp_path: Path) -> None:
    """By the references of the opset, after all passes; inferred types hold.

    `tests/opset` compiles each operation with fixed and with open sizes, and `test_models.py` whole networks.
    """
    graphs, cases, data = contents(path)
    file = tmp_path / f"{path.stem}.pb"
    file.write_bytes(graphs[f"{sizes}.pb"])
    graph = aot.stages(file, max_seconds=600).optimized  # a busy machine
    fed = in_parts(inputs(cases[sizes], data))
    results = results_of(graph, [fed[node.name] for node in graph.parameters])
    names = [graph.strings.get(node.id, node.name) for node in graph.results]
    assert not problems(cases[sizes], of_parts(names, results), data)
