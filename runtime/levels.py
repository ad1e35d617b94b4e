"""Levels of x86-64: features that a target of that name may use, in LLVM's names."""

from __future__ import annotations

from collections.abc import Iterable

from aot.runtime.machine import needed

AMX = ("amx-bf16", "amx-int8", "amx-tile")
_V2 = ("cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_PAIRS = (*_V4, "avx512bf16", "avx512vnni")
_V4_AMX = (*_PAIRS, "avx512vbmi", *AMX)
# Lowest first: a library of several levels takes the last one that runs.
LEVELS = {
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
    "x86-64-v4-bf16": _PAIRS,
    "x86-64-v4-amx": _V4_AMX,
}


def levels_that_run(features: Iterable[str]) -> list[str]:
    """Return the levels whose processors have all `features`, lowest first."""
    wanted = set(needed(features))
    return [name for name, own in LEVELS.items() if wanted <= set(own)]


def nearest_level(features: Iterable[str]) -> tuple[str, list[str]]:
    """Return the level that lacks the fewest of `features`, and those; "" and none for features of another machine.

    The lowest of several; one with tile registers only if they are among the features.
    """
    wanted = needed(features)
    if "sse2" not in wanted:
        return "", []
    tiles = not set(AMX).isdisjoint(wanted)
    beyond = {name: [f for f in wanted if f not in own] for name, own in LEVELS.items() if tiles or AMX[0] not in own}
    name = min(beyond, key=lambda level: len(beyond[level]))
    return name, beyond[name]
