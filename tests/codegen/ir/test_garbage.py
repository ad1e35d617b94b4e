"""Rewriting leaves no cycles of references: a compilation does it by the hundred thousand."""

from __future__ import annotations

import subprocess
import sys

import pytest

# in a process of its own: other tests leave garbage
COUNTS = """
import gc
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Load, Var, dense
from aot.codegen.ir.rename_sizes import renamed
from aot.lowering.fusion.substitute import simplified

x, n, m = Var("x", 8), Var("n"), Var("m")
e = Load(dense("b", 8, 8), (x, (x + n) // 2)) * 2.0
run = {run}
gc.collect()
gc.disable()
for _ in range(100):
    run()
print(gc.collect())
"""


@pytest.mark.parametrize(
    "run",
    [
        "lambda: rewrite(e, {x: x + 1})",
        "lambda: renamed(e, {n: m})",
        "lambda: simplified(Load(dense('c', 8), ((x + n) - x,)) + 1.0)",
    ],
)
def test_no_cycles(run: str) -> None:
    code = COUNTS.replace("{run}", run)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100
