"""Single operations against PyTorch: `make_op_cases.py` wrote programs, inputs and expected values.

Integers are equal; floats within the bounds below, of the largest number of an output.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import ml_dtypes
import numpy as np
import pytest

from tests.each import check_each
from tests.frontends.onnx.models import run
from tests.frontends.pt2.archives import entries, packed

FAMILIES = sorted(Path(__file__).parent.glob("op_cases/*.zip"))
SHORT = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}
BOUNDS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 1e-11}


@cache
def contents(path: Path) -> tuple[bytes, list[dict[str, Any]]]:
    """The elements of a family, and its cases."""
    with ZipFile(path) as archive:
        return archive.read("data.bin"), json.loads(archive.read("cases.json"))


def array(entry: list[Any], data: bytes) -> np.ndarray:
    kind, shape, place = entry
    dtype = np.dtype(SHORT.get(kind, kind))
    return np.frombuffer(data, dtype, int(np.prod(shape)), place).reshape(shape)


def assert_close(found: np.ndarray, wanted: np.ndarray, kind: str, own: float) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if kind not in BOUNDS:
        assert found.tolist() == wanted.tolist()
        return
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite], equal_nan=True)
    size = max(np.abs(b[finite]).max(initial=0), 1e-3)
    assert np.abs(a[finite] - b[finite]).max(initial=0) <= (own or BOUNDS[kind]) * size


def saved(program: dict[str, Any], data: bytes, folder: Path) -> Path:
    """The file of a program of a case."""
    stored = {path: data[place : place + count] for path, (place, count) in program["data"].items()}
    file = folder / "m.pt2"
    file.write_bytes(packed(entries(program["program"], program["configs"], stored)))
    return file


def check(path: Path, case: dict[str, Any], sizes: str, folder: Path) -> None:
    data, _ = contents(path)
    found = run(saved(case[sizes], data, folder), *(array(e, data) for e in case["inputs"]), seed=1)
    assert len(found) == len(case["outputs"])
    for value, entry in zip(found, case["outputs"], strict=True):
        assert_close(np.asarray(value), array(entry, data), entry[0], case["tolerance"])


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.stem)
def test_operations_give_what_pytorch_gives(path: Path, tmp_path: Path) -> None:
    cases = [(case, sizes) for case in contents(path)[1] for sizes in ("fixed", "open") if sizes in case]
    check_each(lambda c: check(path, *c, tmp_path), cases, lambda c: f"{c[0]['name']}, {c[1]} sizes")
