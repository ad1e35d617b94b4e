"""Names for sizes that run time computes: kernels read `s0`, and only the shape function knows that it is (h + 3) // 4.

    f32[n, 32 * ((h + 3) // 4)]   ->   f32[n, 32 * s0]    with s0 = (h + 3) // 4
"""

from __future__ import annotations

from math import inf

import numpy as np

from aot.ir.dims import shortest
from aot.ir.types import Array, Dim, Shape, TensorType
from codegen.access import known
from codegen.expressions import rewrite, variables
from codegen.index import bounds, normal
from codegen.loops import Const, Expr, Prim, Size, Var

PLAIN = ("add", "sub", "mul", "neg")


class Sizes:
    """`meaning[s]` is what a named size stands for, over the model's symbols and sizes named before it."""

    def __init__(self) -> None:
        self.meaning: dict[Var, Expr] = {}
        self._names: dict[Expr, Var] = {}

    def of(self, dim: Dim) -> Dim:
        """`dim` as sums of products of symbols and named sizes."""
        if isinstance(dim, int):
            return dim
        found = normal(rewrite(dim, self._named), {}).expr()
        return int(found.value) if isinstance(found, Const) else found

    def shape(self, dims: Shape) -> Shape:
        return tuple(map(self.of, dims))

    def type(self, t: TensorType) -> TensorType:
        return TensorType(t.dtype, self.shape(t.shape))

    def value(self, value: Array | None) -> Array | None:
        if value is None or value.dtype != object:
            return value
        made = np.empty(value.shape, object)
        for at, d in np.ndenumerate(value):
            made[at] = self.of(d)
        return made

    def name(self, meaning: Expr, stem: str = "s") -> Var:
        """A name for a size; equal ones have one."""
        if meaning not in self._names:
            low, high = bounds(normal(meaning, {}))
            extent = int(high) + 1 if high < inf else None
            made = Var(f"{stem}{len(self.meaning)}", extent, max(int(low), 0) if low > -inf else 0, known(meaning))
            self._names[meaning] = made
            self.meaning[made] = meaning
        return self._names[meaning]

    def add(self, meaning: Expr, stem: str) -> Var:
        """A new name for a size of which nothing else is known."""
        made = Var(f"{stem}{len(self.meaning)}", None, 0, known(meaning))
        self.meaning[made] = meaning
        return made

    def written_out(self, size: Size) -> Expr:
        """Over the model's symbols alone, in the shortest form."""
        if isinstance(size, int):
            return Const(size)
        while any(v in self.meaning for v in variables(size)):
            size = rewrite(size, lambda e: self.meaning.get(e) if isinstance(e, Var) else None)
        return shortest(size)

    def _named(self, e: Expr) -> Expr | None:
        return self.name(e) if isinstance(e, Prim) and e.fn not in PLAIN else None
