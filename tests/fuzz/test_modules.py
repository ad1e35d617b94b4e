"""The loader of WebAssembly ends with a sentence or a result for each damaged module, within a bounded time."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aot.codegen.llvm.callers import loader_files
from aot.compilation.driver import stages
from aot.options import CompileOptions
from tests.dynamic.loops import NETWORKS
from tests.frontends.gguf.networks import Network

PROGRAM = Path(__file__).with_name("modules.mjs")
MODELS: dict[str, Callable[[Path], Any]] = {
    "capacities": lambda folder: NETWORKS["growing_by_data"].make(),
    "tokens": lambda folder: Network("llama", "Q4_0").write(folder / "m.gguf"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count", "verify"), [("capacities", 200, 0), ("capacities", 60, 1), ("tokens", 30, 0)]
)
def test_damaged_modules(name: str, count: int, verify: int, tmp_path: Path) -> None:
    """Damaged code may loop for ever: the test ends it, and the loader is not to blame. Most cases skip digests."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, 20 or newer")
    stages(MODELS[name](tmp_path), CompileOptions(target="wasm")).built.write_shared(tmp_path / "m.wasm")
    for path, text in loader_files(tmp_path / "aot.mjs").items():
        path.write_text(text, encoding="utf-8")
    flags = json.dumps({"count": count, "seed": 1, "verify": bool(verify)})
    ran = subprocess.run(
        [node, PROGRAM, tmp_path / "m.wasm", tmp_path / "aot.mjs", flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["findings"] == []
    assert sum(found["counts"].values()) == count and found["counts"]["AotError"] > count // 3
