"""Storage as bytes for constants that are integers times factors, as compressed weights are.

    w[k, j] = (n[k, j] - z[j]) t[j]      add[k](x[k] w[k, j])   ->   t[j] add[k](x[k] (f32(n[k, j]) - z[j]))

It pays where each element is loaded only a few times: then memory takes longer than conversions. A factor may belong to
a part of the sum: t[k // 128, j].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from aot.ir.types import Array
from aot.ir.values.deferred import Deferred
from aot.lowering.ir.steps import Steps, Value
from aot.lowering.storage.integers import whole_numbers
from aot.lowering.storage.narrow_constants import moving, uses_of
from codegen.costs import COSTS
from codegen.ir.access import known
from codegen.ir.expressions import loads, rewrite, variables
from codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Size, cast
from codegen.ir.program import Region
from codegen.ir.traverse import members, rewrite_work
from runtime.abi import DType

SPAN = 255  # greatest difference between the largest and the least integer
PARTS = (256, 128, 64, 32)  # elements of a sum that share a factor, in the order in which they are tried


@dataclass(frozen=True, slots=True)
class _Compressed:
    """Bytes that replace a constant; along the dimensions `sums`, each `part` elements share one factor (0: all do)."""

    bytes: Buffer
    zero: Buffer | None
    factor: Buffer
    sums: tuple[int, ...]
    part: int

    def factors(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        inside: list[Expr] = [i // self.part if self.part else Const(0) for i in index]
        return tuple(inside[k] if k in self.sums else i for k, i in enumerate(index))

    def number(self, index: tuple[Expr, ...]) -> Expr:
        whole = cast(Load(self.bytes, index), DType.F32)
        return whole if self.zero is None else whole - Load(self.zero, self.factors(index))

    def scale(self, index: tuple[Expr, ...]) -> Expr:
        return Load(self.factor, self.factors(index))


def compress_constants(steps: Steps, always: bool = False) -> None:
    """Compress f32 constants with few loads of each element (`COSTS.memory_bound_loads`); with `always`, with any."""
    uses, fixed, along = uses_of(steps, _least), moving(steps), _summed(steps)
    made: dict[str, _Compressed] = {}
    for name, value in list(steps.values.items()):
        often = uses.get(name, 0)
        if name in fixed or not (often <= COSTS.memory_bound_loads or (always and often < np.inf)):
            continue
        found = _compressed(steps, value, along.get(name, set()))
        if found is not None:
            made[name] = found
    if not made:
        return

    change = partial(_read, made)
    for block in steps.blocks():
        for step in block.steps:
            if any(x.buffer.name in made for x in step.reads()):
                step.works = tuple(rewrite_work(w, change) for w in step.works)


def _least(size: Size) -> int:
    """Lower bound of a dynamic size: few rows are assumed, since reading the weights dominates then."""
    return known(size if isinstance(size, int) else rewrite(size, {v: Const(max(v.low, 1)) for v in variables(size)}))


def _read(made: dict[str, _Compressed], e: Expr) -> Expr | None:
    """Replace loads of compressed constants by conversions of their bytes, and move factors out of sums."""
    change = partial(_read, made)
    match e:
        case Reduce("add", axes, Prim("mul", (a, b)), init):
            pairs = ((x, w) for x, w in ((a, b), (b, a)) if isinstance(w, Load) and w.buffer.name in made)
            x, w = next(pairs, (None, None))
            scale = made[w.buffer.name].scale(w.index) if w is not None else None
            if x is None or w is None or scale is None or not variables(scale).isdisjoint(axes):
                return None
            total = Reduce("add", axes, rewrite(x, change) * made[w.buffer.name].number(w.index)) * scale
            return total if init is None else total + rewrite(init, change)
        case Load(buffer, index) if buffer.name in made:
            c, index = made[buffer.name], tuple(rewrite(i, change) for i in index)
            return c.number(index) * c.scale(index)
        case _:
            return None


def _summed(steps: Steps) -> dict[str, set[tuple[int, ...]]]:
    """Dimensions of each constant along which reductions run, or along which gathered rows lie."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for d in (d for block in steps.blocks() for s in block.steps for w in s.works for d in members(w)):
        axes = set(d.reduction.axes) if d.reduction is not None else set[Expr]()
        for x in loads(d.value):
            along = tuple(k for k, i in enumerate(x.index) if variables(i) & axes)
            if not along and any(loads(i) for i in x.index):
                along = tuple(k for k, i in enumerate(x.index) if not loads(i))
            if along:
                found.setdefault(x.buffer.name, set()).add(along)
    return found


def _compressed(steps: Steps, value: Value, along: set[tuple[int, ...]]) -> _Compressed | None:
    data = value.data
    if value.region is not Region.CONSTANT or value.arrange is not None or value.buffer.dtype is not DType.F32:
        return None
    if data is None or data.size < COSTS.min_compressed_elements or len(along) != 1:
        return None
    if not isinstance(data, Deferred) and data.dtype != np.float32:
        return None
    (sums,) = along
    for part in (0, *(PARTS if len(sums) == 1 else ())):
        if part and data.shape[sums[0]] % part:
            continue
        shape = [n for k, n in enumerate(data.shape) for n in ((n // part, part) if part and k in sums else (n,))]
        inner = tuple(k + 1 for k in sums) if part else sums
        found = whole_numbers(data, inner, SPAN, tuple(shape))
        if found is not None:
            return _made(steps, value, found, inner, sums, part)
    return None


def _made(
    steps: Steps, value: Value, found: tuple[Array, Array], inner: tuple[int, ...], sums: tuple[int, ...], part: int
) -> _Compressed | None:
    """Replace the data of `value` by bytes, and add constants for its zero points and factors."""
    whole, factors = found
    low, high = whole.min(inner, keepdims=True), whole.max(inner, keepdims=True)
    if (high - low > SPAN).any():
        return None
    zero = np.where((low < -128) | (high > 127), -128 - low, 0)
    shape, outer = value.buffer.shape, factors.squeeze(inner) if part else factors
    bytes_ = replace(value.buffer, dtype=DType.I8)
    data = (whole + zero).astype(np.int8).reshape([int(n) for n in shape if isinstance(n, int)])
    steps.values[value.name] = replace(value, buffer=bytes_, data=data)
    zeros = steps.constant(f"{value.name}.zero", zero.astype(np.float32).reshape(outer.shape)) if zero.any() else None
    return _Compressed(bytes_, zeros, steps.constant(f"{value.name}.factor", outer), sums, part)
