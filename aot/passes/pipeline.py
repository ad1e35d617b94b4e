"""THE order of passes. Each line says why it stands where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aot.ir.graph import Graph
from aot.passes.front.name_bodies import name_bodies
from aot.passes.middle.carry_variables import carry_variables
from aot.passes.middle.dead_code import dead_code
from aot.passes.middle.decompose import decompose
from aot.passes.middle.decompress import decompress
from aot.passes.middle.dedupe import dedupe
from aot.passes.middle.fold_constants import fold_constants
from aot.passes.middle.inline_regions import inline_regions
from aot.passes.middle.layout import layout
from aot.passes.middle.round_short_floats import round_short_floats
from aot.passes.middle.settle_ranks import settle_ranks
from aot.passes.middle.spell_strings import spell_strings
from aot.passes.middle.trim_regions import trim_regions
from aot.passes.rewrite import RuleSet
from aot.passes.rules import activation, algebra, conv, norm, pooling, shape

Pass = Callable[[Graph], bool]

canonicalize = RuleSet("canonicalize", (*shape.RULES, *algebra.RULES, *activation.RULES, *norm.RULES))
absorb_scales = RuleSet("absorb_scales", (*shape.RULES, *algebra.RULES, *conv.RULES, *activation.RULES))
simplify = RuleSet("simplify", (*shape.RULES, *algebra.RULES, *pooling.RULES))


def pipeline(front: Iterable[Pass] = ()) -> tuple[Pass | str, ...]:
    """All passes in order; strings are the anchors that extensions refer to.

    `front`: what a front end needs to leave its dialect.
    """
    return (
        "FrontStart",
        *front,             # foreign operations become ours; types cannot be inferred before
        name_bodies,        # types inside of bodies have symbols of theirs
        "FrontFinish",
        "MiddleStart",
        carry_variables,    # bodies have no variables for the passes below, and those have sizes
        inline_regions,     # what need not be control flow: passes below fuse across what was a body
        settle_ranks,       # no value has two ranks for the passes below; known conditions are gone
        trim_regions,       # bodies that stay lose what nobody reads
        dead_code,          # nothing below looks at what nobody reads
        spell_strings,      # everything below knows numbers only
        decompress,         # before constants are folded: that would round what is computed in f16
        fold_constants,     # rules look for constants: weights stored in f16, shapes that are computed
        dedupe,             # rules compare ports: x in `x * sigmoid(x)` must be one
        canonicalize,       # patterns written out become the operations that the passes below know
        layout,             # after activations are one node each; before scales, which then lie along channels
        canonicalize,       # Transposes that met are merged
        dedupe,             # equal Transposes of one tensor
        "MiddleFinish",
        "BackStart",
        absorb_scales,      # wants convolutions with their scales and shifts beside them
        decompose,          # after all rules that want the big operation
        fold_constants,     # decompositions compute with attributes: scales of BatchNormInference, for instance
        absorb_scales,      # the scales that came out of decompositions
        simplify,           # with operations that only lowering knows, hence last
        fold_constants,     # what the rules made of constants
        dedupe,             # decompositions make equal constants and means
        round_short_floats, # patterns of arithmetic have been found; lowering fuses in f32
        dead_code,          # the graph is what lowering sees
        "BackFinish",
    )  # fmt: skip
