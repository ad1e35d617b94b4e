"""Dot products of short numbers: one instruction adds several products to each 32-bit accumulator.

    add[k](i32(x[i, k]) * i32(w[k, j]))   ->   acc[i, j] += dot(x[i, k], w[k, j], 4)     for every fourth k

A word is the elements that fill 32 bits, and the terms of one dot: four bytes (one factor u8, one i8), two i16 or two
bf16. Sums of integers are exact; of bf16, the processor says how they round. Elements of weights may hold several
numbers of few bits (`PackedField`), which a shift and a mask take out of all elements of a word at once:

    add[k](i32(x[i, r, h, b]) * (i32(w[r, b, j]) >> 4 h & 15))     b: the elements of a word

Factors of i16 may be sums of data and weights (`halved_factors`):

    add[k](i32(x[i, k] + w[k + n, j]) * i32(x[i, k + n] + w[k, j]))
        ->   acc[i, j] += dot(x[i, k] + w[k + n, j], x[i, k + n] + w[k, j], 2)     for every second k
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import Access, access, all_axes, coefficient, typical, volume
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import functions_in, rewrite, variables, walk
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Var, cast, prim
from aot.codegen.ir.numbers.bf16_chains import chain_factors
from aot.codegen.ir.schedule import Pack
from aot.runtime.abi import DType

BLOCK_BYTES = 8  # bytes of a row of a block, where instructions multiply blocks of two rows by two columns
BLOCK_COLUMNS = 4  # columns of the two blocks that fill two vectors of sums
CENTRES = -0x7F7F7F80  # 128 in each byte of a word: a u8 less 128 has the bits of the u8, but the highest one
DOT_LANES = 16  # lanes of a dot instruction at most
FACTOR_TYPES = ((DType.U8, DType.I8), (DType.I16, DType.I16), (DType.I16, DType.U16))


@dataclass(frozen=True, slots=True)
class PackedField:
    """Some bits of a loaded element, as an unsigned number: those of `mask` once it is shifted right by `shift`."""

    load: Load
    shift: Expr
    mask: int

    @property
    def value(self) -> Expr:
        """Return the number as an i32."""
        shifted = prim("shr", cast(self.load, DType.I32), cast(self.shift, DType.I32))
        return prim("and", shifted, Const(self.mask, DType.I32))


def packed_field_of(e: Expr) -> PackedField | None:
    """Return the field that an expression takes out of an unsigned element."""
    match e:
        case Prim("and", (Prim("shr", (Prim("cast", (Load() as x,)), Prim("cast", (shift,)))), Const(mask)), DType.I32):
            return PackedField(x, shift, int(mask)) if x.dtype in (DType.U8, DType.U16) else None
        case _:
            return None


def elements_per_dot(dtype: DType) -> int:
    """Return the number of elements that fill 32 bits."""
    return 4 // dtype.stored_bytes


def takes_blocks(d: Definition, packing: Pack, lane: str) -> bool:
    """True if a product of bytes has whole blocks of columns, which one instruction can multiply with two rows."""
    factors = dot_factors(d.reduction, lane) if d.reduction is not None else None
    if factors is None or d.reduction is None or scaled_sum(d.reduction) is not None or packing.fused is not None:
        return False
    columns = next((a.extent for a in d.axes if a.name == lane), None)
    fills_blocks = isinstance(columns, int) and columns % BLOCK_COLUMNS == 0
    bytes_ = tuple(x.dtype for x in factors) == (DType.U8, DType.I8)
    return fills_blocks and bytes_ and packed_field(d.reduction) is None


def small_factors(reduction: Reduce) -> tuple[Load, Load] | None:
    """Return the factors of a sum of i32(u8) * i32(i8), or of i32(i16) * i32(i16).

    Of a sum whose factors are sums, those that the factors begin and end with; of a field, the element.
    """
    if (halved := halved_factors(reduction)) is not None:
        (x, _), (_, w) = halved
        return x, w
    return _factors(reduction.body) if reduction.fn == "add" and reduction.dtype is DType.I32 else None


def multiplies_small(*values: Expr) -> bool:
    """True if values are computed from products that dots sum: i32(u8) * i32(i8), or i32(i16) * i32(i16)."""
    return any(_factors(e) is not None for e in walk(*values))


def _factors(body: Expr) -> tuple[Load, Load] | None:
    if not isinstance(body, Prim) or body.fn != "mul":
        return None
    x, w = map(_small, body.args)
    if x is None or w is None:
        return None
    if x.dtype is DType.I8:
        x, w = w, x
    return (x, w) if (x.dtype, w.dtype) in FACTOR_TYPES else None


def scaled_sum(reduction: Reduce) -> Reduce | None:
    """Return the sum of integers in a sum of (f32(i32(x) * i32(w)) + zero) * scale."""
    if reduction.fn != "add" or reduction.dtype is not DType.F32:
        return None
    parts = [reduction.body]
    while parts:
        match parts.pop():
            case Prim("mul" | "add", (one, other), DType.F32):
                parts += [one, other]
            case Prim("cast", (Prim("mul") as whole,), DType.F32) if whole.dtype is DType.I32:
                reduce = Reduce("add", reduction.axes, whole)
                return reduce if small_factors(reduce) is not None else None
            case _:
                pass
    return None


def packed_field(reduction: Reduce | None) -> PackedField | None:
    """Return the field that is a factor of a sum of integers, scaled or not; None without one."""
    products = None if reduction is None else scaled_sum(reduction) or reduction
    if products is None or small_factors(products) is None or not isinstance(products.body, Prim):
        return None
    return next((f for f in map(packed_field_of, products.body.args) if f is not None), None)


def halved_factors(reduction: Reduce | None) -> tuple[tuple[Load, Load], tuple[Load, Load]] | None:
    """Return data and weights of both factors of a sum of i32(x + w) * i32(x + w), all i16."""
    body = reduction.body if reduction is not None else None
    if reduction is None or reduction.fn != "add" or not isinstance(body, Prim) or body.fn != "mul":
        return None
    match tuple(map(_narrow, body.args)):
        case (Prim("add", (Load() as a, Load() as b)), Prim("add", (Load() as c, Load() as d))):
            return ((a, b), (c, d)) if all(e.dtype is DType.I16 for e in (a, b, c, d)) else None
        case _:
            return None


def dot_factors(reduction: Reduce, lane: str) -> tuple[Load, Load] | None:
    """Return the data and the weights of a sum that dots compute, where only weights move with `lane`.

    Guards of padding around products of bf16 are left out: dots are emitted only where `is_guarded` is false.
    """
    products = scaled_sum(reduction) or reduction
    if (small := small_factors(products)) is not None:
        one, other = small
        return (other, one) if _moves(one, lane) and not _moves(other, lane) else small
    factors = chain_factors(reduction) if reduction.fn == "add" and reduction.dtype is DType.F32 else None
    if factors is None or any(x.buffer.dtype is not DType.BF16 for x in factors):
        return None
    x, w = factors if _moves(factors[1], lane) else factors[::-1]
    return (x, w) if _moves(w, lane) and not _moves(x, lane) else None


def is_guarded(reduction: Reduce) -> bool:
    """True if terms of a sum are tested for padding."""
    return "within" in functions_in(reduction.body)


def _moves(x: Load, axis: str) -> bool:
    return any(v.name == axis for v in variables(*x.index))


def has_k_words(d: Definition, parts: tuple[Var, ...], packing: Pack, lane: str) -> bool:
    """True if terms along `parts`, outermost first, are contiguous: in the data now, in the weights by `packing`."""
    factors = dot_factors(d.reduction, lane) if d.reduction is not None else None
    if factors is None or factors[1].buffer.name != packing.operand or not is_k_contiguous(d, parts, factors[0]):
        return False
    return tuple(factors[1].index[k] for k in packing.order[packing.place + 1 :][-len(parts) :]) == parts


def window_factors(reduction: Reduce | None, lane: str) -> tuple[Load, Load] | None:
    """Return both factors of a sum of products of bytes that move with `lane`, data first, as in windows."""
    factors = small_factors(reduction) if reduction is not None and scaled_sum(reduction) is None else None
    if (
        factors is None
        or packed_field(reduction) is not None
        or any(elements_per_dot(x.buffer.dtype) != 4 for x in factors)
    ):
        return None
    return factors if all(_moves(x, lane) for x in factors) else None


def takes_columns(d: Definition, k_axis: Var, packing: Pack, lane: str) -> bool:
    """True if words of data have their elements in rows along `k_axis`, and `packing` arranges weights in words."""
    factors = window_factors(d.reduction, lane)
    w = next((x for x in factors or () if x.buffer.name == packing.operand), None)
    if factors is None or w is None:
        return False
    data = next(x for x in factors if x is not w)
    moves = access(data.buffer, data.index, all_axes(d))
    beside = any(a.name == lane and stride == 1 for a, stride in moves.strides.items())
    return beside and coefficient(moves.at, k_axis) is not None and w.index[packing.order[-1]] == k_axis


def takes_rows(d: Definition, k_axis: Var, lane: str) -> bool:
    """True if bf16 products read data that are contiguous along `k_axis`, and weights that are along the lanes."""
    weights = _weights_of_pairs(d, k_axis, lane)
    return weights is not None and coefficient(weights.at, k_axis) is not None and _stride_along(weights, lane) == 1


def has_k_paired_weights(d: Definition, k_axis: Var, lane: str) -> bool:
    """True if bf16 products read data that are contiguous along `k_axis`, and weights in words of two terms."""
    weights = _weights_of_pairs(d, k_axis, lane)
    if weights is None or weights.load is None or _stride_along(weights, lane) != elements_per_dot(DType.BF16):
        return False
    return is_arranged(weights.load, (k_axis,)) == k_axis


def is_arranged(x: Load, sums: tuple[Var, ...]) -> Var | None:
    """Return the axis of `sums` that fills words in memory: x[.., k // 2, j, k % 2] of bf16."""
    size = elements_per_dot(DType.BF16)
    if x.buffer.dtype is not DType.BF16 or x.buffer.shape[-1:] != (size,) or x.buffer.strides[-1:] != (1,):
        return None
    last = normal(x.index[-1], {}).key
    return next((a for a in sums if normal(a % size, {}).key == last), None)


def _weights_of_pairs(d: Definition, k_axis: Var, lane: str) -> Access | None:
    """Return the access to the weights of a sum of bf16 products; None unless data are contiguous along `k_axis`."""
    factors = dot_factors(d.reduction, lane) if d.reduction is not None else None
    if factors is None or factors[1].buffer.dtype is not DType.BF16 or not is_k_contiguous(d, (k_axis,), factors[0]):
        return None
    return access(factors[1].buffer, factors[1].index, all_axes(d), factors[1])


def _stride_along(x: Access, axis: str) -> int | None:
    return next((stride for a, stride in x.strides.items() if a.name == axis), None)


def is_k_contiguous(d: Definition, parts: tuple[Var, ...], x: Load) -> bool:
    """True if data are contiguous along `parts`, outermost first; only the outermost may have a dynamic size."""
    data, stride = access(x.buffer, x.index, all_axes(d)), 1
    for a in reversed(parts):
        if data.strides.get(a) != stride or not (isinstance(a.extent, int) or a == parts[0]):
            return False
        stride *= typical(a.extent or 1)
    return bool(parts)


def packs_lanes(d: Definition, packing: Pack, lanes: tuple[str, ...]) -> bool:
    """True if weights are packed along the axes `lanes`, outermost first, and data move by words along the outer one.

    Of two axes, as groups and channels of a group, all lanes of a group have one word of data.
    """
    factors = dot_factors(d.reduction, lanes[-1]) if d.reduction is not None else None
    w = next((x for x in factors or () if x.buffer.name == packing.operand), None)
    if factors is None or w is None:
        return False
    dims = (packing.axis,) if packing.fused is None else (packing.fused, packing.axis)
    packed = [w.index[k] for k in dims]
    if tuple(i.name for i in packed if isinstance(i, Var)) != lanes:
        return False
    data, size = access(factors[0].buffer, factors[0].index, all_axes(d)).strides, elements_per_dot(w.dtype)
    steps = [data[i] for i in packed[:-1] if isinstance(i, Var)]
    fills_words = (
        not steps
        or volume([w.buffer.shape[k] for k in packing.order[len(packing.order) - packing.words :]]) % size == 0
    )
    return fills_words and all(step is not None and step % size == 0 for step in steps)


def _narrow(e: Expr) -> Expr | None:
    return e.args[0] if isinstance(e, Prim) and e.fn == "cast" else None


def is_centred(reduction: Reduce) -> bool:
    """True if data of a sum of products of bytes are less 128, so that instructions multiply signed ones."""
    return "centred" in functions_in(reduction.body)


def centred(x: Expr) -> Expr:
    """Return a u8 less 128, as an i32."""
    return Prim("centred", (x,), DType.I32)


def _small(e: Expr) -> Load | None:
    if isinstance(e, Prim) and e.fn == "centred":
        return e.args[0] if isinstance(e.args[0], Load) else None
    if (field := packed_field_of(e)) is not None:
        return field.load
    inner = _narrow(e)
    return inner if isinstance(inner, Load) and inner.dtype in (DType.U8, DType.I8, DType.I16) else None


def dot(x: Expr, w: Expr, n: int, rows: Sequence[Expr] = ()) -> Expr:
    """Return the sum of `n` products of consecutive elements from `x` and `w` on: two loads, or two sums of loads.

    `w` may be a field of consecutive elements. `rows`: the other terms of `w` where they are no neighbours in memory:
    loads, then zero if they do not fill a word.
    """
    return Prim("dot", (x, w, Const(n), *rows), DType.F32 if x.dtype.is_float else DType.I32)


def terms_in_rows(x: Load, axis: Var, n: int, word_terms: int) -> tuple[Expr, ...]:
    """Return the terms after the first of `n` along `axis`, padded with zeros to a word of `word_terms` terms."""
    others = tuple(Load(x.buffer, tuple(rewrite(i, {axis: axis + k}) for i in x.index)) for k in range(1, n))
    return others if n == word_terms else (*others, Const(0.0 if x.dtype.is_float else 0, x.dtype))


def row_words(x: Load, n: int) -> Expr:
    """Return a word for each lane: the `n` bytes from `x` on, then zeros."""
    return Prim("row_words", (x, Const(n)), DType.I32)


def halves(a: Expr, b: Expr, high: bool) -> Expr:
    """Return the lower or the higher halves of two vectors, that of `a` first."""
    return Prim("high_halves" if high else "low_halves", (a, b), a.dtype)


def block_dot(x: Load, w: Load, half: int) -> Expr:
    """Return the products of a block of data, a vector in registers, and the columns of one half of four.

    Columns of `w` lie side by side, 8 bytes of each.
    """
    return Prim("block_dot", (x, w, Const(half)), DType.I32)
