"""Constant weights in 16 bits: copies for chains and sums of f16, and f32 weights rounded so that 16 bits hold them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import ml_dtypes
import numpy as np

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Buffer, Load, Reduce, Var
from aot.codegen.ir.numbers.bf16_chains import chain_factors
from aot.codegen.ir.traverse import members
from aot.ir.types import Array
from aot.lowering.ir.steps import Step
from aot.lowering.numbers.precision.often_loaded import axes_around
from aot.lowering.numbers.precision.short_types import ShortTypes
from aot.lowering.numbers.precision.short_values import MIN_ELEMENTS
from aot.lowering.storage.integers import whole_numbers
from aot.runtime.abi import DType

MAX_F16 = 65504.0
_NUMPY = {DType.F16: np.dtype(np.float16), DType.BF16: np.dtype(ml_dtypes.bfloat16)}


class ShortWeights:
    """The constant weights of products. `small`: round them to f16 even where a kernel loads them often."""

    def __init__(self, types: ShortTypes, small: bool) -> None:
        self.types, self.steps, self.small = types, types.steps, small
        self._made: dict[str, Buffer] = {}  # copies, by the name of the constant and of its zeros
        self._done: set[str] = set()  # weights that are rounded, or stay

    def in_short(self, b: Buffer, kind: DType) -> Buffer:
        """Return the copy of a constant in bf16 or f16."""
        name = f"{b.name}.{kind.value}"
        if name not in self._made:
            data = self.steps.values[b.name].array
            assert data is not None
            self._made[name] = self.steps.constant(name, np.asarray(data, np.float32).astype(_NUMPY[kind]))
        return self._made[name]

    def zero_padded(self, b: Buffer, dim: int, extent: int) -> Buffer | None:
        """Return a constant with zeros up to `extent` elements of a dimension; None for data."""
        data = self.steps.values[b.name].array
        if data is None:
            return None
        name = f"{b.name}.{dim}.{extent}"
        if name not in self._made:
            beside = [(0, extent - n if k == dim else 0) for k, n in enumerate(data.shape)]
            self._made[name] = self.steps.constant(name, np.pad(data, beside))
        return self._made[name]

    def round_for(self, step: Step, kind: DType) -> None:
        """Round the weights of a step's products to 16 bits; to bf16 only in products of few rows.

        Weights that bytes hold, those that a layer of another type reads, too, and those beyond f16 stay what they are.
        """
        for work, d in ((w, d) for w in step.works for d in members(w)):
            around = axes_around(work)  # each of their iterations reads the weights anew: steps of time
            r = d.reduction
            factors = chain_factors(r) if r is not None and r.fn == "add" and r.dtype is DType.F32 else None
            for w in factors or ():
                if r is not None and self._is_limited_by_memory(d, w, around, kind):
                    self._round(w, r, kind)

    def _is_limited_by_memory(self, d: Definition, w: Load, around: set[Var], kind: DType) -> bool:
        """True if reading the weights `w` takes longer than converting them."""
        if kind in self.types.sums.plain:
            return self.small or not self.types.is_loaded_often(w.buffer.name)
        rows = (a for a in d.axes if a not in around and a not in variables(*w.index))
        return prod(typical(a.extent or 1) for a in rows) < COSTS.min_short_rows

    def _round(self, w: Load, r: Reduce, kind: DType) -> None:
        name = w.buffer.name
        value = self.steps.values.get(name)
        if value is None or value.data is None or name in self._done or self.types.shared_kind(name) is not kind:
            return
        if name in self.types.constants and self.types.can_copy(w.buffer) and value.data.size >= MIN_ELEMENTS:
            sums = tuple(k for k, i in enumerate(w.index) if variables(i) & {*r.axes})
            short = rounded(np.asarray(value.array, np.float32), kind)
            if short is not None and whole_numbers(value.data, sums, 127) is None:
                self.steps.values[name] = replace(value, data=short)
            self._done.add(name)


def rounded(data: Array, kind: DType) -> Array | None:
    """Round f32 numbers to a 16-bit type; None if some exceed its range."""
    if kind is DType.F16 and np.abs(data).max(initial=0.0) > MAX_F16:
        return None
    return data.astype(_NUMPY[kind]).astype(np.float32)
