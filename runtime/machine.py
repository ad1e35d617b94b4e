"""Facts about this machine: its instruction set, its processor's features, the threads that an inference takes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from aot.runtime.errors import PlatformError
from aot.runtime.machines import ARCHITECTURES, Architecture
from aot.runtime.systems import processor

_SYSTEMS = ("windows", "macos", "android", "wasm", "linux")


def system_of(triple: str) -> str:
    """Return the system in LLVM's triple of a library; all of the triple if none is known by its parts."""
    parts = triple.split("-")[1:]
    return next((s for s in _SYSTEMS if any(part.startswith(s) for part in parts)), triple)


def machine_name() -> str:
    """Return the machine's name: `x86_64`, `aarch64`, ..."""
    name = processor.machine()
    return next((known.name for known in ARCHITECTURES.values() if name in known.aliases), name)


def architecture() -> Architecture:
    """Return the instruction set of this machine; PlatformError if none is known by its name."""
    name = machine_name()
    if name not in ARCHITECTURES:
        raise PlatformError(f"machine: must be one of {', '.join(ARCHITECTURES)}, got {name}")
    return ARCHITECTURES[name]


def missing_features(features: Iterable[str], cpuinfo: Path = processor.CPUINFO) -> list[str]:
    """Return the features, in LLVM's names, that the processor lacks; none if the system does not report features."""
    flags = processor.features(cpuinfo)
    return architecture().missing(features, flags) if flags else []


def unreported(features: Iterable[str], cpuinfo: Path = processor.CPUINFO) -> list[str]:
    """Return the features, in LLVM's names, that a loader could not find on this processor.

    If the system reports no features, as without /proc: those that no system reports.
    """
    here = architecture()
    if flags := processor.features(cpuinfo):
        return here.missing(features, flags)
    return [feature for feature in here.needed(features) if feature not in here.reported]


def refused_tiles() -> str:
    """Ask the system for tile registers (AMX) for this process; return why it refuses, or an empty text."""
    return processor.refused_tiles(machine_name())


def default_threads() -> int:
    """Return OMP_NUM_THREADS if it is a number, else the processors that affinity and cgroup quota allow."""
    setting = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    allowed, quota = len(processor.allowed_processors()), processor.cgroup_quota()
    return max(1, allowed if quota is None else min(allowed, int(quota)))
