"""Products of states and constant weights in bf16: each step of time copies its state.

gates[g] = add[k](h[t, k] * r[g, k])
h.bf16[k] = h[t, k];  gates[g] = add[k](h.bf16[k] * r.bf16[g, k])
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.costs import COSTS
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.loops import Const, Expr, Load, Reduce, Var, dense
from aot.codegen.ir.numbers.bf16_chains import chain_factors
from aot.codegen.ir.program import MemoryRegion
from aot.lowering.ir.steps import Value
from aot.lowering.numbers.precision.short_types import ShortTypes
from aot.lowering.numbers.precision.short_weights import ShortWeights
from aot.runtime.abi import DType


def shorten_recurrent_products(g: Group, types: ShortTypes, weights: ShortWeights) -> Group:
    """Return the group with its recurrent products in bf16."""
    members: list[Definition | Group] = []
    for d in g.members:
        factors = _recurrent_factors(d, g, types) if isinstance(d, Definition) else None
        members += [d] if factors is None or isinstance(d, Group) else _shortened(d, *factors, g, types, weights)
    return replace(g, members=tuple(members))


def _recurrent_factors(d: Definition, g: Group, types: ShortTypes) -> tuple[Load, Load] | None:
    """Return the state and the weights of a recurrent product."""
    r = d.reduction
    factors = chain_factors(r) if r is not None and r.fn == "add" and r.dtype is DType.F32 else None
    if r is None or factors is None:
        return None
    x, w = factors if factors[1].buffer.name in types.constants else factors[::-1]
    if x.buffer.name not in types.steps.values or x.buffer.dtype is not DType.F32:
        return None
    return (x, w) if w.buffer.name in types.constants and _is_recurrent(g, r, x, w, types) else None


def _is_recurrent(g: Group, r: Reduce, x: Load, w: Load, types: ShortTypes) -> bool:
    """True if a group sums enough terms of a state along its one axis, and the weights do not depend on that axis."""
    has_short_weights = types.can_copy(w.buffer) and types.shared_kind(w.buffer.name) is DType.BF16
    alone = all(isinstance(i, Var | Const) for i in x.index if variables(i).isdisjoint(g.axes))
    terms = [a.extent for a in r.axes if a in x.index and a in w.index]
    long = len(terms) == 1 and isinstance(terms[0], int) and terms[0] >= COSTS.min_dot_terms
    return has_short_weights and alone and long and len(g.axes) == 1 and g.axes[0] not in variables(*w.index)


def _shortened(
    d: Definition, x: Load, w: Load, g: Group, types: ShortTypes, weights: ShortWeights
) -> tuple[Definition, Definition]:
    """Return the copy of the state of one step of time, and the product of the copy and the weights in bf16."""
    assert d.reduction is not None
    dims = [k for k, i in enumerate(x.index) if variables(i).isdisjoint(g.axes)]
    name = types.steps.unused(f"{x.buffer.name}.bf16")
    buffer = dense(name, *(x.buffer.shape[k] for k in dims), dtype=DType.BF16)
    types.steps.values[buffer.name] = Value(buffer, MemoryRegion.ARENA)
    index = tuple(x.index[k] for k in dims)
    own = (a for a in (*d.axes, *d.reduction.axes) if a in variables(*index) and a not in g.axes)
    change: dict[Expr, Expr] = {x: Load(buffer, index), w: Load(weights.in_short(w.buffer, DType.BF16), w.index)}
    return Definition(buffer, (*g.axes, *own), x, index), replace(d, value=rewrite(d.value, change))
