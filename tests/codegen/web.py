"""Runs compiled models in Node.js, through the loader that comes with them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.codegen.llvm.callers import loader_files
from aot.runtime.arrays.tensors import Array, numpy_dtype
from aot.runtime.loading.library import read_manifest

PROGRAM = Path(__file__).with_name("wasm.mjs")
Answer = dict[str, Array] | list[int] | str
Call = Mapping[str, Any] | str  # inputs by name, "reset", or what `generate` takes, with `ids`
_TYPES = {"f4": "Float32Array", "f8": "Float64Array", "i8": "BigInt64Array", "u8": "BigUint64Array"} | {
    f"{sign}{size}": f"{name}{8 * size}Array" for sign, name in (("i", "Int"), ("u", "Uint")) for size in (1, 2, 4)
}


def run_in_node(folder: Path, jobs: Sequence[tuple[str, Sequence[Call]]], **flags: int) -> list[list[Answer]]:
    """Return the outputs, by name, or the tokens, or the error, of each call of each module, a file in `folder`.

    Of a module that does not load, there is one error.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, 20 or newer")
    for path, text in loader_files(Path("model.mjs")).items():
        (folder / path).write_text(text, encoding="utf-8")
    shutil.copy(PROGRAM, folder)
    told = [
        {"module": module, "calls": [_told(folder, f"{module}.{k}", c) for k, c in enumerate(calls)]}
        for module, calls in jobs
    ]
    (folder / "jobs.json").write_text(json.dumps(told))
    ran = subprocess.run(
        [node, folder / PROGRAM.name, folder, json.dumps(flags)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    results = json.loads((folder / "results.json").read_text())
    return [
        [_found(folder, module, answer) for answer in answers]
        for (module, _), answers in zip(jobs, results, strict=True)
    ]


def _told(folder: Path, stem: str, call: Call) -> object:
    if isinstance(call, str) or "ids" in call:
        return call
    rows: list[dict[str, object]] = []
    for name, array in call.items():
        file = f"{stem}.in{len(rows)}"
        (folder / file).write_bytes(array.tobytes())
        kind = "u1" if array.dtype == np.bool_ else array.dtype.str[1:]
        kind = kind if kind in _TYPES else f"u{array.dtype.itemsize}"  # short floats, as their bits
        rows.append({"name": name, "type": _TYPES[kind], "shape": list(array.shape), "file": file})
    return rows


def _found(folder: Path, module: str, answer: Mapping[str, Any]) -> Answer:
    if "error" in answer:
        return str(answer["error"])
    if "tokens" in answer:
        return list(answer["tokens"])
    infos = {info.name: info for info in read_manifest(folder / module).outputs}
    found: dict[str, Array] = {}
    for row in answer["outputs"]:
        data = (folder / row["file"]).read_bytes()
        found[row["name"]] = np.frombuffer(data, numpy_dtype(infos[row["name"]])).reshape(row["shape"])
    return found
