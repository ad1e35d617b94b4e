"""The machine that this process runs on, and targets by name."""

from __future__ import annotations

import os
from pathlib import Path

import llvmlite.binding as llvm

from codegen.target import Host, Target
from runtime.machine import unreported


def parse_target(name: str) -> Target:
    """Return the target of a name: `native` is this machine, `Target.parse` knows the others; UsageError for none."""
    return Target.native(host()) if name == "native" else Target.parse(name)


def host() -> Host:
    """Read the facts about this machine from LLVM and from Linux."""
    features = dict(sorted(llvm.get_host_cpu_features().items()))
    hidden = frozenset(unreported(name for name, on in features.items() if on))
    cores = len(os.sched_getaffinity(0))
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, hidden, _caches(), cores)


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
