"""Stages of a compilation, and functions that are notified of them."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

Event = Callable[[str, int, int], None]  # stage, steps done, steps in all
Dump = Callable[[str, str], None]  # name of a pass, text


class Stage(StrEnum):
    """Stages that a compilation can show."""

    IMPORTED, OPTIMIZED, STEPS, GROUPS = "imported", "optimized", "steps", "groups"
    LOOPS, LLVM, ASM = "loops", "llvm", "asm"
