"""Choices that a quantisation leaves to users."""

from __future__ import annotations

from enum import StrEnum


class Ranges(StrEnum):
    """Rules for ranges of activations: all values, most of them, or least divergence."""

    MINMAX, PERCENTILE, ENTROPY = "minmax", "percentile", "entropy"


class Weights(StrEnum):
    """Integers that weights become."""

    INT8, INT4 = "int8", "int4"

    @property
    def bits(self) -> int:
        return int(self[3:])
