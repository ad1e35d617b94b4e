"""Halos: memory around a value that holds the padding, so that padded reads need no bounds check.

    within(oh * s + kh - 1, 14, x[.., oh * s + kh - 1, ..], fill)   ->   x[.., oh * s + kh - 1, ..]

An image of few rows that depthwise windows read has no halo above and below. A halo would be a large part of the
memory, and its terms, which change nothing, a large part of the windows. Windows check a whole row at once instead, and
skip it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import points, typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import functions_in, loaded_names, loads, rewrite, variables, walk
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Size, Var, as_expr, prim
from aot.codegen.ir.primitives import CHAINS
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, expressions, members, reads, rewrite_work
from aot.lowering.ir.reach import after, before
from aot.lowering.ir.steps import Steps
from aot.runtime.abi import DType


@dataclass(slots=True)
class Halo:
    """Points before and after each dimension, and their content: a number, or a value computed before."""

    fill: float | Expr
    sides: list[tuple[int, int]]
    reads: int = 0  # points of the definitions that read it


@dataclass(frozen=True, slots=True)
class _Padded:
    """A load inside bounds checks. `checked`: the indices that they check, each with its bound."""

    load: Load
    checked: tuple[tuple[Expr, Expr], ...]
    fill: float | Expr


def halos(steps: Steps) -> dict[str, Halo]:
    """Return the halo of each intermediate value.

    If its consumers pad with different values, it holds the value that is read most. Reads of other values keep their
    bounds checks.
    """
    by_fill: dict[str, dict[float | Expr, Halo]] = {}
    works = (work for step in steps.steps for work in step.works)
    padded_loads = (load for work in works for load in _padded_loads(work, steps.values))
    for padded, unpadded_dims, times in padded_loads:
        name = padded.load.buffer.name
        value = steps.values.get(name)
        sides = _sides(padded, steps)
        if (
            value is None
            or value.region is not MemoryRegion.ARENA
            or sides is None
            or _is_late(padded.fill, name, steps)
        ):
            continue
        buffer = padded.load.buffer
        sides = [(0, 0) if k in unpadded_dims and _is_low(buffer, k, s) else s for k, s in enumerate(sides)]
        halo = by_fill.setdefault(name, {}).setdefault(padded.fill, Halo(padded.fill, [(0, 0)] * len(sides)))
        halo.sides = [(max(a, c), max(b, d)) for (a, b), (c, d) in zip(halo.sides, sides, strict=True)]
        halo.reads += times
    most_read = {name: max(some.values(), key=lambda h: h.reads) for name, some in by_fill.items()}
    return {name: h for name, h in most_read.items() if any(s != (0, 0) for s in h.sides)}


def _is_late(fill: float | Expr, name: str, steps: Steps) -> bool:
    """True if a step after the first producer of `name` writes an operand of the fill."""
    if not isinstance(fill, Expr):
        return False
    read = {x.buffer.name for x in loads(fill)}
    first = next((n for n, s in enumerate(steps.steps) if any(b.name == name for b in s.writes())), 0)
    return any(b.name in read for s in steps.steps[first + 1 :] for b in s.writes())


def _padded_loads(work: Work, values: Container[str]) -> Iterator[tuple[_Padded, frozenset[int], int]]:
    """Yield padded loads of values, each with the dimensions that need no halo and the number of its points."""
    for part in (*members(work),) or (work,):
        if isinstance(part, Definition) and not any(x.buffer.name in values for x in loads(part.value, *part.index)):
            continue
        roots = [e for e in expressions(part) if "within" in functions_in(e)]
        tests = [e for e in walk(*roots) if isinstance(e, Prim) and e.fn == "within"]
        windows = dict(_windows(part)) if tests and isinstance(part, Definition) else {}
        times = typical(points(part)) if tests and isinstance(part, Definition) else 1
        inner = {e.args[2] for e in tests}
        for e in tests:
            padded = _padded(e) if e not in inner else None
            if padded is not None:
                yield padded, windows.get(e, frozenset()), times


def _windows(d: Definition) -> Iterator[tuple[Expr, frozenset[int]]]:
    """Yield padded factors of depthwise window sums, with the dimensions that windows go down row by row."""
    r = d.reduction
    if r is None or r.fn not in ("add", CHAINS) or not (isinstance(r.body, Prim) and r.body.fn == "mul"):
        return
    for e in r.body.args:
        padded = _padded(e)
        if padded is None or padded.fill != 0.0:
            continue
        index = padded.load.index
        down = [k for k, i in enumerate(index) if not variables(i).isdisjoint(r.axes)]
        own = (i for i in index if isinstance(i, Var) and i in d.axes)
        channels = any(typical(i.extent or 0) >= COSTS.vector_extent for i in own)
        if channels and all(_slides(index[k], r) for k in down):
            yield e, frozenset(down[:-1])


def _slides(index: Expr, r: Reduce) -> bool:
    """True if a window moves with at most one output axis, and only forwards."""
    terms = normal(index, {}).terms
    return len(terms.keys() - {*r.axes}) <= 1 and all(isinstance(v, Var) and c > 0 for v, c in terms.items())


def _is_low(b: Buffer, k: int, sides: tuple[int, int]) -> bool:
    n = b.shape[k]
    return isinstance(n, int) and sum(sides) >= COSTS.skipped_halo_share * n


def _padded(e: Expr) -> _Padded | None:
    """Match a load inside nothing but `within` with equal fills."""
    checked: list[tuple[Expr, Expr]] = []
    fill: float | Expr | None = None
    while isinstance(e, Prim) and e.fn == "within":
        index, bound, inner, *other = e.args
        value = other[0] if other else Const(0, e.dtype)
        new_fill = float(value.value) if isinstance(value, Const) else value
        if variables(value) or (fill is not None and fill != new_fill):
            return None
        fill = new_fill
        checked.append((index, bound))
        e = inner
    return _Padded(e, tuple(checked), fill) if isinstance(e, Load) and fill is not None else None


def _sides(p: _Padded, steps: Steps) -> list[tuple[int, int]] | None:
    sides = [(0, 0)] * len(p.load.index)
    for index, bound in p.checked:
        at = _dimension(p, index)
        n = None if at is None else p.load.buffer.shape[at]
        if at is None or n is None or not _are_equal(bound, n, steps):
            return None
        first, last = before(index), after(index, n, steps.sizes, steps.symbols)
        limit = max(COSTS.max_halo_points, n) if isinstance(n, int) else COSTS.max_halo_points
        if first is None or last is None or max(first, last) > limit:
            return None
        sides[at] = (first, last)
    return sides


def _dimension(p: _Padded, index: Expr) -> int | None:
    """Return the first dimension that is read at this index."""
    return next((k for k, i in enumerate(p.load.index) if normal(i, {}).key == normal(index, {}).key), None)


def _are_equal(bound: Expr, n: Size, steps: Steps) -> bool:
    """True if both sizes have the same form, or are equal by rules that are checked."""
    if normal(bound, {}).key == normal(as_expr(n, DType.I64), {}).key:
        return True
    return all(map(steps.is_known, variables(bound))) and steps.sizes.written_out(bound) in steps.sizes.alike(n)


def strip(work: Work, halo: dict[str, Halo], steps: Steps) -> Work:
    """Remove the bounds checks of reads that a halo covers."""
    if halo.keys().isdisjoint(x.buffer.name for x in reads(work)):
        return work

    def change(e: Expr) -> Expr | None:
        if halo.keys().isdisjoint(loaded_names(e)):
            return e
        padded = _padded(e)
        if padded is None or padded.load.buffer.name not in halo:
            return None
        sides, value_halo = _sides(padded, steps), halo[padded.load.buffer.name]
        if sides is None or value_halo.fill != padded.fill:
            return None
        result: Expr = Load(padded.load.buffer, tuple(rewrite(i, change) for i in padded.load.index))
        for index, bound in reversed(padded.checked):
            k = _dimension(padded, index)
            if k is None or any(a < b for a, b in zip(value_halo.sides[k], sides[k], strict=True)):
                result = prim("within", rewrite(index, change), bound, result, padded.fill)
        return result

    return rewrite_work(work, change)


def borders(b: Buffer, halo: Halo) -> tuple[Definition, ...]:
    """Return the definitions that fill the halo: two sides of each dimension, with the corners to later dimensions."""
    definitions: list[Definition] = []
    value = halo.fill
    fill = value if isinstance(value, Expr) else Const(value if b.dtype.is_float else int(value), b.dtype.compute)
    for k, sides in enumerate(halo.sides):
        for start, size in ((-sides[0], sides[0]), (b.shape[k], sides[1])):
            if size:
                definitions.append(_side(b, halo, k, start, size, fill))
    return tuple(definitions)


def _side(b: Buffer, halo: Halo, k: int, start: Size, size: int, fill: Expr) -> Definition:
    axes: list[Var] = []
    index: list[Expr] = []
    for m, n in enumerate(b.shape):
        low, extent = (start, size) if m == k else (0, n)
        if m > k:  # corners belong to the earlier dimension
            low, extent = -halo.sides[m][0], n + sum(halo.sides[m])
        if extent == 1:
            index.append(Const(0) + low)
            continue
        axis = Var(f"d{m}", extent)
        axes.append(axis)
        index.append(axis + low)
    return Definition(b, tuple(axes), fill, tuple(index))
