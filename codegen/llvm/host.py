"""The machine that this process runs on, and targets by name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm

from aot.codegen.target import CORES, Host, Target
from aot.runtime.machine import unreported


def parse_target(name: str, cores: int | None = None) -> Target:
    """Return the target of a name: `native` is this machine, `Target.parse` knows the others; UsageError for none.

    `cores`: None for those of this machine, of which this process may use fewer, or else `CORES`.
    """
    if name != "native":
        return Target.parse(name, CORES if cores is None else cores)
    here = host()
    return Target.native(here if cores is None else replace(here, cores=cores))


def host() -> Host:
    """Read the facts about this machine from LLVM and from Linux."""
    features = dict(sorted(llvm.get_host_cpu_features().items()))
    hidden = frozenset(unreported(name for name, on in features.items() if on))
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, hidden, _caches(), _processors())


def _processors() -> int:
    """Return the processors that the system runs on: neither affinity nor variables of the environment change it."""
    try:
        ranges = Path("/sys/devices/system/cpu/online").read_text().strip().split(",")
        ends = [[int(n) for n in part.split("-")] for part in ranges]
        return sum(end[-1] - end[0] + 1 for end in ends)
    except (OSError, ValueError):
        return max(1, os.sysconf("SC_NPROCESSORS_ONLN"))


def _caches() -> tuple[int, int, int]:
    """Return the bytes of the first core's data caches; defaults for those that the kernel does not report."""
    found = {1: 32 << 10, 2: 512 << 10, 3: 4 << 20}
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = ((entry / f).read_text().strip() for f in ("type", "level", "size"))
            if kind != "Instruction" and size.endswith("K"):
                found[int(level)] = int(size[:-1]) << 10
        except (OSError, ValueError):
            continue
    return found[1], found[2], found[3]
