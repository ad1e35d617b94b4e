"""The code that a model is run by, kernels, drivers and thread pool, under ThreadSanitizer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from aot.codegen.llvm.build import build, functions_of
from aot.codegen.llvm.driver.module import module, pool_module
from aot.codegen.llvm.header import header_text
from aot.codegen.target import Target
from tests.programs import chain

HARNESS = Path(__file__).parent / "pool.c"
FINISHED = "atomicrmw add ptr %done.at, i64 1 seq_cst"  # what orders a call before the next one


def tools() -> tuple[list[str], str]:
    """A compiler of LLVM IR that can instrument it, and a C compiler that comes with the sanitizer's library."""
    clang, compiler = shutil.which("clang"), shutil.which("cc")
    instrument = [clang] if clang is not None else [sys.executable, "-m", "ziglang", "cc"]
    if compiler is None or (clang is None and find_spec("ziglang") is None):
        pytest.skip("needs a C compiler whose library has ThreadSanitizer, and clang or the package ziglang")
    return instrument, compiler


def ran(folder: Path, texts: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Compile modules by the names of their files, and run them."""
    instrument, compiler = tools()
    for name, text in texts.items():
        (folder / f"{name}.ll").write_text(text)
    options = ("-O1", "-fsanitize=thread")
    objects = [f"{name}.o" for name in texts]
    steps = (
        *([*instrument, "-c", *options, "-Wno-override-module", f"{n}.ll", "-o", f"{n}.o"] for n in texts),
        [compiler, "-std=c11", "-g", *options, "-I.", str(HARNESS), *objects, "-o", "pool", "-pthread"],
    )
    for step in steps:
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    # the process forks while the pool has threads, and the child starts its own: by default the sanitizer forbids that
    options = os.environ | {"TSAN_OPTIONS": "die_after_fork=0"}
    return subprocess.run(["./pool"], cwd=folder, capture_output=True, text=True, check=False, timeout=300, env=options)


@pytest.mark.slow
def test_no_races(tmp_path: Path) -> None:
    program, target = chain(calls=5), Target.parse("x86-64-v2")
    texts = {"model": module(program, functions_of(program, target), target).text("t", 1), "pool": pool_module(target)}
    for name, text in texts.items():
        texts[name] = f'target triple = "{target.triple}"\n' + text.replace("nounwind", "nounwind sanitize_thread")
    (tmp_path / "model.h").write_text(re.sub(r"aot_query_\w+", "aot_query_t", header_text(build(program, target))))
    done = ran(tmp_path, texts)
    assert (done.returncode, done.stderr) == (0, "")
    assert FINISHED in texts["pool"]
    weaker = texts | {"pool": texts["pool"].replace(FINISHED, FINISHED.replace("seq_cst", "monotonic"))}
    seen = any("data race" in ran(tmp_path, weaker).stderr for _ in range(5))  # where threads meet is chance
    assert seen, "the sanitizer sees what it should"
