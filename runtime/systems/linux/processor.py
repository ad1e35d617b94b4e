"""Processor, memory and limits of a process, as Linux tells them."""

from __future__ import annotations

import sys

assert sys.platform == "linux"

import ctypes
import errno
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
PROCESSORS = Path("/sys/devices/system/cpu")
CACHES = PROCESSORS / "cpu0" / "cache"
CGROUP = Path("/sys/fs/cgroup")
# by machine: arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA
_ASK_FOR_TILES = {"x86_64": (158, 0x1023, 18)}


def features(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the features that the system reports, in its own names; none if it reports none."""
    letters, *names = _told(cpuinfo, "isa").split("_")  # on RISC-V: rv64imafdcv_zicbom
    letters = letters.removeprefix("rv64").replace("g", "imafd")
    return frozenset((*_told(cpuinfo, "flags", "features").split(), *letters, *names))


def machine() -> str:
    """Return the machine's name, as the system has it."""
    return platform.machine()


def model(cpuinfo: Path = CPUINFO) -> str:
    """Return the name of the processor; empty if the system does not tell."""
    return _told(cpuinfo, "model name")


def _told(cpuinfo: Path, *keys: str) -> str:
    """Return the first value of one of `keys` in the text about processors; empty without one."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for key, _, value in lines if key.strip().lower() in keys), "")


def refused_tiles(machine: str) -> str:
    """Ask the system for tile registers (AMX) for this process; return why it refuses, or an empty text."""
    call = _ASK_FOR_TILES.get(machine)
    code = -1 if call is None else ctypes.CDLL(None, use_errno=True).syscall(*call)
    return "" if code == 0 else errno.errorcode.get(ctypes.get_errno(), "no such registers")


def caches(folder: Path = CACHES) -> dict[str, int]:
    """Return the bytes of the caches that hold data, by level: L1, L2, L3."""
    sizes: dict[str, int] = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction":
                sizes[f"L{level}"] = int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1:], 0)
        except (OSError, ValueError):
            continue
    return sizes


def processors() -> int:
    """Return the processors that the system runs on: neither affinity nor variables of the environment change it."""
    try:
        ranges = (PROCESSORS / "online").read_text().strip().split(",")
        ends = [[int(n) for n in part.split("-")] for part in ranges]
        return sum(end[-1] - end[0] + 1 for end in ends)
    except (OSError, ValueError):
        return max(1, os.sysconf("SC_NPROCESSORS_ONLN"))


def allowed_processors() -> set[int]:
    """Return the processors that the calling thread may run on."""
    return os.sched_getaffinity(0)


def move_thread(allowed: Iterable[int]) -> bool:
    """Move the calling thread to processors; False if the system refuses: some are taken away meanwhile."""
    with suppress(OSError):
        os.sched_setaffinity(0, allowed)
        return True
    return False


def place_of(processor: int, folder: Path = PROCESSORS) -> tuple[int, int]:
    """Return socket and core of a processor; a core of its own if the system does not tell."""
    try:
        topology = folder / f"cpu{processor}" / "topology"
        socket, core = (int((topology / name).read_text()) for name in ("physical_package_id", "core_id"))
    except (OSError, ValueError):  # a system without /sys
        return 0, processor
    return socket, core


@cache
def memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_limit(root: Path = CGROUP) -> int | None:
    """Return the bytes that the control group of a container may use; None without a limit."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = (root / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        return int(text) if text.isdecimal() and int(text) < memory() else None
    return None


def cgroup_quota(proc: Path = Path("/proc/self/cgroup"), root: Path = CGROUP) -> float | None:
    """Return the processors' worth of time that the control groups allow; None without a limit."""
    try:
        lines = proc.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    limits: list[float] = []
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            bases = [root, root / "unified"]
        elif "cpu" in controllers.split(","):
            bases = [root / controllers, root / "cpu"]
        else:
            continue
        for base in bases:
            limits += _quotas_up(base, path)
    return min(limits, default=None)


def _quotas_up(base: Path, path: str) -> list[float]:
    """Return the limits of the group and of its parents; in a container only the outermost may be visible."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    groups = [base.joinpath(*parts[:n]) for n in range(len(parts) + 1)]
    return [limit for limit in map(_group_quota, groups) if limit is not None]


def _group_quota(group: Path) -> float | None:
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text(encoding="utf-8").split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text(encoding="utf-8").strip()
            period = (group / "cpu.cfs_period_us").read_text(encoding="utf-8").strip()
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 and int(period) > 0 else None
    except (OSError, ValueError):
        return None
