"""Products of bf16 that sum in chains, the order of tile registers, or by dots of two; products that sum in f16.

y[i, j] = add[k](x[i, k] * w[k, j])
x.bf16[i, k] = x[i, k];  y[i, j] = chains[k](x.bf16[i, k] * w.bf16[k, j])
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite, variables, walk
from aot.codegen.ir.loops import Buffer, Const, Load, Reduce, Size, Space, Var, dense
from aot.codegen.ir.numbers.bf16_chains import block_terms, chain_factors
from aot.codegen.ir.primitives import CHAINS
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import move_loads
from aot.lowering.ir.lane_axes import lane_axis
from aot.lowering.ir.steps import Step, Value
from aot.lowering.numbers.precision.few_channels import few_channels
from aot.lowering.numbers.precision.fill_blocks import can_fill, dim_along, filled, laid_out
from aot.lowering.numbers.precision.short_types import ShortTypes
from aot.lowering.numbers.precision.short_weights import MAX_F16, ShortWeights
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class _Product:
    """A product that tile registers can compute: the operand of its rows, the one of its columns, the blocks' axis."""

    x: Load
    w: Load
    axis: Var

    def with_factor(self, old: Load, new: Load, d: Definition) -> tuple[Definition, _Product]:
        """Return the definition `d` of the product, and the product, with `new` instead of `old`."""
        x, w = (new if f == old else f for f in (self.x, self.w))
        return replace(d, value=rewrite(d.value, {old: new})), replace(self, x=x, w=w)


class ChainedProducts:
    """Rewrites the products of one block in a type of 16 bits, `kind`, which share copies of their operands."""

    def __init__(self, types: ShortTypes, weights: ShortWeights, kind: DType = DType.BF16) -> None:
        self.types, self.steps, self.weights, self.kind = types, types.steps, weights, kind
        self.chains = kind is DType.BF16 and not types.sums.pairs
        self.fn = CHAINS if self.chains else "add"
        self._copies: dict[str, Buffer] = {}

    def rewrite(self, step: Step) -> list[Step] | None:
        """Rewrite a product, and return the steps that copy its operands, if none did."""
        d = step.definition
        if d is None:
            return None
        pixels = self._use_pixels(d, step)
        product = self._product(d) if pixels is None else None
        if product is None:
            return pixels
        steps: list[Step] = []
        for x in self._shared_dimensions(product):
            copy = laid_out(x, product.axis, self.steps.unused(f"{x.buffer.name}.terms"))
            steps.append(self._conversion(copy, step))
            d, product = product.with_factor(x, Load(copy.out, copy.target), d)
        for x in (product.x, product.w):
            steps += self._copy(x.buffer, step)
        step.works = (self._summed(d, product),)
        return steps

    def _use_pixels(self, d: Definition, step: Step) -> list[Step] | None:
        """Rewrite a convolution of few channels, and return the step that writes the pixels that it reads, if none did.

        None for other steps.
        """
        factors = self._factors(d)
        pixels = few_channels(d, *factors) if factors is not None and self.kind is DType.BF16 else None
        if pixels is None or pixels.w.buffer.name not in self.types.constants:
            return None
        data = self.steps.values[pixels.w.buffer.name].array
        assert data is not None
        filters = self.steps.constant(f"{pixels.w.buffer.name}.pixels", pixels.filters(data))
        name = f"{pixels.x.buffer.name}.pixels{pixels.width}"
        steps: list[Step] = []
        if name not in self._copies:
            self._copies[name] = pixels.pixels(self.steps.unused(name))
            steps.append(self._conversion(pixels.copy(self._copies[name]), step))
        step.works = (pixels.product(self._copies[name], filters, self.fn),)
        return steps

    def _product(self, d: Definition) -> _Product | None:
        r, factors = d.reduction, self._factors(d)
        if r is None or factors is None:
            return None
        x, w = factors
        both = variables(*x.index) & variables(*w.index)
        axes = [a for a in r.axes if a in both and self._fills_words(a.extent or 1)]
        if not axes and self.chains:
            axes = [a for a in r.axes if can_fill(a, r, self.types.constants)]
        axis = max(axes, key=lambda a: (a in x.index, typical(a.extent or 1)), default=None)
        return _Product(x, w, axis) if axis is not None else None

    def _factors(self, d: Definition) -> tuple[Load, Load] | None:
        """Return the operands of the rows and of the columns of a product of enough of both."""
        r = d.reduction
        if r is None or r.fn != "add" or r.dtype is not DType.F32 or any(isinstance(e, Reduce) for e in walk(r.body)):
            return None
        factors = chain_factors(r)
        lane = lane_axis(d, self.types.constants)
        if factors is None or lane is None or typical(lane.extent or 1) < COSTS.min_word_columns:
            return None
        x, w = factors if lane in variables(*factors[1].index) else factors[::-1]
        if lane in variables(*x.index) or lane not in variables(*w.index):
            return None
        if not all(f.buffer.space is Space.ARG and self._can_round(f.buffer) for f in factors):
            return None
        rows = prod(typical(a.extent or 1) for a in d.axes if a not in variables(*w.index))
        return (x, w) if rows >= COSTS.min_short_rows else None

    def _can_round(self, b: Buffer) -> bool:
        """True if a copy in the type of 16 bits can replace a value, and all weights are in its range."""
        data = self.steps.values[b.name].array if self.kind is DType.F16 and b.name in self.types.constants else None
        return self.types.can_copy(b, self.kind) and (data is None or bool(np.abs(data).max(initial=0.0) <= MAX_F16))

    def _fills_words(self, terms: Size) -> bool:
        """True if `terms` products fill pairs of dots, f16 sums or blocks of chains."""
        if not isinstance(terms, int):
            return self.kind is DType.BF16
        return block_terms(terms) > 0 if self.chains else terms >= COSTS.min_dot_terms

    def _shared_dimensions(self, product: _Product) -> list[Load]:
        """Return the factors that need zeros at the end, but share the dimension of the terms with other axes."""
        if self._fills_words(product.axis.extent or 1):
            return []
        return [x for x in (product.x, product.w) if dim_along(x, product.axis) is None]

    def _copy(self, b: Buffer, step: Step) -> list[Step]:
        """Add a short copy of an operand that has none, and return the step that writes it."""
        if b.dtype is self.kind or b.name in self._copies:
            return []
        if b.name in self.types.constants:
            self._copies[b.name] = self.weights.in_short(b, self.kind)
            return []
        buffer = self._copies[b.name] = dense(
            self.steps.unused(f"{b.name}.{self.kind.value}"), *b.shape, dtype=self.kind
        )
        axes = tuple(Var(f"d{k}", n) for k, n in enumerate(b.shape) if n != 1)
        left = iter(axes)
        index = tuple(Const(0) if n == 1 else next(left) for n in b.shape)
        return [self._conversion(Definition(buffer, axes, Load(b, index), index), step)]

    def _conversion(self, d: Definition, step: Step) -> Step:
        """Return the step that writes a new value by `d` for `step` to read."""
        self.steps.values[d.out.name] = Value(d.out, MemoryRegion.ARENA)
        return Step((d,), step.layers, "Convert")

    def _summed(self, d: Definition, product: _Product) -> Definition:
        """Return the definition with the copies as operands, its terms innermost, in the order of chains or of dots."""
        r = d.reduction
        assert r is not None
        names = {x.buffer.name for x in (product.x, product.w)}
        short = move_loads({n: b for n, b in self._copies.items() if n in names})
        axes = (*(a for a in r.axes if a is not product.axis), product.axis)
        total = Reduce(self.fn, axes, rewrite(r.body, short))
        if not self._fills_words(product.axis.extent or 1):
            total = filled(total, product.axis, self.weights.zero_padded)
        return replace(d, value=rewrite(d.value, {r: total if r.init is None else total + r.init}))
