"""Cycles of a loop by llvm-mca, of LLVM 17 or newer, whose models of Neoverse are Arm's."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache

from benchmarks.mca.loops import Loop

UNITS = {"neoverse-n1": 2, "neoverse-v1": 4, "neoverse-v2": 4}  # instructions of vectors of 128 bits a cycle
LEVELS = {"neoverse-n1": "aarch64-v8.2", "neoverse-v1": "aarch64-v8.6", "neoverse-v2": "aarch64-v8.6"}
OLDEST = 17
ITERATIONS = 100


@lru_cache(maxsize=1)
def find_mca() -> str | None:
    """Return the path of llvm-mca; None if there is none that is new enough."""
    for name in ("llvm-mca", *(f"llvm-mca-{n}" for n in range(30, OLDEST - 1, -1))):
        path = shutil.which(name)
        if path is None:
            continue
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"LLVM version (\d+)", told)
        if found is not None and int(found[1]) >= OLDEST:
            return path
    return None


def cycles(loop: Loop, cpu: str) -> float:
    """Return the cycles of an iteration, of many in a row."""
    path = find_mca()
    if path is None:
        raise RuntimeError(f"mca: needs llvm-mca of LLVM {OLDEST} or newer, as in the package llvm-19")
    command = [path, "-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", f"-iterations={ITERATIONS}"]
    done = subprocess.run(command, input="\n".join(loop.body) + "\n", capture_output=True, text=True, check=True)
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if found is None:
        raise RuntimeError(f"mca: no cycles in {done.stdout[:80]!r}")
    return int(found[1]) / ITERATIONS


def share(loop: Loop, cpu: str) -> float:
    """Return the share of the units of vectors that multiply or add in a cycle."""
    return len(loop.arithmetic) / cycles(loop, cpu) / UNITS[cpu]
