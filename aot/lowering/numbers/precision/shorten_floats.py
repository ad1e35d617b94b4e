"""Layers in bf16 and f16: data between kernels take 16 bits, and products of bf16 sum in the order of tile registers.

    y[i, j] = max(add[k](x[i, k] * w[k, j]) + b[j], 0)                                          x, w, y: f32
    y[i, j] = max(chains[k](x.bf16[i, k] * w.bf16[k, j]) + b[j], 0)                             y: bf16

Numbers are rounded once, when they are stored; kernels compute in f32. The shape of a product alone decides whether
it sums so (`codegen/ir/numbers/bf16_chains.py`), never the target, so that all targets compute the same bits. Products
of f16 are sums of f32; data that a kernel loads often stay f32 there, as conversions would take longer than the loads.
`--fast-math` leaves both to the target: bf16 is summed by dots of pairs, in tile registers, or as f16 is.
"""

from __future__ import annotations

from collections.abc import Mapping

from aot.codegen.ir.definition import Group
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps
from aot.lowering.numbers.precision.chained_products import ChainedProducts
from aot.lowering.numbers.precision.recurrent_products import shorten_recurrent_products
from aot.lowering.numbers.precision.row_quotients import invert_divisors
from aot.lowering.numbers.precision.short_functions import shorten_functions
from aot.lowering.numbers.precision.short_types import SHORT, ShortTypes, Sums
from aot.lowering.numbers.precision.short_values import shorten_values
from aot.lowering.numbers.precision.short_weights import ShortWeights
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError


def shorten_floats(steps: Steps, context: Context) -> None:
    """Store values that products and elementwise layers pass on in 16 bits, and round the weights of products.

    With small weights, weights are rounded to f16 even where a kernel loads them often.
    """
    precision, sums = context.precision, Sums.for_target(context.target)
    names = {n for b in steps.blocks() for s in b.steps for n in s.layers}
    if unused := precision.unused(names):
        raise UsageError(f"precision: a pattern matches a layer's name, got {unused[0]!r}")
    types = ShortTypes(steps, precision, sums)
    weights = ShortWeights(types, context.small_weights)
    shorten_values(types)
    for block in steps.blocks():
        products = {kind: ChainedProducts(types, weights, kind) for kind in SHORT.values() if kind not in sums.plain}
        block.steps = [s for step in block.steps for s in (*_shorten_products(step, products, types, weights), step)]
        for step in block.steps:
            if types.rounds_results(step):
                step.works = tuple(shorten_functions(w, sums.divides) for w in step.works)
            if types.kind(step) is not None:
                step.works = tuple(map(invert_divisors, step.works))


def _shorten_products(
    step: Step, products: Mapping[DType, ChainedProducts], types: ShortTypes, weights: ShortWeights
) -> list[Step]:
    """Rewrite the products of a step for its type; return the steps that copy their operands."""
    kind = types.kind(step)
    copies = products[kind].rewrite(step) if kind is not None and kind in products else None
    if copies is not None or kind is None:
        return copies or []
    if kind is DType.BF16 and types.sums.pairs:
        step.works = tuple(
            shorten_recurrent_products(w, types, weights) if isinstance(w, Group) else w for w in step.works
        )
    weights.round_for(step, kind)
    return []
