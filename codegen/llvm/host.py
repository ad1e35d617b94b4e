"""The machine that this process runs on, and targets by name."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import llvmlite.binding as llvm

from aot.codegen.target import CORES, Host, Target
from aot.runtime.machine import unreported
from aot.runtime.systems import processor


@lru_cache(maxsize=1 << 6)
def parse_target(name: str, cores: int | None = None) -> Target:
    """Return the target of a name: `native` is this machine, `Target.parse` knows the others; UsageError for none.

    `cores`: None for all cores of this machine, even if this process may use fewer, or else `CORES`.
    """
    if name != "native":
        return Target.parse(name, CORES if cores is None else cores)
    here = host()
    return Target.native(here if cores is None else replace(here, cores=cores))


@lru_cache(maxsize=1)
def host() -> Host:
    """Read the facts about this machine from LLVM and from the system, once in a process."""
    features = dict(sorted(llvm.get_host_cpu_features().items()))
    hidden = frozenset(unreported(name for name, on in features.items() if on))
    return Host(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), features, hidden, _caches(), processor.processors()
    )


def _caches() -> tuple[int, int, int]:
    """Return the bytes of the first core's data caches; defaults for those that the kernel does not report."""
    sizes = {"L1": 32 << 10, "L2": 512 << 10, "L3": 4 << 20} | processor.caches()
    return sizes["L1"], sizes["L2"], sizes["L3"]
