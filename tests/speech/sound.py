"""Sounds that sweep, for networks of speech."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RATE = 16000


def sound(seconds: float, seed: int = 0) -> NDArray[np.float32]:
    """Return samples at 16 kHz: a sweep that decays, and noise."""
    count = round(seconds * RATE)
    t = np.arange(count) / RATE
    noise = np.random.default_rng(seed).standard_normal(count)
    return (0.3 * np.sin(2 * np.pi * (200 + 90 * t) * t) * np.exp(-t / 20) + 0.01 * noise).astype(np.float32)
