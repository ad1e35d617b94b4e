"""Bases that several families share: element by element, and along axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Const, Expr, Prim, Reduce, Var, as_expr, prim, select
from aot.codegen.ir.loops import Operand as ExprLike
from aot.ir.conditions import axis_of
from aot.ir.dims import is_data
from aot.ir.op import ComputeOp, Element, late_symbol
from aot.ir.operand import Input, Operand, has_symbols
from aot.ir.types import Array, Dim, Shape, TensorType, dim_text, numpy_dtype, simplify
from aot.ir.values.symbolic import symbols_in
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


def axis(name: str, extent: Dim) -> Var:
    """Return a reduction axis."""
    return Var(name, extent)


def broadcast(*shapes: Shape, what: str) -> Shape:
    """Broadcast by NumPy's rule: shapes are aligned at the end, 1 stretches."""
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    return tuple(_common(dims, what) for dims in zip(*padded, strict=True))


def _common(dims: Iterable[Dim], what: str) -> Dim:
    size: Dim = 1
    for d in dims:
        if size in (1, d):
            size = d
        elif d == 1 or _is_part(d, size):
            continue
        elif _is_part(size, d):
            size = d
        elif isinstance(size, int) and isinstance(d, int):
            raise ShapeError(f"{what}: shapes do not broadcast: {size} and {d}")
        elif isinstance(size, int) or isinstance(d, int):
            size = size if isinstance(size, int) else d  # the other is equal or 1 at run time, which a rule checks
        elif isinstance(size, Var) or isinstance(d, Var):
            size = _either(as_expr(size, DType.I64), as_expr(d, DType.I64))
    return size


def _either(a: Expr, b: Expr) -> Dim:
    """Return the common size of dimensions if each may be 1: the largest one, or 0 if one is empty."""
    first, *rest = sorted(parts_of_common(a) | parts_of_common(b), key=dim_text)
    least = most = first
    for part in rest:
        least, most = prim("min", least, part), prim("max", most, part)
    if bounds(normal(least, {}))[0] >= 1:
        return simplify(most)
    return simplify(select(prim("eq", least, 0), 0, most))


def can_stretch(n: Dim, m: Dim) -> bool:
    """True if dimension `n` can be 1 at run time and stretch to `m`, as `stretched` reads it."""
    return n != m and isinstance(n, Expr) and bounds(normal(n, {}))[0] <= 1 and not _is_part(n, m)


def _is_part(n: Dim, m: Dim) -> bool:
    """True if `n` is the size of a slice to or from `m`, as min(512, m): a rule checks that they are equal.

    Sizes that data decide may be 1 there, too, and stretch.
    """
    if isinstance(n, int) or isinstance(m, int) or is_data(n):
        return False
    match n:
        case Prim("min", args) | Prim("select", (_, *args)) | Prim("max", (*args, Const(0))):
            return any(a == m or _is_part(a, m) for a in args)
        case _:
            return False


def _is_size(e: Expr) -> bool:
    return not isinstance(e, Const) and bounds(normal(e, {}))[0] >= 0


def parts_of_common(m: Expr) -> frozenset[Expr]:
    """Return the dimensions that a common size is computed from."""
    match m:
        case Prim("max", args) if all(map(_is_size, args)):  # max(count, 0) is no common size
            return frozenset(p for a in args for p in parts_of_common(a))
        case Prim("select", (Prim("eq", (_, Const(0))), Const(0), most)):
            return parts_of_common(most)
        case _:
            return frozenset((m,))


def stretched(index: ExprLike, n: Dim) -> ExprLike:
    """Return the index into a dimension `n` that stretches to the extent of `index`; 0 if n is 1.

    Its factor is 0 or 1, also for a dimension without elements: kernels then load rows, not elements.
    """
    if n == 1:
        return 0
    if not isinstance(n, Expr) or not isinstance(index, Var) or index.extent == n:
        return index
    least = bounds(normal(n, {}))[0]
    return index if least > 1 else index * prim("min", (n if least == 1 else prim("max", n, 1)) - 1, 1)


def pdpd_shape(a: Shape, b: Shape, axis: int) -> Shape:
    """Return `b` aligned with `a` from `axis` on by PaddlePaddle's rule; its trailing ones are dropped first."""
    trimmed = list(b)
    while trimmed and trimmed[-1] == 1:
        trimmed.pop()
    start = len(a) - len(b) if axis == -1 else axis
    if start < 0 or start + len(trimmed) > len(a):
        raise ShapeError(f"broadcast: {len(trimmed)} dimensions from axis {axis} on must fit in {len(a)}")
    return (1,) * start + tuple(trimmed) + (1,) * (len(a) - start - len(trimmed))


@dataclass(frozen=True)
class Elementwise(ComputeOp):
    """Base of operations that compute each output element from one element of each input; inputs broadcast."""

    symbolic: ClassVar[bool] = False  # `scalar` maps integers to an integer, so it may compute with dimensions

    if TYPE_CHECKING:

        def scalar(self, *elements: Any, **named: Any) -> Expr: ...

    def infer(self, *xs: Operand) -> TensorType:
        first = xs[0].dtype
        for x in xs[1:]:
            if x.dtype is not first:
                raise ShapeError(f"{self.type}: element types must be equal, got {first.value} and {x.dtype.value}")
        return TensorType(first, broadcast(*(x.shape for x in xs), what=self.type))

    def compute(self, out: TensorType, *xs: Input) -> Element:
        return lambda *index: self.scalar(*(read_broadcast(x, index) for x in xs))

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        if not has_symbols(*operands) or self.moved is not None:
            return super().fold(*operands)
        if not self.symbolic or any(o is not None and (o.value is None or not o.dtype.is_integer) for o in operands):
            return None
        return self._folded([(o.value, o.dtype) for o in operands if o is not None and o.value is not None])

    def _folded(self, inputs: Sequence[tuple[Array, DType]]) -> tuple[Array, ...] | None:
        """Fold each element: from numbers by `reference`, in their type; from symbols by `scalar`."""
        marks = [symbols_in(value) for value, _ in inputs]
        plain = (np.where(m, 1, v).astype(numpy_dtype(t)) for (v, t), m in zip(inputs, marks, strict=True))
        result = self.evaluate(*plain)[0].astype(object)
        if np.broadcast_shapes(*(m.shape for m in marks)) != result.shape:  # PDPD aligns differently
            return None
        values = [np.broadcast_to(value, result.shape) for value, _ in inputs]
        marked = np.broadcast_to(np.any(np.broadcast_arrays(*marks), axis=0), result.shape)
        for at in np.ndindex(*result.shape):
            if marked[at]:
                result[at] = simplify(self.scalar(*(as_expr(v.item(*at), DType.I64) for v in values)))
        return (result,)


def rounded_once(function: Callable[..., Array], *arrays: Array) -> Array:
    """Compute `function` in f32 if the arrays are of short floats; the result has the type of the first array."""
    wide = [a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a for a in arrays]
    with np.errstate(all="ignore"):
        return np.asarray(function(*wide)).astype(arrays[0].dtype, copy=False)


def read_broadcast(x: Input, index: tuple[ExprLike, ...]) -> Expr:
    """Return the element of `x` at `index`; `x` broadcasts to the rank of `index`."""
    own = index[len(index) - x.rank :]
    return x(*(stretched(i, n) for i, n in zip(own, x.shape, strict=True)))


@dataclass(frozen=True)
class Reduction(ComputeOp):
    """`fn` over the axes that the second input names."""

    keep_dims: bool = False

    fn: ClassVar[str]
    symbolic: ClassVar[bool] = False  # `reference` may compute with dimensions

    def infer(self, x: Operand, axes: Operand) -> TensorType:
        if axes.value is None:  # `decompose` computes the sizes; only the number of axes is known
            count = prod(axes.type.static_shape)
            if count > max(x.rank, 1):
                raise ShapeError(f"{self.type}: a tensor of rank {x.rank} has fewer axes than are named, got {count}")
            rank = x.rank if self.keep_dims else max(x.rank - count, 0)
            return TensorType(x.dtype, tuple(late_symbol(self, f"d{k}", None, x, axes) for k in range(rank)))
        positions = self.axes(x.rank, axes.ints(f"{self.type}: axes"))
        dims = [(1 if i in positions else n) for i, n in enumerate(x.shape) if self.keep_dims or i not in positions]
        return TensorType(x.dtype, tuple(dims))

    def axes(self, rank: int, axes: Iterable[int]) -> frozenset[int]:
        """Return axes from the front; a scalar counts as one axis of one element, as in OpenVINO and ONNX Runtime."""
        return frozenset(axis_of(a, max(rank, 1), self.type) for a in axes)

    def compute(self, out: TensorType, x: Input, axes: Input) -> Element:
        dims = self.axes(x.rank, axes.operand().ints(f"{self.type}: axes"))
        inner = {i: axis(f"r{i}", x.shape[i] if x.rank else 1) for i in sorted(dims)}

        def element(*index: Expr) -> Expr:
            rest = iter(index)
            at = [(inner[i], self.keep_dims and next(rest))[0] if i in inner else next(rest) for i in range(x.rank)]
            value = x(*at)
            if not inner:
                return value
            return self.finish(Reduce(self.fn, tuple(inner.values()), self.each(value)), _volume(inner.values()))

        return element

    def each(self, x: Expr) -> Expr:
        """Return the term of the reduction for one element."""
        return x

    def finish(self, total: Expr, count: Dim) -> Expr:
        """Return the result from the reduced value."""
        return total

    def evaluate(self, *arrays: Array | None) -> tuple[Array, ...]:
        """Evaluate `reference` to a tuple; a scalar is passed as one axis of one element."""
        x, *rest = arrays
        if x is None or x.ndim:
            return super().evaluate(*arrays)
        return tuple(y.reshape(()) for y in super().evaluate(x.reshape(1), *rest))

    def tuple_of(self, rank: int, axes: Array) -> tuple[int, ...]:
        return tuple(sorted(self.axes(rank, (int(a) for a in np.atleast_1d(axes)))))


def _volume(axes: Iterable[Var]) -> Dim:
    total: Dim = 1
    for a in axes:
        assert a.extent is not None, dim_text(a)
        total = total * a.extent
    return total
