"""Small TensorFlow Lite files and what LiteRT gives for them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("cases.npz")


@cache
def stored_cases() -> dict[str, dict[str, Any]]:
    """By the name of a case: `file`, inputs `x0` .. and outputs `y0` .."""
    found: dict[str, dict[str, Any]] = {}
    with np.load(FILE) as stored:
        for key in stored:
            name, _, part = key.partition("|")
            found.setdefault(name, {})[part] = stored[key]
    return found
