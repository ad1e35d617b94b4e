"""Products with quantised weights: each step of the sum has scales of its own, and a byte may hold two weights."""

from __future__ import annotations

from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import reads, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Var
from aot.codegen.ir.numbers.dot_forms import halved_factors, packed_field
from aot.codegen.nest.sums.scaled_steps import count_register_values, shared_factors
from aot.codegen.schedules.products.product_form import MatmulShape, extent


def takes_pairs(d: Definition, shape: MatmulShape) -> bool:
    """True if the two steps of the sum's innermost axis unpack the same integer elements of the weights."""
    if len(shape.sums) < 2:
        return False
    inner = [x for x in reads(d, body=True) if x.moves(shape.lane) and not x.moves(shape.sums[-1])]
    return extent(shape.sums[-1]) == 2 and any(not x.buffer.dtype.is_float and x.moves(shape.sums[-2]) for x in inner)


def field_axes(d: Definition, shape: MatmulShape) -> tuple[Var, ...]:
    """Return the axes of the sum that choose a field of an element of the weights."""
    few = packed_field(d.reduction)
    return () if few is None else tuple(a for a in shape.sums if a in variables(few.shift))


def step_axis(d: Definition, shape: MatmulShape) -> Var | None:
    """Return the outermost axis of the sum if each of its steps has its own factors and enough terms."""
    first, *rest = shape.sums
    assert d.reduction is not None
    if d.reduction.fn != "add" or not d.reduction.dtype.is_float or varies(rest):
        return None
    if prod(map(extent, rest)) < COSTS.min_scaled_terms:
        return None
    return first if any(variables(f) for f in shared_factors(d.reduction, first)[0]) else None


def register_vectors(d: Definition, shape: MatmulShape, steps: Var | None) -> int:
    """Return the registers that a step of the sum takes for each vector of columns, its accumulators included."""
    if halved_factors(d.reduction) is not None:
        return 2
    unrolled = shape.sums[-1:] if takes_pairs(d, shape) else ()
    return 0 if steps is None or d.reduction is None else count_register_values(d.reduction, steps, unrolled)


def column_bytes(d: Definition, shape: MatmulShape, steps: Var | None) -> int:
    """Return the bytes of the lanes' operands for one column of a panel."""
    if steps is None:
        return prod(map(extent, shape.sums)) * panel_bytes(d, shape)
    columns = [x for x in reads(d, body=True) if x.moves(shape.lane)]
    return sum(x.buffer.dtype.stored_bytes * prod(extent(a) for a in shape.sums if x.moves(a)) for x in columns)


def panel_bytes(d: Definition, shape: MatmulShape) -> int:
    """Return the bytes of the lanes' operand for a step of the sum: of an element, or of two."""
    each = max((x.buffer.dtype.stored_bytes for x in reads(d, body=True) if x.moves(shape.lane)), default=0)
    return each if halved_factors(d.reduction) is None else 2 * each
