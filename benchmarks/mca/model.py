"""Cycles of a loop by llvm-mca, of LLVM 17 or newer, whose models of Neoverse are Arm's."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache

from benchmarks.mca.loops import Loop

UNITS = {"neoverse-n1": 2, "neoverse-v1": 4, "neoverse-v2": 4}  # instructions of vectors of 128 bits a cycle
LEVELS = {"neoverse-n1": "aarch64-v8.2", "neoverse-v1": "aarch64-v8.6", "neoverse-v2": "aarch64-v8.6"}
X86 = {"sapphirerapids": "x86-64-v3"}  # whose times are measured, to see what a prediction is worth
TARGETS = {**LEVELS, **X86}
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
    return region_cycles([loop.body], cpu)[0]


def machine_of(cpu: str) -> str:
    """Return the machine of a processor, as its triple begins."""
    return "x86_64" if cpu in X86 else "aarch64"


def region_cycles(bodies: Sequence[Sequence[str]], cpu: str, *options: str) -> list[float]:
    """Return the cycles of an iteration of each body, of many in a row; `options`: of llvm-mca."""
    found = _cycles(_told(bodies, cpu, options))
    return [found[f"r{n}"] for n in range(len(bodies))]


def _cycles(told: str) -> dict[str, float]:
    found = re.findall(r"Code Region - (r\d+)\n.*?Total Cycles:\s+(\d+)", told, re.S)
    return {region: int(total) / ITERATIONS for region, total in found}


def _told(bodies: Sequence[Sequence[str]], cpu: str, options: Sequence[str]) -> str:
    """Return what llvm-mca says about each body."""
    path, machine = find_mca(), machine_of(cpu)
    if path is None:
        raise RuntimeError(f"mca: needs llvm-mca of LLVM {OLDEST} or newer, as in the package llvm-19")
    text = "\n".join(
        "\n".join((f"# LLVM-MCA-BEGIN r{n}", *body, f"# LLVM-MCA-END r{n}")) for n, body in enumerate(bodies)
    )
    command = [path, f"-mtriple={machine}-linux-gnu", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", *options]
    return subprocess.run(command, input=text + "\n", capture_output=True, text=True, check=True).stdout


def busiest(loop: Loop, cpu: str) -> float:
    """Return the share of cycles in which the unit that a loop uses most is busy: 1 if only fewer instructions help."""
    told = _told([loop.body], cpu, ())
    units = told.split("Resource pressure per iteration:\n", 1)[1].splitlines()[1]
    return max(float(n) for n in units.split() if n != "-") / _cycles(told)["r0"]


def share(loop: Loop, cpu: str) -> float:
    """Return the share of the units of vectors that multiply or add in a cycle."""
    return len(loop.arithmetic) / cycles(loop, cpu) / UNITS[cpu]
