"""Products of quantised values as integer sums, for machines with dot instructions, which add several products at once.

    x = (i32(q: u8) - z) s                  add[k](x[i, k] w[k, j])
    w[k, j] = v[k, j] t[j]      ->          s t[j] f32(add[k](i32(q[i, k]) i32(v[k, j])) - z add[k](v[k, j]))

Weights in -120..135, as u8 with a zero point have them, are i8 and a constant c, times the sums of the data:

    add[k](i32(q[i, k]) (i32(v[k, j]) + c[j]))     =     add[k](i32(q[i, k]) i32(v[k, j])) + c[j] add[k](i32(q[i, k]))

Data of groups g with scales of their own are summed in each of them:

    add[g, e](f32(i32(q[i, g, e]) i32(v[j, g, e])) s[i, g])

A value computed from bytes is stored as bytes, or as i16 if the instructions multiply i16, and its consumers convert
it. Integer sums are exact.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Var, cast, dense, prim
from aot.codegen.ir.numbers.dot_forms import centred
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import rewrite_work
from aot.ir.types import numpy_dtype
from aot.lowering.context import Context
from aot.lowering.fusion.substitute import simplified
from aot.lowering.ir.steps import Step, Steps, Value
from aot.lowering.numbers.quantized import BYTES, NONE, Quantized, as_byte, is_zero, quantized
from aot.lowering.numbers.widen_bytes import widen_bytes
from aot.lowering.numbers.widen_windows import widen_windows
from aot.lowering.storage.integers import sums_over, whole_numbers
from aot.runtime.abi import DType

MAX_DOT_TERMS = (1 << 31) // (255 * 128)  # terms whose sum cannot overflow i32


def use_integer_dots(steps: Steps, context: Context) -> None:
    """Use dot instructions in products of constant weights and data that are bytes or are computed from bytes.

    Depthwise windows use them only where the target interleaves bytes, and results may differ between targets: others
    sum such windows in f32, which may round to another level.
    """
    target = context.target
    if target.abilities.dots:
        joins = target.abilities.joins_bytes and not context.same_bits
        _Dots(steps, target.abilities.dots, joins, target.abilities.signs_dots).run()
    if target.abilities.dots == 2:
        widen_bytes(steps)
    if target.abilities.tiles:
        widen_windows(steps)


def use_integer_dots_again(steps: Steps, context: Context) -> None:
    """Use dot instructions in products that `split_quotient_axes` has exposed."""
    use_integer_dots(steps, context)


@dataclass(frozen=True, slots=True)
class _Weights:
    """Weights less `shift` (None: 0) as small integers, their factor (None: 1), and the sums of the weights."""

    whole: Buffer
    scale: Buffer | None
    sums: Buffer
    shift: Buffer | None


@dataclass(frozen=True, slots=True)
class _Product:
    """A product in a definition: the data, the load that these are made of, and the weights."""

    data: Expr
    x: Load
    w: Load
    apart: frozenset[Var]  # axes along which data may have scales of their own


class _Dots:
    def __init__(self, steps: Steps, together: int, joins: bool, signs: bool) -> None:
        """`joins`: words of bytes may be made of rows of data. `signs`: instructions multiply signed bytes only."""
        self.steps, self.together, self.joins, self.signs = steps, together, joins, signs
        self.dtype = DType.U8 if together == 4 else DType.I16
        self.dtypes = BYTES if together == 4 else (DType.I16,)
        self.kept = {n for n, v in steps.values.items() if v.holds_bytes}
        self.constants = steps.constants()
        self.producers: dict[str, list[Step]] = {}
        for step in steps.steps:
            for b in step.writes():
                self.producers.setdefault(b.name, []).append(step)
        self.weights: dict[tuple[str, tuple[int, ...], tuple[int, ...], DType], _Weights | None] = {}
        self.totals: dict[Expr, Load] = {}
        self.unread: set[int] = set()  # ids of steps whose values are read where their bytes lie

    def run(self) -> None:
        steps = [s for step in self.steps.steps for s in (*self._use_dots(step), step)]
        self.steps.steps = [step for step in steps if id(step) not in self.unread]

    def _use_dots(self, step: Step) -> list[Step]:
        """Sum a step's product in integers; return the steps that must run before it."""
        product = self._product(step.definition)
        if product is None or step.definition is None:
            return []
        if self._matched(product) is None and self._bytes_of(product.x.buffer.name) is None:
            return []  # before its weights are read: f32 weights of a language model take seconds and hundreds of MB
        small = DType.U8 if product.x.dtype is DType.I8 else DType.I8  # dots multiply unsigned bytes by signed ones
        weights = self._weights(product.w, step.definition, small if self.together == 4 else DType.I16)
        if weights is not None and product.x.dtype not in self.dtypes:
            self._make_bytes(product.x.buffer.name)
            product = self._product(step.definition)
        data = self._matched(product) if product is not None else None
        if product is None or weights is None or data is None or data.byte.dtype not in self.dtypes:
            return []
        has_no_bounds = not step.definition.where and not any(a.low for a in step.definition.axes)
        if not _fits(data, weights, step.definition) or not (weights.shift is None or has_no_bounds):
            return []
        assert step.definition.reduction is not None
        sums, zero = None, data.zero
        if zero != NONE or self.signs:
            has_no_sums = _is_apart(data, step.definition.reduction)
            sums = None if has_no_sums else self._sums(product.w, weights, step.definition)
        if zero != NONE and sums is None:
            return []
        less = self.signs and sums is not None and data.byte.dtype is DType.U8
        if less:
            zero = simplified(zero - 128)
        zeros = zero * sums if sums is not None and zero != NONE else None
        total, before = (None, list[Step]()) if weights.shift is None else self._total(data, step, less)
        step.works = (_summed(step.definition, data, product.w, weights, zeros, total, less),)
        return before

    def _sums(self, w: Load, weights: _Weights, d: Definition) -> Load | None:
        """Return the sum of the weights of each output; None if it is not one for several outputs.

        A sum may run over some of a dimension, as taps of a transposed convolution that one output in two reads.
        """
        r = d.reduction
        assert r is not None
        if all(isinstance(i, Var) or variables(i) <= set(d.axes) for i in w.index):
            return Load(weights.sums, tuple(Const(0) if variables(i) & set(r.axes) else i for i in w.index))
        outer = tuple(a for a in d.axes if a in variables(*w.index))
        if weights.shift is not None:
            return None
        index = tuple(i for _, i in _divided(w, r))
        sums = sums_over(np.asarray(self.steps.values[weights.whole.name].array), index, outer, r.axes)
        return None if sums is None else Load(self.steps.constant(f"{w.buffer.name}.sums", sums), outer)

    def _total(self, x: Quantized, step: Step, less: bool) -> tuple[Load, list[Step]]:
        """Return the sum of the data of each point of a product, and the step that computes it if none does yet.

        `less`: of the data less 128.
        """
        d = step.definition
        assert d is not None and d.reduction is not None
        number = centred(x.byte) if less else cast(x.byte, DType.I32)
        total = Reduce("add", d.reduction.axes, _scaled(number, x, d.reduction))
        if total in self.totals:
            return self.totals[total], []
        axes = tuple(a for a in d.axes if a in variables(x.byte))
        extents = (a.extent if a.extent is not None else 1 for a in axes)
        totals = dense(self.steps.unused(f"{d.out.name}.total"), *extents, dtype=total.dtype)
        self.steps.values[totals.name] = Value(totals, MemoryRegion.ARENA)
        self.totals[total] = Load(totals, axes)
        return self.totals[total], [Step((Definition(totals, axes, total, axes),), step.layers, "ReduceSum")]

    def _product(self, d: Definition | None) -> _Product | None:
        r = d.reduction if d is not None else None
        if d is None or r is None or r.fn != "add" or r.dtype not in (DType.F32, DType.I32) or varies(r.axes):
            return None
        if not COSTS.min_dot_terms <= _terms(r) <= MAX_DOT_TERMS:
            return None
        factors, summed = r.body.args if isinstance(r.body, Prim) and r.body.fn == "mul" else (), set(r.axes)
        for data, w in (factors, factors[::-1]) if factors else ():
            read = [x for x in loads(data) if x.buffer.name not in self.constants and variables(*x.index) & summed]
            read = [x for x in read if r.axes[-1] in variables(*x.index)] if len(read) > 1 else read
            if not isinstance(w, Load) or w.buffer.name not in self.constants or len(read) != 1:
                continue
            (x,) = read
            lanes = [typical(a.extent or 1) for a in d.axes if a in w.index and a not in variables(*x.index)]
            ours = x.buffer.name in self.steps.values and self.steps.values[x.buffer.name].region is MemoryRegion.ARENA
            enough = max(lanes, default=0) >= COSTS.min_dot_outputs or self._slides(d, r, x, w)
            if ours and enough and summed <= variables(*w.index):
                return _Product(data, x, w, frozenset((*d.axes, *_groups(r))))
        return None

    def _slides(self, d: Definition, r: Reduce, x: Load, w: Load) -> bool:
        """True if windows slide over rows and columns of channels, and words of bytes may be made of the rows."""
        if not self.joins or len(r.axes) != 2 or min(typical(a.extent or 1) for a in r.axes) < COSTS.min_dot_window:
            return False
        outer = [i for i in w.index if variables(i) and not variables(i) & set(r.axes)]
        channels = [i for i in outer if isinstance(i, Var) and i in x.index and i in d.axes]
        if len(channels) != 1 or outer != channels or typical(channels[0].extent or 1) < COSTS.vector_extent:
            return False
        dims = [variables(i) for i in x.index if variables(i) & set(r.axes)]
        return len(dims) == 2 and all(len(v & set(r.axes)) == 1 and channels[0] not in v for v in dims)

    def _matched(self, product: _Product) -> Quantized | None:
        return quantized(product.data, self.kept, product.apart)

    def _bytes_of(self, name: str) -> tuple[Step, Definition, Quantized] | None:
        """Return the single step that computes a value from bytes, its definition, and the bytes; None without one."""
        steps = self.producers.get(name, [])
        d = steps[0].definition if len(steps) == 1 else None
        stored = quantized(d.value, self.kept) if d is not None else None
        return (steps[0], d, stored) if d is not None and stored is not None else None

    def _make_bytes(self, name: str) -> None:
        """Store a value as bytes if one step computes it from bytes; bytes already in memory are read, not copied."""
        source = self._bytes_of(name)
        if source is None:
            return
        step, d, stored = source
        stored = stored.unsigned
        buffer = self._whole_load(stored.byte, d)
        if buffer is not None:
            self.unread.add(id(step))
        else:
            buffer = replace(d.out, name=f"{name}.bytes", dtype=self.dtype)
            byte = stored.byte if stored.byte.dtype is self.dtype else cast(stored.byte, self.dtype)
            self.steps.values[buffer.name] = Value(buffer, MemoryRegion.ARENA, holds_bytes=True)
            self.kept.add(buffer.name)
            step.works = (replace(d, out=buffer, value=byte),)
            self.producers[buffer.name] = [step]
        self._read_bytes(name, buffer, stored)
        del self.steps.values[name]

    def _whole_load(self, byte: Expr, d: Definition) -> Buffer | None:
        """Return the value in memory that `d` would copy if it stored `byte`; None if it would be no copy."""
        if not isinstance(byte, Load) or byte.buffer.dtype is not self.dtype or byte.index != d.target:
            return None
        ours = self.steps.values[byte.buffer.name].region is MemoryRegion.ARENA
        return byte.buffer if ours and byte.buffer.shape == d.out.shape else None

    def _read_bytes(self, name: str, buffer: Buffer, stored: Quantized) -> None:
        """Make all consumers read the bytes; padding guards go around the byte, so that a halo can replace them."""

        def change(e: Expr) -> Expr | None:
            guards, x = _unguarded(e)
            if not isinstance(x, Load) or x.buffer.name != name:
                return None
            byte: Expr = Load(buffer, tuple(rewrite(i, change) for i in x.index))
            if stored.fill is None:
                return _guarded(guards, stored.of(byte))
            return stored.of(_guarded(guards, byte, as_byte(stored.fill, self.dtype)))

        for step in self.steps.steps:
            if any(x.buffer.name == name for x in step.reads()):
                step.works = tuple(rewrite_work(w, change) for w in step.works)

    def _weights(self, w: Load, d: Definition, dtype: DType) -> _Weights | None:
        assert d.reduction is not None
        summed = set(d.reduction.axes)
        sums = tuple(k for k, i in enumerate(w.index) if variables(i) & summed)
        shape = tuple(n for n, _ in _divided(w, d.reduction))
        key = w.buffer.name, sums, shape, dtype
        if key not in self.weights:
            self.weights[key] = self._packed_weights(w.buffer, sums, shape, dtype)
        return self.weights[key]

    def _packed_weights(
        self, w: Buffer, sums: tuple[int, ...], shape: tuple[int, ...], dtype: DType
    ) -> _Weights | None:
        value = self.steps.values[w.name]
        if value.data is None or value.arrange is not None or w.dtype not in (DType.F32, DType.I32):
            return None
        numbers = whole_numbers(value.data, sums, 255, first_magnitude=128)
        if numbers is None:
            return None
        integers, factors = numbers
        middle = middle_of(integers, sums, dtype)
        if middle is None:
            return None
        scale = None if w.dtype is DType.I32 else self.steps.constant(f"{w.name}.scale", factors)
        total = self.steps.constant(f"{w.name}.sums", integers.sum(sums, np.int32, keepdims=True))
        is_shifted = bool(middle.any())
        small = (
            (integers - middle.astype(np.int16) if is_shifted else integers).astype(numpy_dtype(dtype)).reshape(shape)
        )
        shift = self.steps.constant(f"{w.name}.shift", middle) if is_shifted else None
        return _Weights(self.steps.constant(f"{w.name}.whole", small), scale, total, shift)


Guards = tuple[tuple[Expr, Expr], ...]


def _unguarded(e: Expr) -> tuple[Guards, Expr]:
    """Return the padding guards around an expression, as long as they fill with zero, and the expression inside."""
    guards: list[tuple[Expr, Expr]] = []
    while isinstance(e, Prim) and e.fn == "within" and (len(e.args) == 3 or is_zero(e.args[3])):
        guards.append((e.args[0], e.args[1]))
        e = e.args[2]
    return tuple(guards), e


def _guarded(guards: Guards, e: Expr, *other: Expr) -> Expr:
    for i, n in reversed(guards):
        e = prim("within", i, n, e, *other)
    return e


def middle_of(integers: NDArray[np.int16], sums: tuple[int, ...], dtype: DType) -> NDArray[np.int32] | None:
    """Return the number to subtract along `sums` so that weights fit a byte; 0 if they fit, None if none exists.

    `dtype`: u8, or i8, or i16, in which those of i8 lie.
    """
    low, high = (f(integers, axis=sums, keepdims=True).astype(np.int32) for f in (np.min, np.max))
    if integers.size == 0 or (high - low > 255).any():
        return None
    least = 0 if dtype is DType.U8 else -128
    lowest = low if dtype is DType.U8 else high - 127
    return np.where((low < least) | (high > least + 255), lowest, 0)


def _terms(r: Reduce) -> int:
    return prod(typical(a.extent or 1) for a in r.axes)


def _fits(x: Quantized, w: _Weights, d: Definition) -> bool:
    """True if no sum of (byte - zero) * weight can overflow. A zero point that is no byte makes differences larger."""
    assert d.reduction is not None
    terms = _terms(d.reduction) * (1 if w.shift is None else 2)
    if x.zero == NONE or x.fill is not None:
        return terms <= MAX_DOT_TERMS
    if not isinstance(x.zero, Const):
        return terms <= MAX_DOT_TERMS // 4
    return -255 <= x.zero.value <= 2 * 255 and terms <= MAX_DOT_TERMS // 2


def _summed(
    d: Definition,
    x: Quantized,
    w: Load,
    weights: _Weights,
    zeros: Expr | None,
    data: Load | None,
    less: bool,
) -> Definition:
    """Rewrite `d` with its sum in integers.

    `zeros`: the zero point times the sum of the weights; `data`: the sum of the bytes, where weights are shifted.
    `less`: 128 is taken from bytes, and from the zero point.
    """
    r = d.reduction
    assert r is not None
    outer = tuple(Const(0) if variables(i) & set(r.axes) else i for i in w.index)
    index = tuple(i for _, i in _divided(w, r))
    byte = centred(x.byte) if less else cast(x.byte, DType.I32)
    body = byte * cast(Load(weights.whole, index), DType.I32)
    total: Expr = Reduce("add", r.axes, _scaled(body, x, r))
    if weights.shift is not None and data is not None:
        total = total + cast(Load(weights.shift, outer), total.dtype) * data
    if zeros is not None:
        total = total - zeros
    if weights.scale is not None:
        factor: Expr = Load(weights.scale, outer)
        total = cast(total, DType.F32) * (factor if x.scale is None or _is_apart(x, r) else factor * x.scale)
    if r.init is not None:
        total = total + r.init
    return replace(d, value=simplified(rewrite(d.value, {r: total})))


def _scaled(term: Expr, x: Quantized, r: Reduce) -> Expr:
    """Return a term of a sum; with the data's scale, if groups of the sum have scales of their own."""
    return cast(term, DType.F32) * x.scale if x.scale is not None and _is_apart(x, r) else term


def _is_apart(x: Quantized, r: Reduce) -> bool:
    """True if groups of a sum have data with scales of their own."""
    return x.scale is not None and bool(variables(x.scale) & set(r.axes))


def _groups(r: Reduce) -> tuple[Var, ...]:
    """Return the outer of a sum's two axes if the inner one is long enough for separate sums."""
    return r.axes[:1] if len(r.axes) == 2 and typical(r.axes[1].extent or 1) >= COSTS.min_scaled_terms else ()


def _divided(w: Load, r: Reduce) -> tuple[tuple[int, Expr], ...]:
    """Return dimensions and index of weights, with two dimensions where one runs over groups and their elements."""
    dims: list[tuple[int, Expr]] = []
    for n, i in zip(w.buffer.shape, w.index, strict=True):
        assert isinstance(n, int)
        inside = [a for a in r.axes if a in variables(i)]
        sizes = [a.extent for a in inside if isinstance(a.extent, int)]
        parts = len(sizes) == len(inside) == 2 and prod(sizes) == n and not isinstance(i, Var)
        dims += zip(sizes, inside, strict=True) if parts else [(n, i)]
    return tuple(dims)
