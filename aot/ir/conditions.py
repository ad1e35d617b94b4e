"""Conditions on sizes: checked while compiling where sizes are known, else by the compiled model."""

from __future__ import annotations

from collections.abc import Iterable

from aot.codegen.ir.loops import as_expr, prim
from aot.ir.types import Dim
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

Condition = tuple[Dim, Dim, str]  # two sizes that must be equal, and the rule in words


def alike(rule: str, one: Iterable[Dim], other: Iterable[Dim]) -> list[Condition]:
    """Return the conditions that sizes are equal in pairs."""
    return [(a, b, rule) for a, b in zip(one, other, strict=True)]


def at_most_equal(rule: str, size: Dim, most: Dim) -> Condition:
    """Return the condition that a size is not above another one."""
    if isinstance(size, int) and isinstance(most, int):
        return size, min(size, most), rule
    return size, prim("min", as_expr(size, DType.I64), most), rule


def at_least(rule: str, size: Dim, least: int) -> Condition:
    """Return the condition that a size is not below a number."""
    return (min(size, least) if isinstance(size, int) else prim("min", size, least)), least, rule


def in_range(rule: str, size: Dim, low: Dim, high: Dim) -> Condition:
    """Return the condition that a size is `low` to `high`, both included."""
    if isinstance(size, int) and isinstance(low, int) and isinstance(high, int):
        return max(low, min(size, high)), size, rule
    return prim("max", prim("min", as_expr(size, DType.I64), high), low), size, rule


def axis_of(axis: int, rank: int, what: str) -> int:
    """Return `axis` counted from the front; ShapeError if it is out of range."""
    if not -rank <= axis < max(rank, 1):
        raise ShapeError(f"{what}: axis must be within rank {rank}, got {axis}")
    return axis + rank if axis < 0 else axis
