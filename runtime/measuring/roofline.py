"""Roofline model: the least time for some work by the arithmetic and the memory bandwidth of a machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Roofline:
    """FLOP/s, and bytes/s of each memory level, identified by its capacity in bytes, smallest first."""

    flops: float
    bandwidth: tuple[tuple[int, float], ...]

    def __str__(self) -> str:
        levels = ", ".join(f"{speed / 1e9:.0f}" for _, speed in self.bandwidth)
        return f"limits: {self.flops / 1e9:.0f} GFLOP/s; reading from L2, L3, memory: {levels} GB/s"

    def bytes_per_second(self, size: int) -> float:
        """Return the bandwidth of the nearest level that holds `size` bytes."""
        return next((speed for level, speed in self.bandwidth if size <= level), self.bandwidth[-1][1])

    def seconds(self, work: int, traffic: int, footprint: int) -> tuple[float, bool]:
        """Return the least time for `work` FLOP and `traffic` bytes, and True if memory is the limit.

        Data of a network of `footprint` bytes comes from the level that holds all of it.
        """
        arithmetic, memory = work / self.flops, traffic / self.bytes_per_second(footprint)
        return max(arithmetic, memory), memory > arithmetic
