"""Stores constants that are integers times factors, as compressed weights are, in bytes.

    w[k, j] = (n[k, j] - z[j]) t[j]      add[k](x[k] w[k, j])   ->   t[j] add[k](x[k] (f32(n[k, j]) - z[j]))

It pays where each element is loaded only a few times: then memory takes longer than conversions. A factor may belong to
a part of the sum: t[k // 128, j]. Integers of 4 bits lie in pairs, two neighbours of the sum in a byte. An axis of such
a sum becomes three: parts g, pairs r, and the element of a pair h.

    b[g, r, j] = n[g, 2 r, j] | n[g, 2 r + 1, j] << 4
    add[g, r, h](x[g, 2 r + h] (f32(b[g, r, j] >> 4 h & 15) - z[g, j]) t[g, j])

Codes of nf4 and f4e2m1 lie so, too; a table of 16 numbers takes the place of the conversion to f32.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Size, Space, Var, cast, dense, prim, select
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import members, reads, rewrite_work
from aot.ir.values.deferred import Deferred, release, value_of
from aot.lowering.context import Context
from aot.lowering.ir.steps import Steps, Value
from aot.lowering.storage.narrow_constants import moving, rows_of, uses_of
from aot.lowering.storage.scale_groups import NIBBLE, Parts, in_parts
from aot.lowering.storage.stored_bytes import rearranged, stored_bytes
from aot.opset.elementwise.conversion import LEVELS
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class _IndexParts:
    """An index in parts: `part`, index of the factor; `byte`, index of the byte; `element`, 0 or 1 in the byte."""

    part: Expr
    byte: Expr
    element: Expr | None = None


@dataclass(frozen=True, slots=True)
class _Compressed:
    """Bytes that replace a constant; along the dimensions `sums`, each `part` elements share one factor (0: all do).

    `pairs`: each byte holds two elements, neighbours along the only dimension of `sums`, the first in its low bits.
    `zero`: a number that is the same everywhere, or a buffer of numbers that have the dimensions of the factors.
    `codes`: the type whose codes the elements are; None for integers.
    """

    bytes: Buffer
    zero: Buffer | float
    factor: Buffer
    sums: tuple[int, ...]
    part: int
    pairs: bool = False
    whole: bool = True  # all zero points are whole numbers
    codes: DType | None = None

    def split(self, index: tuple[Expr, ...]) -> tuple[_IndexParts, ...]:
        return tuple(self._split_index(i) if k in self.sums else _IndexParts(i, i) for k, i in enumerate(index))

    def _split_index(self, index: Expr) -> _IndexParts:
        part = index // self.part if self.part else Const(0)
        return _IndexParts(part, index // 2, index % 2) if self.pairs else _IndexParts(part, index)

    def factors(self, parts: tuple[_IndexParts, ...]) -> tuple[Expr, ...]:
        return tuple(p.part for p in parts)

    def number(self, parts: tuple[_IndexParts, ...]) -> Expr:
        byte: Expr = Load(self.bytes, tuple(p.byte for p in parts))
        zero = cast(Load(self.zero, self.factors(parts)), DType.F32) if isinstance(self.zero, Buffer) else self.zero
        element = next((p.element for p in parts if p.element is not None), None)
        if element is not None and self.whole:
            return _nibble(byte, element, zero)
        if self.codes is not None:
            number = _level(self.codes, byte, element)
        else:
            number = cast(byte, DType.F32) if element is None else _nibble(byte, element, 0.0)
        return number - zero if isinstance(zero, Expr) or zero else number

    def scale(self, parts: tuple[_IndexParts, ...]) -> Expr:
        return Load(self.factor, self.factors(parts))

    def divided(self, axis: Var) -> tuple[tuple[Var, ...], Expr, _IndexParts]:
        """Divide the axis of a sum: return the new axes, the index that they make, and its parts."""
        length, each = axis.extent, 2 if self.pairs else 1
        assert isinstance(length, int)
        count = (self.part or length) // each
        part, byte, half = (
            Var(f"{axis.name}{letter}", n) for letter, n in (("g", length // count // each), ("r", count), ("h", 2))
        )
        group: Expr = part if self.part else Const(0)
        at = group * count + byte if self.part else byte
        index_parts = _IndexParts(group, at, half if self.pairs else None)
        axes = (*((part,) if self.part else ()), byte, *((half,) if self.pairs else ()))
        return axes, at * 2 + half if self.pairs else at, index_parts


def _nibble(byte: Expr, element: Expr, zero: Expr | float) -> Expr:
    """Return number 0 or 1 of a byte as f32, minus a whole number.

    Its bits become those of a float that is greater by a power of two, which is subtracted with the zero point. That is
    exact, and takes no conversion and no shift.
    """
    first = prim("eq", element, Const(0))
    mask, bits = (select(first, *(Const(n, DType.I32) for n in pair)) for pair in ((15, 240), (0x4B000000, 0x49000000)))
    base = select(first, Const(2.0**23, DType.F32), Const(2.0**19, DType.F32))
    above = prim("bits", prim("or", prim("and", cast(byte, DType.I32), mask), bits), dtype=DType.F32)
    return above - (base + zero)


def _level(codes: DType, byte: Expr, element: Expr | None) -> Expr:
    """Return the number of a code: of a byte, or of its half 0 or 1."""
    code = cast(byte, DType.I32)
    if element is not None:
        code = select(prim("eq", element, Const(0)), prim("and", code, NIBBLE), prim("shr", code, 4))
    table = dense(codes.value, NIBBLE + 1, space=Space.TABLE, values=LEVELS[codes])
    return Load(table, (cast(code, DType.I64),))


def compress_constants(steps: Steps, context: Context) -> None:
    """Compress f32 constants with few loads of each element (`COSTS.memory_bound_loads`); small weights: with any."""
    uses, fixed, along = uses_of(steps, _lower_bound), moving(steps), _summed(steps)
    compressed: dict[str, _Compressed] = {}
    for name, value in list(steps.values.items()):
        often = uses.get(name, 0)
        if name in fixed or not (often <= COSTS.memory_bound_loads or (context.small_weights and often < np.inf)):
            continue
        constant = _compressed(steps, value, along.get(name, set()))
        if value.data is not None:
            release(value.data)
        if constant is not None:
            compressed[name] = constant
    if not compressed:
        return

    change = partial(_read, compressed)
    for block in steps.blocks():
        for step in block.steps:
            if any(x.buffer.name in compressed for x in step.reads()):
                step.works = tuple(rewrite_work(w, change) for w in step.works)


def _lower_bound(size: Size) -> int:
    """Return a lower bound of a dynamic size: for few rows, reading the weights dominates."""
    return typical(size if isinstance(size, int) else rewrite(size, {v: Const(max(v.low, 1)) for v in variables(size)}))


def _read(compressed: dict[str, _Compressed], e: Expr) -> Expr | None:
    """Replace loads of compressed constants by conversions of their bytes, and move factors out of sums."""
    change = partial(_read, compressed)
    match e:
        case Reduce("add", axes, Prim("mul", (a, b)), init):
            pairs = ((x, w) for x, w in ((a, b), (b, a)) if isinstance(w, Load) and w.buffer.name in compressed)
            x, w = next(pairs, (None, None))
            if x is None or w is None:
                return None
            total = _product(compressed[w.buffer.name], axes, rewrite(x, change), w.index)
            return total if init is None or total is None else total + rewrite(init, change)
        case Load(buffer, index) if buffer.name in compressed:
            c, index = compressed[buffer.name], tuple(rewrite(i, change) for i in index)
            parts = c.split(index)
            return c.number(parts) * c.scale(parts)
        case _:
            return None


def _product(c: _Compressed, axes: tuple[Var, ...], x: Expr, index: tuple[Expr, ...]) -> Expr | None:
    """Return the sum over `axes` of `x` times a compressed constant; None if neither factor nor axis allows one."""
    along = next((i for k, i in enumerate(index) if k in c.sums and i in axes), None)
    if isinstance(along, Var) and (c.part or c.pairs) and sum(along in variables(i) for i in index) == 1:
        inside, new_index, along_parts = c.divided(along)
        axes = tuple(a for axis in axes for a in (inside if axis == along else (axis,)))
        parts = tuple(along_parts if i == along else p for i, p in zip(index, c.split(index), strict=True))
        x = rewrite(x, {along: new_index})
    else:
        parts = c.split(index)
    scale = c.scale(parts)
    if variables(scale).isdisjoint(axes):
        return Reduce("add", axes, x * c.number(parts)) * scale
    return Reduce("add", axes, x * c.number(parts) * scale) if along is not None else None


def _summed(steps: Steps) -> dict[str, set[tuple[int, ...]]]:
    """Return the dimensions of each constant along which reductions run, or along which rows lie."""
    dims_by_name: dict[str, set[tuple[int, ...]]] = {}
    works = [w for block in steps.blocks() for s in block.steps for w in s.works]
    for work in (w for w in works if isinstance(w, tuple)):
        rows = rows_of(work)
        for x in (x for x in reads(work) if x.buffer.name in rows):
            dims_by_name.setdefault(x.buffer.name, set()).add((len(x.index) - 1,))
    for d in (d for w in works for d in members(w)):
        axes = set(d.reduction.axes) if d.reduction is not None else set[Expr]()
        for x in loads(d.value):
            along = tuple(k for k, i in enumerate(x.index) if variables(i) & axes)
            if not along and any(loads(i) for i in x.index):
                along = tuple(k for k, i in enumerate(x.index) if not loads(i))
            if along:
                dims_by_name.setdefault(x.buffer.name, set()).add(along)
    return dims_by_name


def _compressed(steps: Steps, value: Value, along: set[tuple[int, ...]]) -> _Compressed | None:
    data = value.data
    if value.region is not MemoryRegion.CONSTANT or value.arrange is not None or value.buffer.dtype is not DType.F32:
        return None
    if data is None or data.size < COSTS.min_compressed_elements or len(along) != 1:
        return None
    if not isinstance(data, Deferred) and data.dtype != np.float32:
        return None
    (sums,) = along
    parts = in_parts(data, sums)
    return None if parts is None else _stored(steps, value, parts, sums)


def _stored(steps: Steps, value: Value, parts: Parts, sums: tuple[int, ...]) -> _Compressed:
    """Replace the data of `value` by bytes, and add constants for its zero points and factors."""
    pairs = parts.bits == 4
    data = stored_bytes(parts.numbers, sums[0] if pairs else None)
    stored = dense(value.name, *data.shape, dtype=DType.U8) if pairs else replace(value.buffer, dtype=DType.I8)
    steps.values[value.name] = replace(value, buffer=stored, data=data)
    zeros = value_of(parts.zeros)
    zero = float(zeros.flat[0]) if pairs and parts.whole else 0.0
    offset: Buffer | float = zero
    if (zeros != zero).any():
        small = parts.whole and pairs and zeros.min() >= -128 and zeros.max() <= 127
        stored_zeros = rearranged(parts.zeros, DType.I8 if small else DType.F32)
        offset = steps.constant(f"{value.name}.zero", stored_zeros)
    factor = steps.constant(f"{value.name}.factor", parts.factors)
    return _Compressed(stored, offset, factor, sums, parts.size, pairs, parts.whole, parts.codes)
