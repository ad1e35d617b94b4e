"""Loops of a product: axes that are fused, the axis of rows that is tiled, loops around the tiles, and the sum's."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import all_continue, fills, reads, store, varies
from aot.codegen.ir.definition import Definition, unused_axis
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Var
from aot.codegen.nest.sums.padding_terms import PaddingTerms, padding_terms
from aot.codegen.schedules.products.padding_share import padding_share
from aot.codegen.schedules.products.product_form import MatmulShape, extent, loops_of
from aot.codegen.schedules.products.register_tile import Product, tile_count, tile_of, tile_text
from aot.codegen.schedules.products.scaled import field_axes, takes_pairs
from aot.codegen.schedules.request import Fused, Reasons
from aot.codegen.target import Target


@dataclass(frozen=True, slots=True)
class ProductLoops:
    """Loops by role, outermost first: names of axes, or of several that `fuse` makes one.

    `rows`: the last one is tiled. `skipped`: padding terms that whole tiles pass over.
    """

    fuse: Fused
    outer: tuple[str, ...]
    rows: tuple[str, ...]
    sums: tuple[str, ...]
    skipped: tuple[PaddingTerms, ...]

    @property
    def tiled(self) -> str:
        """Name of the rows' axis that is tiled; empty without rows."""
        return self.rows[-1] if self.rows else ""

    @property
    def innermost(self) -> str:
        """Name of the innermost loop of the sum."""
        return self.sums[-1]

    def axes(self, name: str) -> tuple[str, ...]:
        """Return the axes that a loop runs over."""
        return dict(self.fuse).get(name, (name,))

    def count(self, name: str, shape: MatmulShape) -> int:
        """Return the iterations of a loop over rows."""
        return prod(extent(a) for a in shape.rows if a.name in self.axes(name))


def product_loops(
    d: Definition, shape: MatmulShape, width: int, target: Target, constants: frozenset[str]
) -> tuple[ProductLoops, Reasons]:
    """Return the loops of a product in vectors of `width` lanes."""
    sums, fused = _sum_loops(d, shape)
    skipped = [b for b in padding_terms(d) if b.axis.name in sums[:-1] and padding_share(b) >= COSTS.min_skipped_share]
    reasons: Reasons = ()
    if varies(shape.rows):
        rows, more = _dynamic_rows(d, shape, fused, constants)
    else:
        rows, more, reasons = _static_rows(d, shape, width, target, skipped)
    fused += more
    outer, more = loops_of(d, shape.outer, fused)
    return ProductLoops(fused + more, tuple(outer), tuple(rows), tuple(sums), tuple(skipped)), reasons


def _sum_loops(d: Definition, shape: MatmulShape) -> tuple[list[str], Fused]:
    """Return the loops of the sum; the two innermost are fused if all shared operands are contiguous across them."""
    names = [a.name for a in shape.sums]
    if len(shape.sums) < 2:
        return names, ()
    outer, inner = shape.sums[-2:]
    shared = [x for x in reads(d, body=True) if not x.moves(shape.lane)]
    if not isinstance(inner.extent, int) or any(
        x.strides[outer] != inner.extent * (x.strides[inner] or 0) for x in shared
    ):
        return names, ()
    if takes_pairs(d, shape) or field_axes(d, shape):
        return names, ()
    name = unused_axis("kc", d)
    return [*names[:-2], name], ((name, (outer.name, inner.name)),)


def _dynamic_rows(
    d: Definition, shape: MatmulShape, fused: Fused, constants: frozenset[str]
) -> tuple[list[str], Fused]:
    """Return the loops over rows of dynamic sizes: one, if they lie one after another. `fused`: axes of the sum's."""
    accesses = (store(d), *(x for x in reads(d) if any(x.moves(a) for a in shape.rows)))
    if len(shape.rows) > 1 and all(all_continue(accesses, a, b) for a, b in pairwise(shape.rows)):
        name = unused_axis("p", d)
        return [name], ((name, tuple(a.name for a in shape.rows)),)
    last = tiled_rows(d, shape, constants)
    around, fused = loops_of(d, [a for a in shape.rows if a is not last], fused)
    return [*around, last.name], fused


def _static_rows(
    d: Definition, shape: MatmulShape, width: int, target: Target, skipped: list[PaddingTerms]
) -> tuple[list[str], Fused, Reasons]:
    """Return the loops over rows of static sizes: one, if its tiles are fuller.

    They are not fused if padding along the last axis can be skipped: more of its tiles then lie in the padding as a
    whole.
    """
    if not shape.rows:
        return [], (), ()
    last, count = shape.rows[-1], prod(extent(a) for a in shape.rows)
    products = [Product(n, extent(shape.lane), width) for n in (extent(last), count)]
    (alone, _), (together, _) = (tile_of(p, target) for p in products)
    reasons = tuple(partial(tile_text, p, target) for p in products)
    padded = any(last in variables(b.index) for b in skipped)
    fewer = tile_count(extent(last), alone) * (count // extent(last)) <= tile_count(count, together)
    if len(shape.rows) == 1 or padded or fewer:
        return [a.name for a in shape.rows], (), reasons
    name = unused_axis("p", d)
    return [name], ((name, tuple(a.name for a in shape.rows)),), reasons


def tiled_rows(d: Definition, shape: MatmulShape, constants: frozenset[str]) -> Var:
    """Return the row axis to tile: the last one, or another one where the last is short or may be short.

    Queries of the heads that share keys, for instance: their number is static, and the number of tokens is often 1.
    """
    last = shape.rows[-1]
    if any(x.buffer.name in constants for x in reads(d, body=True)) or fills((last,), COSTS.max_tile_rows):
        return last
    long = [a for a in shape.rows if varies((a,)) and fills((a,), COSTS.max_tile_rows)]
    static = [a for a in shape.rows if isinstance(a.extent, int) and a.extent >= COSTS.static_tile_rows]
    return long[-1] if long else max(static, key=extent) if static and varies((last,)) else last
