"""Rules on sizes of several inputs that must fit each other, derived from the indices of their accesses.

    y[i, j] = x[i, j] + z[j]    for i in n, j in m        z: f32[k]      ->      m <= k

No rule is made for an index that `within` guards, even in part, or that depends on data: operations guard those
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aot.codegen.ir.access import volume
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import factors, normal
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Size, Space, Var, as_expr, prim
from aot.codegen.ir.program import SizeConstraint
from aot.codegen.ir.traverse import Work, members
from aot.ir.types import dim_text
from aot.lowering.ir.greatest import greatest
from aot.lowering.ir.reach import after, last
from aot.lowering.ir.symbolic_sizes import Sizes
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


def fitting(works: tuple[Work, ...], layer: str, sizes: Sizes, symbols: tuple[Var, ...]) -> list[SizeConstraint]:
    """Derive the rules that keep the definitions among `works` from reading past the end of a dimension.

    ShapeError if one does so whatever the run-time sizes are.
    """
    constraints: dict[tuple[Size, Size], SizeConstraint] = {}
    for d in (d for w in works if isinstance(w, Definition | Group) for d in members(w)):
        if any(a.extent == 0 for a in d.axes):
            continue
        for index, dim in _indices(d.value, frozenset(i for i, _ in d.where)):
            if (wide := _stretched_to(index, sizes)) is not None:
                constraints.setdefault(
                    (wide, dim), _one_or_equal(layer, sizes.written_out(wide), sizes.written_out(dim))
                )
                continue
            least = _least_extent(index, dim, sizes, symbols)
            if least is None:
                continue
            one, other = sizes.written_out(least), sizes.written_out(dim)
            text = f"{layer}: a dimension of an input must be {dim_text(one)} at least, got {dim_text(other)}"
            if isinstance(least, int) and isinstance(dim, int):
                raise ShapeError(text)
            constraints.setdefault((least, dim), SizeConstraint(prim("max", one - other, 0), 0, text))
    return list(constraints.values())


def _stretched_to(index: Expr, sizes: Sizes) -> Size | None:
    """Return the extent of axis i in the broadcast index i * min(max(n, 1) - 1, 1), which is 0 if dimension n is 1.

    None for others.
    """
    match [[*factors(atom)] for atom in normal(index, {}).terms]:
        case [[Var() as a, Var() as b]]:
            axis, other = (b, a) if a in sizes.meaning else (a, b)
            least = sizes.meaning.get(other)
            return axis.extent if isinstance(least, Prim) and least.fn == "min" and least.args[1] == Const(1) else None
        case _:
            return None


def _one_or_equal(layer: str, wide: Expr, dim: Expr) -> SizeConstraint:
    text = f"{layer}: a dimension of an input must be {dim_text(wide)} or 1, got {dim_text(dim)}"
    return SizeConstraint((wide - dim) * (dim - 1), 0, text)


def _least_extent(index: Expr, dim: Size, sizes: Sizes, symbols: tuple[Var, ...]) -> Size | None:
    """Return the least size that `dim` must have.

    None if it is known to have it, or if it does not follow from sizes.
    """
    if isinstance(index, Var) and isinstance(index.extent, int) and isinstance(dim, int):
        return index.extent if index.extent > dim else None
    if isinstance(dim, int) and isinstance(index, Const):
        return int(index.value) + 1 if index.value >= dim else None
    if isinstance(index, Var) and index.extent == dim:
        return None
    end = None if after(index, dim, sizes, symbols) == 0 else last(index, sizes, symbols)
    end = _last_of_products(index, lambda v: v in sizes.meaning or v in symbols) if end is None else end
    least = None if end is None else sizes.of(end + 1)
    if isinstance(least, int) and (exact := greatest(index)) is not None:
        least = exact + 1
    return None if isinstance(least, int) and isinstance(dim, int) and least <= dim else least


def _last_of_products(index: Expr, is_size: Callable[[Var], bool]) -> Expr | None:
    """Return the last index (see `last`) of sums of products of non-negative axes and sizes, as in broadcasts.

    None for others.
    """
    total: Expr = Const(0)
    affine = normal(index, {})
    for atom, c in affine.terms.items():
        ends = [_end(part, is_size) for part in factors(atom)]
        known = [e for e in ends if e is not None]
        if c < 0 or len(known) < len(ends):
            return None
        total = total + as_expr(volume(known), DType.I64) * c
    return total + affine.const


def _end(part: Expr, is_size: Callable[[Var], bool]) -> Expr | None:
    if not isinstance(part, Var) or part.low < 0:
        return None
    if is_size(part):
        return part
    return None if part.extent is None else as_expr(part.extent, DType.I64) - 1


def _indices(e: Expr, guards: frozenset[Expr]) -> Iterator[tuple[Expr, Size]]:
    """Yield the indices of loads that no `within` guards, each with the size of its dimension."""
    if not loads(e):
        return
    match e:
        case Prim("within", (index, extent, value, *other)):
            if extent != Const(0):  # else it is never read
                yield from _indices(value, guards | {index})
            for part in (index, extent, *other):
                yield from _indices(part, guards)
        case Prim(_, args):
            for arg in args:
                yield from _indices(arg, guards)
        case Reduce(_, _, body, init):
            yield from _indices(body, guards)
            if init is not None:
                yield from _indices(init, guards)
        case Load(buffer, index):
            guarded = variables(*guards)
            never = 0 in buffer.shape and not guarded.isdisjoint(variables(*index))  # no index is inside of it
            for i, n in zip(index, buffer.shape, strict=True):
                if buffer.space is not Space.TABLE and not never and guarded.isdisjoint(variables(i)):
                    yield i, n
                yield from _indices(i, guards)
        case _:
            return
