"""Layers in bf16 and f16: data between kernels take 16 bits, and products of bf16 sum in the order of tile registers.

    y[i, j] = max(add[k](x[i, k] * w[k, j]) + b[j], 0)                                          x, w, y: f32
    y[i, j] = max(chains[k](x.bf16[i, k] * w.bf16[k, j]) + b[j], 0)                             y: bf16

Numbers are rounded once, when they are stored; kernels compute in f32. The shape of a product alone decides whether
it sums so (`codegen.ir.chains`), never the target, so that all targets compute the same bits. Products of f16 are
sums of f32; what a kernel loads often stays f32 there, as conversions would take longer than the loads. `--fast-math`
leaves both to the target: bf16 is summed by dots of pairs, in tile registers, or as f16 is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import ml_dtypes
import numpy as np

from aot.ir.types import Array
from aot.lowering.ir.lane_axes import lane_axis
from aot.lowering.ir.steps import Cycle, Step, Steps, Value
from aot.lowering.storage.few_channels import few_channels
from aot.lowering.storage.fill_blocks import can_fill, dim_along, filled, laid_out
from aot.lowering.storage.integers import whole_numbers
from aot.lowering.storage.often_loaded import axes_around, loads_together, read_by_windows
from aot.precision import BF16, F16, Precision
from codegen.costs import COSTS
from codegen.ir.access import known
from codegen.ir.chains import block_terms, chain_factors
from codegen.ir.definition import Definition, Group
from codegen.ir.dot_widths import multiplies_small, scaled_sum
from codegen.ir.expressions import loads, rewrite, variables, walk
from codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Space, Var, dense, prim
from codegen.ir.primitives import CHAINS
from codegen.ir.program import Region
from codegen.ir.traverse import members, move_loads, rewrite_work
from codegen.target import Target
from runtime.abi import DType
from runtime.errors import UsageError

READ = (Region.INPUT, Region.ARENA, Region.CONSTANT)  # memory that no later step of a block writes again
MIN_ROWS = 4  # rows of a product below which memory limits it: its weights are short, and it sums in any order
MIN_COLUMNS = 16  # columns of a product that fill a row of a tile register
MIN_DOT_TERMS = 8  # terms along memory that dots of two sum faster than multiply-adds
MIN_ELEMENTS = 1 << 10  # of a value that is worth rounding
MAX_WINDOW = 64  # terms of a sum up to which it is a mean of a window; larger ones are statistics of norms
# What computes with the digits of a number, or leaps at some: its operands keep theirs.
EXACTING = frozenset("floor ceil trunc round_even round_away sign mod rem sin cos tan eq ne bits".split())


SHORT = {BF16: DType.BF16, F16: DType.F16}
FEW_DIGITS = {"exp_normal": "exp_short", "erf": "erf_short"}  # functions of f32 whose results are rounded to 8 bits
MAX_F16 = 65504.0


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of products of bf16: `pairs`: by dots of two, in any order, instead of chains.

    `plain`: types whose products are sums of f32; a kernel that loads such numbers often reads f32. `rough`: functions
    have few digits where their results are rounded to 8 bits.
    """

    pairs: bool = False
    rough: bool = False
    plain: frozenset[DType] = frozenset({DType.F16})

    @staticmethod
    def of(target: Target) -> Sums:
        """Return those of a target: with fast sums, chains are for tile registers only."""
        slow = target.fast_math and not target.has_tiles and not target.sums_pairs
        plain = frozenset({DType.F16, DType.BF16} if slow else {DType.F16})
        return Sums(target.sums_pairs, target.fast_math, plain)


CHAINED = Sums()


def shorten_floats(steps: Steps, precision: Precision, small: bool = False, sums: Sums = CHAINED) -> None:
    """Store values that products and elementwise layers pass on in 16 bits, and round the weights of products.

    `small`: round weights to f16 even where a kernel loads them often.
    """
    names = {n for b in steps.blocks() for s in b.steps for n in s.layers}
    if unused := precision.unused(names):
        raise UsageError(f"precision: a pattern matches a layer's name, got {unused[0]!r}")
    maker = _Shortened(steps, precision, small, sums)
    maker.shorten_values()
    for block in steps.blocks():
        maker.use_chains(block)
        maker.shorten_functions(block)


@dataclass(frozen=True, slots=True)
class _Product:
    """A product that tile registers can compute: the operand of its rows, the one of its columns, the blocks' axis."""

    x: Load
    w: Load
    axis: Var

    def reading(self, old: Load, new: Load, d: Definition) -> tuple[Definition, _Product]:
        """Return the definition and its product with another factor."""
        x, w = (new if f == old else f for f in (self.x, self.w))
        return replace(d, value=rewrite(d.value, {old: new})), replace(self, x=x, w=w)


class _Shortened:
    def __init__(self, steps: Steps, precision: Precision, small: bool, sums: Sums) -> None:
        self.steps, self.precision, self.small, self.sums = steps, precision, small, sums
        self.constants = steps.constants()
        plain = any(SHORT[kind] in sums.plain and precision.has(kind) for kind in SHORT)
        self.uses = loads_together(steps) if plain else {}
        self.weights: dict[str, Buffer] = {}
        self.kinds: dict[str, set[DType | None]] = {}  # of the steps that read or write a value
        for step in (s for block in steps.blocks() for s in block.steps):
            for b in (*step.writes(), *(x.buffer for x in step.reads())):
                self.kinds.setdefault(b.name, set()).add(self.kind(step))
        self.done: set[str] = set()  # weights that are rounded, or stay
        self.makers = Counter(b.name for block in steps.blocks() for s in block.steps for b in s.writes())
        self.converted = read_by_windows(steps) if sums.pairs or DType.BF16 in sums.plain else frozenset[str]()

    def kind(self, step: Step) -> DType | None:
        """Return the type of 16 bits in which a step's values are stored; None: f32."""
        return SHORT.get(self.precision.of(step.layers))

    def is_loaded_often(self, name: str) -> bool:
        """True if a kernel loads each element so often that conversions take longer than reading twice the bytes."""
        return self.uses.get(name, 0) > COSTS.memory_bound_loads

    def shared_kind(self, name: str) -> DType | None:
        """Return the type of 16 bits of all steps that read or write a value; None if they differ."""
        kinds = self.kinds.get(name, {None})
        return next(iter(kinds)) if len(kinds) == 1 else None

    # ---- values between kernels

    def shorten_values(self) -> None:
        kept = {n for block in self.steps.blocks() for s in block.steps for n in self._kept_by(s)}
        made: dict[str, Buffer] = {}
        for name in [n for block in self.steps.blocks() for n in block.touched()]:
            value = self.steps.values[name]
            kind = self.shared_kind(name)
            often = kind in self.sums.plain and self.is_loaded_often(name)
            often = often or (kind is DType.BF16 and name in self.converted)
            if kind is not None and not often and name not in kept and name not in made and _is_worth_it(value):
                made[name] = replace(value.buffer, dtype=kind)
                self.steps.values[name] = replace(value, buffer=made[name])
        change = move_loads(made)
        for step in (s for block in self.steps.blocks() for s in block.steps):
            step.works = tuple(rewrite_work(w, change, lambda b: made.get(b.name, b)) for w in step.works)

    def _kept_by(self, step: Step) -> Iterator[str]:
        """Yield the values that a step reads or writes in f32."""
        reads, writes = {x.buffer.name for x in step.reads()}, {b.name for b in step.writes()}
        plain = step.control is None and all(not isinstance(w, tuple) for w in step.works)
        if not plain or self.kind(step) is None:
            yield from reads | writes
            if isinstance(step.control, Cycle):
                yield from (b.name for b in (*step.control.enters, *step.control.leaves))
            return
        if step.definition is None:
            yield from reads & writes  # carried from one iteration to the next
        yield from (x.buffer.name for x in step.binds.values())
        for d in (d for w in step.works for d in members(w)):
            yield from (x.buffer.name for x in loads(*d.index, *(i for x in loads(d.value) for i in x.index)))
            for e in walk(_without_product(d)):
                if isinstance(e, Prim) and _needs_digits(e):
                    yield from (x.buffer.name for x in loads(*e.args))
            if d.reduction is not None and scaled_sum(d.reduction) is not None:
                yield from (x.buffer.name for x in loads(d.reduction.body))  # scales and zero points of whole groups
            if _is_statistic(d) or any(isinstance(e, Prim) and _counts(e) for e in walk(d.value)):
                yield d.out.name

    # ---- products

    def use_chains(self, block: Steps) -> None:
        copies: dict[str, Buffer] = {}
        found: list[Step] = []
        for step in block.steps:
            d, kind = step.definition, self.kind(step)
            chained = kind is DType.BF16 and kind not in self.sums.plain
            pixels = self._pixels(step, copies) if chained else None
            product = self._product(d) if d is not None and chained and pixels is None else None
            if d is not None and product is not None:
                for x in self._apart(product):
                    made = laid_out(x, product.axis, self.steps.unused(f"{x.buffer.name}.terms"))
                    found.append(self._made(made, step))
                    d, product = product.reading(x, Load(made.out, made.target), d)
                for x in (product.x, product.w):
                    found += self._copy(x.buffer, step, copies)
                step.works = (self._summed(d, product, copies),)
            elif kind is not None:
                found += pixels or []
                if chained and self.sums.pairs:
                    step.works = tuple(self._recurrent(w) if isinstance(w, Group) else w for w in step.works)
                self._round_weights(step, kind)
            found.append(step)
        block.steps = found

    def shorten_functions(self, block: Steps) -> None:
        """Compute functions in four digits in steps that write nothing but bf16 and bytes."""
        for step in block.steps if self.sums.rough else ():
            if self.kind(step) is DType.BF16 and all(map(self._is_rough, step.writes())):
                step.works = tuple(rewrite_work(w, _with_few_digits) for w in step.works)

    def _is_rough(self, b: Buffer) -> bool:
        return b.dtype is DType.BF16 or self.steps.values[b.name].holds_bytes

    def _factors(self, d: Definition) -> tuple[Load, Load] | None:
        """Return the operands of the rows and of the columns of a product of enough of both."""
        r = d.reduction
        if r is None or r.fn != "add" or r.dtype is not DType.F32 or any(isinstance(e, Reduce) for e in walk(r.body)):
            return None
        factors = chain_factors(r)
        lane = lane_axis(d, self.constants)
        if factors is None or lane is None or known(lane.extent or 1) < MIN_COLUMNS:
            return None
        x, w = factors if lane in variables(*factors[1].index) else factors[::-1]
        if lane in variables(*x.index) or lane not in variables(*w.index):
            return None
        if not all(f.buffer.space is Space.ARG and self._is_plain(f.buffer) for f in factors):
            return None
        rows = prod(known(a.extent or 1) for a in d.axes if a not in variables(*w.index))
        return (x, w) if rows >= MIN_ROWS else None

    def _pixels(self, step: Step, copies: dict[str, Buffer]) -> list[Step] | None:
        """Rewrite a convolution of few channels, and return the step that writes the pixels that it reads, if none did.

        None for other steps.
        """
        d = step.definition
        factors = self._factors(d) if d is not None else None
        found = few_channels(d, *factors) if d is not None and factors is not None else None
        if found is None or found.w.buffer.name not in self.constants:
            return None
        data = self.steps.values[found.w.buffer.name].array
        assert data is not None
        filters = self.steps.constant(f"{found.w.buffer.name}.pixels", found.filters(data))
        name = f"{found.x.buffer.name}.pixels{found.width}"
        made: list[Step] = []
        if name not in copies:
            copies[name] = found.pixels(self.steps.unused(name))
            self.steps.values[copies[name].name] = Value(copies[name], Region.ARENA)
            made.append(Step((found.copy(copies[name]),), step.layers, "Convert"))
        step.works = (found.product(copies[name], filters, "add" if self.sums.pairs else CHAINS),)
        return made

    def _product(self, d: Definition) -> _Product | None:
        r, factors = d.reduction, self._factors(d)
        if r is None or factors is None:
            return None
        x, w = factors
        both = variables(*x.index) & variables(*w.index)
        axes = [a for a in r.axes if a in both and isinstance(a.extent, int) and self._fills_words(a.extent)]
        if not axes and not self.sums.pairs:
            axes = [a for a in r.axes if can_fill(a, r, self.constants)]
        axis = max(axes, key=lambda a: (a in x.index, known(a.extent or 1)), default=None)
        return _Product(x, w, axis) if axis is not None else None

    def _apart(self, product: _Product) -> list[Load]:
        """Return the factors that zeros shall follow, but whose dimensions the terms share with other axes."""
        if self._fills_words(known(product.axis.extent or 1)):
            return []
        return [x for x in (product.x, product.w) if dim_along(x, product.axis) is None]

    def _made(self, d: Definition, step: Step) -> Step:
        """Return the step that makes a new value for another one to read."""
        self.steps.values[d.out.name] = Value(d.out, Region.ARENA)
        return Step((d,), step.layers, "Convert")

    def _fills_words(self, terms: int) -> bool:
        """True if so many terms are summed by dots of two, or in blocks of chains."""
        return terms >= MIN_DOT_TERMS if self.sums.pairs else block_terms(terms) > 0

    def _is_plain(self, b: Buffer) -> bool:
        value = self.steps.values.get(b.name)
        if value is None or b.dtype not in (DType.F32, DType.BF16) or value.region not in READ:
            return False
        if b.dtype is DType.F32 and self.makers[b.name] > 1:
            return False  # a copy of all parts would need those that this step may be made before
        return value.region is not Region.CONSTANT or (value.data is not None and value.arrange is None)

    def _copy(self, b: Buffer, step: Step, copies: dict[str, Buffer]) -> list[Step]:
        """Add a bf16 copy of an operand that has none, and return the step that makes it."""
        if b.dtype is DType.BF16 or b.name in copies:
            return []
        if b.name in self.constants:
            copies[b.name] = self._short_constant(b)
            return []
        made = copies[b.name] = dense(self.steps.unused(f"{b.name}.bf16"), *b.shape, dtype=DType.BF16)
        axes = tuple(Var(f"d{k}", n) for k, n in enumerate(b.shape) if n != 1)
        left = iter(axes)
        index = tuple(Const(0) if n == 1 else next(left) for n in b.shape)
        return [self._made(Definition(made, axes, Load(b, index), index), step)]

    def _short_constant(self, b: Buffer) -> Buffer:
        if b.name not in self.weights:
            data = self.steps.values[b.name].array
            assert data is not None
            short = np.asarray(data, np.float32).astype(ml_dtypes.bfloat16)
            self.weights[b.name] = self.steps.constant(f"{b.name}.bf16", short)
        return self.weights[b.name]

    def _longer(self, b: Buffer, dim: int, extent: int) -> Buffer | None:
        """Return a constant with zeros up to `extent` elements of a dimension; None for data."""
        data = self.steps.values[b.name].array
        if data is None:
            return None
        name = f"{b.name}.{dim}.{extent}"
        if name not in self.weights:
            beside = [(0, extent - n if k == dim else 0) for k, n in enumerate(data.shape)]
            self.weights[name] = self.steps.constant(name, np.pad(data, beside))
        return self.weights[name]

    def _summed(self, d: Definition, product: _Product, copies: dict[str, Buffer]) -> Definition:
        r = d.reduction
        assert r is not None
        short = move_loads({n: copies[n] for x in (product.x, product.w) if (n := x.buffer.name) in copies})
        axes = (*(a for a in r.axes if a is not product.axis), product.axis)
        total = Reduce("add" if self.sums.pairs else CHAINS, axes, rewrite(r.body, short))
        if not self._fills_words(known(product.axis.extent or 1)):
            total = filled(total, product.axis, self._longer)
        return replace(d, value=rewrite(d.value, {r: total if r.init is None else total + r.init}))

    def _recurrent(self, g: Group) -> Group:
        """Return a group whose products of states and constant weights are of bf16: each step of time copies its state.

        gates[g] = add[k](h[t, k] * r[g, k])   ->   h.bf16[k] = h[t, k];  gates[g] = add[k](h.bf16[k] * r.bf16[g, k])
        """
        members: list[Definition | Group] = []
        for d in g.members:
            r = d.reduction if isinstance(d, Definition) else None
            factors = chain_factors(r) if r is not None and r.fn == "add" and r.dtype is DType.F32 else None
            if isinstance(d, Group) or r is None or factors is None:
                members.append(d)
                continue
            x, w = factors if factors[1].buffer.name in self.constants else factors[::-1]
            kept = [k for k, i in enumerate(x.index) if variables(i).isdisjoint(g.axes)]
            state = (
                x.buffer.name in self.steps.values and x.buffer.dtype is DType.F32 and w.buffer.name in self.constants
            )
            if not state or not self._is_recurrent(g, r, x, w):
                members.append(d)
                continue
            name = self.steps.unused(f"{x.buffer.name}.bf16")
            made = dense(name, *(x.buffer.shape[k] for k in kept), dtype=DType.BF16)
            self.steps.values[made.name] = Value(made, Region.ARENA)
            index = tuple(x.index[k] for k in kept)
            copied = (*g.axes, *(a for a in (*d.axes, *r.axes) if a in variables(*index) and a not in g.axes))
            members.append(Definition(made, copied, x, index))
            change: dict[Expr, Expr] = {x: Load(made, index), w: Load(self._short_constant(w.buffer), w.index)}
            members.append(replace(d, value=rewrite(d.value, change)))
        return replace(g, members=tuple(members))

    def _is_recurrent(self, g: Group, r: Reduce, x: Load, w: Load) -> bool:
        """True if the steps of a group along one axis, of which weights know nothing, sum enough terms of a state."""
        plain = self._is_plain(w.buffer) and self.shared_kind(w.buffer.name) is DType.BF16
        alone = all(isinstance(i, Var | Const) for i in x.index if variables(i).isdisjoint(g.axes))
        terms = [a.extent for a in r.axes if a in x.index and a in w.index]
        long = len(terms) == 1 and isinstance(terms[0], int) and terms[0] >= MIN_DOT_TERMS
        return plain and alone and long and len(g.axes) == 1 and g.axes[0] not in variables(*w.index)

    def _round_weights(self, step: Step, kind: DType) -> None:
        """Round the weights of products so that they can lie in memory in 16 bits: for bf16, those of few rows.

        Weights that bytes hold, those that a layer of another type reads, too, and those beyond f16 stay what they are.
        """
        for work, d in ((w, d) for w in step.works for d in members(w)):
            again = axes_around(work)  # each of their iterations reads the weights anew: steps of time
            r = d.reduction
            factors = chain_factors(r) if r is not None and r.fn == "add" and r.dtype is DType.F32 else None
            for w in factors or ():
                value = self.steps.values.get(w.buffer.name)
                inner = (a for a in d.axes if a not in again and a not in variables(*w.index))
                rows = prod(known(a.extent or 1) for a in inner)
                if (
                    r is None
                    or value is None
                    or value.data is None
                    or (kind not in self.sums.plain and rows >= MIN_ROWS)
                ):
                    continue
                if kind in self.sums.plain and not self.small and self.is_loaded_often(w.buffer.name):
                    continue
                if w.buffer.name in self.done or self.shared_kind(w.buffer.name) is not kind:
                    continue
                if w.buffer.name in self.constants and self._is_plain(w.buffer) and value.data.size >= MIN_ELEMENTS:
                    sums = tuple(k for k, i in enumerate(w.index) if variables(i) & {*r.axes})
                    short = rounded(np.asarray(value.array, np.float32), kind)
                    if short is not None and whole_numbers(value.data, sums, 127) is None:
                        self.steps.values[value.name] = replace(value, data=short)
                    self.done.add(value.name)


def rounded(data: Array, kind: DType) -> Array | None:
    """Return f32 numbers rounded to those of a short type; None if it holds smaller ones only."""
    if kind is DType.F16 and np.abs(data).max(initial=0.0) > MAX_F16:
        return None
    return data.astype(np.float16 if kind is DType.F16 else ml_dtypes.bfloat16).astype(np.float32)


def _is_worth_it(value: Value) -> bool:
    b = value.buffer
    if value.region is not Region.ARENA or b.dtype is not DType.F32 or value.half is not None or value.holds_bytes:
        return False
    return not all(isinstance(n, int) for n in b.shape) or prod(map(known, b.shape)) >= MIN_ELEMENTS


def _with_few_digits(e: Expr) -> Expr | None:
    if not isinstance(e, Prim) or e.dtype is not DType.F32 or e.fn not in FEW_DIGITS:
        return None
    return prim(FEW_DIGITS[e.fn], *(rewrite(a, _with_few_digits) for a in e.args))


def _without_product(d: Definition) -> Expr:
    """Return the value computed from a product's sum, whose factors are rounded anyway; of other definitions, all."""
    r = d.reduction
    return d.value if r is None or chain_factors(r) is None else rewrite(d.value, {r: Const(0.0, r.dtype)})


def _needs_digits(e: Prim) -> bool:
    leaves = e.fn == "cast" and not e.dtype.is_float and e.args[0].dtype.is_float
    return leaves or (e.fn in EXACTING and any(a.dtype.is_float for a in e.args))


def _counts(e: Prim) -> bool:
    """True for a float converted from a wide integer: a position, a size, a time; not a sum of products of bytes."""
    inner = e.args[0].dtype if e.fn == "cast" and e.dtype.is_float else DType.F32
    wide = not inner.is_float and inner.bits > 8 and bool(variables(*e.args) or loads(*e.args))
    return wide and not multiplies_small(*e.args)


def _is_statistic(d: Definition) -> bool:
    """True for a long sum that is no product: a mean, a variance."""
    r = d.reduction
    if r is None or r.fn not in ("add", "mul") or multiplies_small(r.body):
        return False
    factors = chain_factors(r)
    if factors is not None and factors[0].buffer != factors[1].buffer:
        return False
    return prod(known(a.extent or 1) for a in r.axes) > MAX_WINDOW
