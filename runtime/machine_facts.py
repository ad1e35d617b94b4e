"""Facts about a machine, for people and programs: `aot info --machine`."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from aot.runtime.machine import cgroup_quota, cpu_flags, default_threads, machine_name, memory, refused_tiles
from aot.runtime.measuring.load import joules

CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
CGROUP = Path("/sys/fs/cgroup")
VECTOR_PREFIXES = ("avx", "amx", "fma", "f16c", "asimd", "sve", "i8mm", "bf16")  # of features


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


def machine_facts(cpuinfo: Path = CPUINFO, caches: Path = CACHES, cgroup: Path = CGROUP) -> MachineFacts:
    """Return the facts about this machine and this process."""
    return MachineFacts(
        machine=machine_name(),
        processor=_model(cpuinfo),
        system=f"{platform.system()} {platform.release()}",
        features=tuple(sorted(cpu_flags(cpuinfo))),
        caches=_caches(caches),
        page=os.sysconf("SC_PAGE_SIZE"),
        memory=memory(),
        memory_limit=_memory_limit(cgroup),
        processors=os.cpu_count() or 1,
        affinity=len(os.sched_getaffinity(0)),
        quota=cgroup_quota(),
        threads=default_threads(),
        tiles=not refused_tiles(),
        energy=joules() is not None,
    )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _model(cpuinfo: Path) -> str:
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for key, _, value in lines if key.strip().lower() == "model name"), "")


def _caches(folder: Path) -> dict[str, int]:
    """Return the bytes of the caches that hold data, by level."""
    found: dict[str, int] = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction":
                found[f"L{level}"] = int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1:], 0)
        except (OSError, ValueError):
            continue
    return found


def _memory_limit(root: Path) -> int | None:
    """Return the bytes that the control group of a container may use; None without a limit."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = (root / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        return int(text) if text.isdecimal() and int(text) < memory() else None
    return None
