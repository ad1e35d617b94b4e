"""Maps of indices that several view operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aot.codegen.ir.loops import Const, Expr
from aot.ir.operand import Piece
from aot.ir.types import Dim, Shape, TensorType

IndexMap = Callable[..., tuple[Expr, ...]]


def whole(out: TensorType, index: IndexMap, source: int = 0, output: int = 0) -> Piece:
    """Return one piece that covers the output."""
    return Piece(source, (0,) * out.rank, out.shape, index, output)


def same(*index: Expr) -> tuple[Expr, ...]:
    return index


def reshaped(old: Shape, new: Shape) -> IndexMap:
    """Return the map from indices of `new` to those of `old`, both row-major; unchanged dimensions keep their index.

    [n, 12, 64] as [n, 768]: (b, j) -> (b, j // 64, j % 64); only groups of dimensions with equal products are mixed.
    """
    groups = _groups(old, new)

    def index(*at: Expr) -> tuple[Expr, ...]:
        inner: list[Expr] = [Const(0)] * len(old)
        for old_group, new_group in groups:
            flat: Expr = Const(0)
            for k in new_group:
                flat = flat * new[k] + at[k]
            for k in reversed(old_group[1:]):
                inner[k] = flat % old[k]
                flat = flat // old[k]
            inner[old_group[0]] = flat
        return tuple(inner)

    return index


def _groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Return the smallest runs of dimensions of both shapes with equal products; those of size 1 belong to none."""
    left, right = [k for k, n in enumerate(old) if n != 1], [k for k, n in enumerate(new) if n != 1]
    groups: list[tuple[list[int], list[int]]] = []
    while left and right:
        old_group, new_group = [left.pop(0)], [right.pop(0)]
        a, b = old[old_group[0]], new[new_group[0]]
        while a != b and (left or right):
            if right and (not left or not _is_less(a, b)):
                new_group.append(right.pop(0))
                b = b * new[new_group[-1]]
            else:
                old_group.append(left.pop(0))
                a = a * old[old_group[-1]]
        groups.append((old_group, new_group))
    if groups:
        groups[-1][0].extend(left)
        groups[-1][1].extend(right)
    return groups


def _is_less(a: Dim, b: Dim) -> bool:
    """True if the first product should grow. A dynamic size is joined with all dimensions that follow."""
    return isinstance(a, int) and isinstance(b, int) and a < b


def permuted(order: Sequence[int]) -> IndexMap:
    """Return the index map of a transposition: output dimension k is input dimension order[k]."""

    def index(*at: Expr) -> tuple[Expr, ...]:
        inner: list[Expr] = [Const(0)] * len(order)
        for k, o in enumerate(order):
            inner[o] = at[k]
        return tuple(inner)

    return index


def shifted(offsets: Sequence[Dim], steps: Sequence[int] | None = None) -> IndexMap:
    """Return the index map of a slice: i to offset + i * step."""
    strides = steps if steps is not None else [1] * len(offsets)

    def index(*at: Expr) -> tuple[Expr, ...]:
        return tuple(o + i * s for i, o, s in zip(at, offsets, strides, strict=True))

    return index
