"""Maps between ports of If, Loop and TensorIterator and the parameters and results of their bodies."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array, Dim
from aot.runtime.errors import ShapeError, UnsupportedError


@dataclass(frozen=True, slots=True)
class InputMap:
    """Map from input `external` of the node to parameter `parameter` of the body.

    With an axis, each iteration reads the next `part_size` of it, from `start` to `end`, both included; negative
    numbers count from the end, and a negative stride goes backwards.
    """

    external: int
    parameter: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1


@dataclass(frozen=True, slots=True)
class OutputMap:
    """Map from result `result` of the body to output `external`: its last value, or all values along an axis."""

    external: int
    result: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1


@dataclass(frozen=True, slots=True)
class BackEdge:
    """Map from result `result` of one iteration to parameter `parameter` of the next."""

    result: int
    parameter: int


def in_order(maps: Iterable[OutputMap]) -> list[OutputMap]:
    """Return the maps sorted by output."""
    return sorted(maps, key=lambda m: m.external)


def check_slices(m: InputMap, size: Dim) -> None:
    """Raise ShapeError if a part is outside of an input of this size, UnsupportedError if that is not known."""
    if m.part_size < 1 or not m.stride:
        raise ShapeError(
            f"sliced input: part_size must be 1 or more and stride not 0, got {m.part_size} and {m.stride}"
        )
    if isinstance(size, int):
        first, last = (n + size if n < 0 else n for n in (m.start, m.end))
        if size and not (0 <= first < size and 0 <= last < size):
            raise ShapeError(f"sliced input: start and end must be in 0..{size - 1}, got {first} and {last}")
    elif (m.start, m.end) != ((0, -1) if m.stride > 0 else (-1, 0)):
        raise UnsupportedError(f"sliced input: start and end of part of an axis must be known, got {m.start}..{m.end}")


def part_count(m: InputMap, size: Dim) -> Dim:
    """Return the number of parts of a sliced input of this size."""
    start = size + m.start if m.start < 0 else m.start
    end = size + m.end if m.end < 0 else m.end
    covered = end - start + 1 if m.stride > 0 else start - end + 1
    return max(covered, 0) // m.part_size if isinstance(covered, int) else covered // m.part_size


def whole_parts(m: InputMap, whole: Array) -> int:
    steps = part_count(m, whole.shape[m.axis or 0])
    assert isinstance(steps, int)
    return steps


def first_part(m: InputMap, size: Dim, step: Dim) -> Dim:
    """Return the start of the part that iteration `step` reads."""
    start = m.start + size if m.start < 0 else m.start
    return start + step * m.part_size if m.stride > 0 else start - (step + 1) * m.part_size + 1


def part_of(whole: Array, m: InputMap, step: int) -> Array:
    axis = m.axis or 0
    begin = first_part(m, whole.shape[axis], step)
    assert isinstance(begin, int)
    return np.take(whole, range(begin, begin + m.part_size), axis)
