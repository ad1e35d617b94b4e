"""Access patterns of a definition: the stride of each access along each axis. Schedules and layouts depend on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, variables, walk
from aot.codegen.ir.index import Affine, bounds, depends_on, factors, normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Size, Space, Var, as_expr
from aot.runtime.abi import DType

# How a definition accesses memory is found once for all passes and schedules: definitions never change.


def offset(buffer: Buffer, index: tuple[Expr, ...]) -> Affine:
    """Return the offset of `buffer[index]`, in elements."""
    return element_offset(buffer.strides, index)


@lru_cache(maxsize=1 << 16)
def element_offset(strides: tuple[Size, ...], index: tuple[Expr, ...]) -> Affine:
    """Return the offset, in elements, of an index of any buffer with these strides."""
    total = Affine({})
    for i, stride in zip(index, strides, strict=True):
        elements = normal(i, {})
        total = total.plus(elements.times(stride) if isinstance(stride, int) else normal(elements.expr() * stride, {}))
    return total


def in_order(buffer: Buffer, order: Sequence[int]) -> Buffer:
    """Return a buffer with dimensions dense in this order, the outermost first; absent ones have one element."""
    strides: list[Size] = [0] * len(buffer.shape)
    stride: Size = 1
    for k in reversed(order):
        strides[k] = stride
        stride = stride * buffer.shape[k]
    return replace(buffer, strides=tuple(strides))


def buffer_bytes(buffer: Buffer) -> int:
    """Return the bytes of all elements of `buffer`; an estimate for dynamic sizes."""
    return prod(map(typical, buffer.shape)) * buffer.dtype.stored_bytes


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store. `strides[axis]`: elements from one point of `axis` to the next, None if not constant."""

    load: Load | None  # None: the store
    buffer: Buffer
    strides: dict[Var, int | None]
    at: Affine

    def stride(self, axis: Var) -> int | None:
        return self.strides[axis]

    def moves(self, axis: Var) -> bool:
        return self.strides[axis] != 0

    def reach(self, axis: Var) -> int:
        """Return the elements between two points of `axis`, for ordering loops: an estimate, 0 if not linear."""
        stride = self.strides.get(axis)
        if stride is not None:
            return abs(stride)
        stride = coefficient(self.at, axis)
        return 0 if stride is None else abs(typical(stride.expr()))

    def continues_axis(self, outer: Var, inner: Var) -> bool:
        """True if `outer` continues where `inner` ends, for any size: both move the access like one axis."""
        one, other = coefficient(self.at, outer), coefficient(self.at, inner)
        if one is None or other is None or inner.extent is None:
            return False
        return one.key == normal(other.expr() * inner.extent, {}).key


def coefficient(at: Affine, axis: Var) -> Affine | None:
    """Return the factor of `axis`, which may contain dynamic sizes; None if `at` is not linear in `axis`."""
    total = Affine({})
    for term, c in at.terms.items():
        if axis not in variables(term):
            continue
        rest = list(factors(term))
        if axis not in rest:
            return None
        rest.remove(axis)
        if any(axis in variables(f) for f in rest):
            return None
        product: Expr = Const(c)
        for f in rest:
            product = f * product
        total = total.plus(normal(product, {}))
    return total


def all_continue(accesses: Iterable[Access], outer: Var, inner: Var) -> bool:
    """True if every access moves along `outer` and `inner` as one axis."""
    return all(x.continues_axis(outer, inner) for x in accesses)


def varies(axes: Iterable[Var]) -> bool:
    """True if some extent is dynamic."""
    return any(not isinstance(a.extent, int) for a in axes)


def fills(axes: Iterable[Var], size: int) -> bool:
    """True if fused axes have `size` points or more, for all dynamic sizes."""
    return prod(max(bounds(normal(as_expr(a.extent or 1, DType.I64), {}))[0], 0) for a in axes) >= size


def access(buffer: Buffer, index: tuple[Expr, ...], axes: tuple[Var, ...], load: Load | None = None) -> Access:
    at = offset(buffer, index)
    return Access(load, buffer, {a: None if depends_on(at, a) else at.terms.get(a, 0) for a in axes}, at)


def all_axes(d: Definition) -> tuple[Var, ...]:
    reduction = d.reduction
    return d.axes if reduction is None else (*d.axes, *reduction.axes)


@lru_cache(maxsize=1 << 15)
def store(d: Definition) -> Access:
    return access(d.out, d.target, d.axes)


@lru_cache(maxsize=1 << 15)
def reads(d: Definition, *, body: bool = False) -> tuple[Access, ...]:
    """Return an access for each load of memory; with `body`, only for those in the body of the reduction."""
    axes = all_axes(d)
    roots = (d.reduction.body,) if body and d.reduction is not None else (d.value, *d.index)
    return tuple(access(x.buffer, x.index, axes, x) for x in loads(*roots) if x.buffer.space is not Space.TABLE)


@lru_cache(maxsize=1 << 15)
def points(d: Definition) -> Size:
    """Return the number of points that compute the innermost value."""
    return volume(_extents(all_axes(d)))


def _extents(axes: tuple[Var, ...]) -> list[Size]:
    """Return the number of points of each axis; the upper bound if the extent depends on another one of `axes`."""
    extents: list[Size] = []
    for a in axes:
        assert a.extent is not None
        inner = not isinstance(a.extent, int) and not variables(a.extent).isdisjoint(axes)
        size = int(bounds(normal(a.extent, {}))[1]) if inner and not isinstance(a.extent, int) else a.extent
        extents.append(size - a.low if a.low else size)
    return extents


def volume(extents: Iterable[Size]) -> Size:
    """Return the product of `extents`, static ones first, so that quotients by static extents stay simple."""
    sizes = list(extents)
    total: Size = prod(n for n in sizes if isinstance(n, int))
    for n in sizes:
        if not isinstance(n, int):
            total = n if isinstance(total, int) and total == 1 else total * n
    return total


def unravel(axes: Sequence[Var], flat: Expr) -> dict[Expr, Expr]:
    """Express each axis by quotients and remainders of `flat`, which counts points in row-major order."""
    coordinates: dict[Expr, Expr] = {}
    rest: Expr = flat
    for a in reversed(axes[1:]):
        assert a.extent is not None
        coordinates[a], rest = rest % a.extent, rest // a.extent
    return {**coordinates, axes[0]: rest}


def typical(size: Size) -> int:
    """Return a size for estimates: the typical value of a dynamic size, within its range."""
    match size:
        case int():
            return size
        case Const(value):
            return int(value)
        case Var(_, extent, low, usual):
            return max(min(usual, extent - 1), low) if isinstance(extent, int) else max(usual, low)
        case Prim(fn, (a, b)) if fn in _ESTIMATES:
            return _ESTIMATES[fn](typical(a), typical(b))
        case _:
            return 64


_ESTIMATES: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // max(b, 1),
    "mod": lambda a, b: a % max(b, 1),
    "min": min,
    "max": max,
}


COST = {
    "exp": 10,
    "exp_normal": 10,
    "exp_short": 8,
    "sigmoid_short": 12,
    "sigmoid_level": 14,
    "mish_short": 16,
    "log": 12,
    "tanh": 12,
    "tanh_short": 12,
    "erf": 14,
    "erf_short": 8,
    "gelu_short": 10,
    "gelu_tanh_short": 10,
    "pow": 25,
    "sin": 15,
    "cos": 15,
    "sqrt": 4,
    "div": 4,
}


def fixed_extent(a: Var) -> int:
    """Return the extent of an axis of static size."""
    assert isinstance(a.extent, int), f"axis {a.name} has no fixed extent"
    return a.extent


def work(d: Definition) -> Size:
    """Return the number of arithmetic operations: those of a reduction at each point, all others once per output."""
    outputs, r = volume(_extents(d.axes)), d.reduction
    each = _operations(d.value, r) + sum(_operations(result.value, None) for result in d.results)
    if r is None:
        return outputs * max(each, 1)
    return points(d) * (_operations(r.body, None) + 1) + outputs * each


def _operations(e: Expr, excluded: Expr | None) -> int:
    """Sum the weights (`COST`) of float operations and i32 products in `e`, without those of `excluded`."""
    if e is excluded:
        return 0
    inside = set(_counted(excluded)) if excluded is not None else set[Prim]()
    return sum(COST.get(p.fn, 1) for p in _counted(e) if p not in inside)


def _counted(e: Expr) -> Iterator[Prim]:
    """Yield the operations of floats and the products of i32 in `e`."""
    for p in walk(e):
        if isinstance(p, Prim) and (p.dtype.is_float or (p.fn == "mul" and p.dtype is DType.I32)):
            yield p


def traffic(d: Definition) -> Size:
    """Return the bytes of all ARG buffers that `d` reads or writes, each element counted once."""
    size: Size = 0
    beside = (b for r in d.results for b in (r.out, *(x.buffer for x in loads(r.value))))
    touched = dict.fromkeys((d.out, *(x.buffer for x in loads(d.value)), *beside))
    for b in (b for b in touched if b.space is Space.ARG):
        count: Size = b.dtype.stored_bytes
        for n in b.shape:
            count = count * n
        size = size + count
    return size
