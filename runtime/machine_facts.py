"""Facts about a machine, for people and programs: `aot info --machine`."""

from __future__ import annotations

import mmap
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from aot.runtime.machine import default_threads, machine_name, refused_tiles
from aot.runtime.measuring.load import joules
from aot.runtime.systems import processor

VECTOR_PREFIXES = ("avx", "amx", "fma", "f16c", "asimd", "sve", "i8mm", "bf16")  # of vector features


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Facts about machine and process; unknown ones are None or empty. Sizes are in bytes.

    `features`: in the system's names; `affinity`, `quota`: processors that this process may use; `threads`: default of
    an inference; `tiles`: the process may use AMX; `energy`: the counters of RAPL can be read.
    """

    machine: str
    processor: str
    system: str
    features: tuple[str, ...]
    caches: dict[str, int]
    page: int
    memory: int
    memory_limit: int | None
    processors: int
    affinity: int
    quota: float | None
    threads: int
    tiles: bool
    energy: bool

    def __str__(self) -> str:
        """Return lines; of the features those of vectors and matrices."""
        wide = [f for f in self.features if f.startswith(VECTOR_PREFIXES)]
        caches = ", ".join(f"{name} {size >> 10} KiB" for name, size in self.caches.items())
        quota = "no quota" if self.quota is None else f"quota {self.quota:g}"
        limit = "" if self.memory_limit is None else f", limit {_gigabytes(self.memory_limit)}"
        lines = [
            f"machine    {self.machine}, {self.processor or 'unknown processor'}, {self.system}",
            f"features   {' '.join(wide) or 'none for vectors'}",
            f"caches     {caches or 'not told'}",
            f"memory     {_gigabytes(self.memory)}{limit}",
            f"processors {self.processors}, for this process {self.affinity}, {quota}: {self.threads} threads",
            f"tiles      {'tile registers (AMX)' if self.tiles else 'none, or refused by the system'}",
            f"energy     {'counters can be read' if self.energy else 'no counters, or not for this user'}",
        ]
        return "\n".join(lines)


def machine_facts(
    cpuinfo: Path = processor.CPUINFO, caches: Path = processor.CACHES, cgroup: Path = processor.CGROUP
) -> MachineFacts:
    """Return the facts about this machine and this process."""
    return MachineFacts(
        machine=machine_name(),
        processor=processor.model(cpuinfo),
        system=f"{platform.system()} {platform.release()}",
        features=tuple(sorted(processor.features(cpuinfo))),
        caches=processor.caches(caches),
        page=mmap.PAGESIZE,
        memory=processor.memory(),
        memory_limit=processor.memory_limit(cgroup),
        processors=os.cpu_count() or 1,
        affinity=len(processor.allowed_processors()),
        quota=processor.cgroup_quota(),
        threads=default_threads(),
        tiles=not refused_tiles(),
        energy=joules() is not None,
    )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
