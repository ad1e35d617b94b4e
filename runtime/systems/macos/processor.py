"""Processor and memory, as sysctl of macOS tells them."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from pathlib import Path

from aot.runtime.systems.defaults import (
    CACHES,
    CGROUP,
    CPUINFO,
    PROCESSORS,
    allowed_processors,
    cgroup_quota,
    memory_limit,
    move_thread,
    place_of,
    processors,
    refused_tiles,
)

_FEATURE_NAMES = {  # names of hw.optional.arm, by those of Linux
    "aes": "FEAT_AES",
    "asimddp": "FEAT_DotProd",
    "asimdhp": "FEAT_FP16",
    "asimdrdm": "FEAT_RDM",
    "atomics": "FEAT_LSE",
    "bf16": "FEAT_BF16",
    "bti": "FEAT_BTI",
    "fcma": "FEAT_FCMA",
    "i8mm": "FEAT_I8MM",
    "jscvt": "FEAT_JSCVT",
    "lrcpc": "FEAT_LRCPC",
    "pauth": "FEAT_PAuth",
    "sha2": "FEAT_SHA256",
    "sha3": "FEAT_SHA3",
    "ssbs": "FEAT_SSBS",
}
_EVERYWHERE_FEATURES = {"fp", "asimd", "crc32"}  # features of all Macs


@cache
def features(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the features that the system reports, in Linux' names."""
    del cpuinfo
    return frozenset(
        _EVERYWHERE_FEATURES | {name for name, own in _FEATURE_NAMES.items() if _number(f"hw.optional.arm.{own}")}
    )


def model(cpuinfo: Path = CPUINFO) -> str:
    """Return the name of the processor; empty if the system does not tell."""
    del cpuinfo
    return _told("machdep.cpu.brand_string").rstrip(b"\0").decode("utf-8", "replace")


def machine() -> str:
    """Return the machine's name, as the system has it."""
    return platform.machine()


def caches(folder: Path = CACHES) -> dict[str, int]:
    """Return the bytes of the caches that hold data, by level, of the fastest kind of core."""
    del folder
    names = {"L1": "l1dcachesize", "L2": "l2cachesize", "L3": "l3cachesize"}
    sizes = {level: _number(f"hw.perflevel0.{name}") for level, name in names.items()}
    return {level: size for level, size in sizes.items() if size}


@cache
def memory() -> int:
    """Return the bytes of memory of this machine."""
    return _number("hw.memsize")


def _number(name: str) -> int:
    """Return a number that the system tells; 0 if it does not."""
    return int.from_bytes(_told(name), "little")


def _told(name: str) -> bytes:
    """Return the bytes that the system has under a name, 256 at most; none if it does not tell."""
    room, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    failed = ctypes.CDLL(None).sysctlbyname(name.encode(), room, ctypes.byref(size), None, ctypes.c_size_t(0))
    return b"" if failed else room.raw[: size.value]


__all__ = [
    "CACHES",
    "CGROUP",
    "CPUINFO",
    "PROCESSORS",
    "allowed_processors",
    "caches",
    "cgroup_quota",
    "features",
    "machine",
    "memory",
    "memory_limit",
    "model",
    "move_thread",
    "place_of",
    "processors",
    "refused_tiles",
]
