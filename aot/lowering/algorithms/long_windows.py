"""Windows that are longer than any Winograd transform, computed as sums of consecutive short windows.

y[i] = add[k in 11](x[i + k] w[k]) = add[part in 3, tap in 4](x[i + 4 part + tap] w[4 part + tap]),  w[11] = 0
"""

from __future__ import annotations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Expr, Load, Var, dense
from aot.ir.types import Array

PRODUCTS = {4: 2.0, 3: 1.5}  # for an output, by the taps of a part: 3 and 4 outputs from 6 products


@dataclass(frozen=True, slots=True)
class LongTaps:
    """The taps of one direction as `parts` of `short` taps each."""

    taps: Var
    parts: Var
    short: Var

    @property
    def place(self) -> Expr:
        """Return the number of a tap."""
        return self.parts * typical(self.short.extent or 1) + self.short

    @property
    def room(self) -> int:
        """Return the number of taps, zeros at the end included."""
        return typical(self.parts.extent or 1) * typical(self.short.extent or 1)


def split_taps(taps: Var) -> LongTaps:
    """Split an axis into the parts that take the fewest products."""
    count = typical(taps.extent or 1)
    size = min(PRODUCTS, key=lambda n: -(-count // n) * PRODUCTS[n])
    return LongTaps(taps, Var(f"{taps.name}.parts", -(-count // size)), Var(f"{taps.name}.short", size))


def split_load(w: Load, splits: tuple[LongTaps, ...]) -> Load:
    """Return the load of weights with each dimension of taps split in two. `w` is indexed by axes alone."""
    index, shape = list[Expr](), list[int]()
    for i, n in zip(w.index, w.buffer.shape, strict=True):
        split = next((s for s in splits if s.taps == i), None)
        index += [i] if split is None else [split.parts, split.short]
        shape += [typical(a.extent or 1) for a in (split.parts, split.short)] if split is not None else [typical(n)]
    return dense(w.buffer.name, *shape, dtype=w.buffer.dtype)[tuple(index)]


def split_places(e: Expr, splits: tuple[LongTaps, ...]) -> Expr:
    """Return an expression of the taps as one of the parts and their taps."""
    return rewrite(e, {s.taps: s.place for s in splits})


def split_weights(weights: Array, shape: tuple[int, ...]) -> Array:
    """Return weights in the shape that `split_load` reads, with zeros after the last taps."""
    padded, rest = weights, list(shape)
    for axis, n in enumerate(weights.shape):
        if rest[0] != n:  # there are fewer parts than taps
            zeros = rest.pop(0) * rest[0] - n
            padded = np.pad(padded, [(0, zeros if a == axis else 0) for a in range(padded.ndim)])
        rest.pop(0)
    return padded.reshape(shape)
