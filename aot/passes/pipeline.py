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
    """Return all passes in order; strings are the anchors that extensions refer to.

    `front`: passes with which a front end leaves its dialect.
    """
    return (
        "FrontStart",
        *front,             # foreign operations become those of the opset; types cannot be inferred before
        name_bodies,        # types inside of bodies get symbols of the body's scope
        "FrontFinish",
        "MiddleStart",
        carry_variables,    # no variables in bodies, and none of dynamic size, for the passes below
        inline_regions,     # static control flow disappears: passes below fuse across former bodies
        settle_ranks,       # every value has one rank for the passes below; after inlining, which settles known Ifs
        trim_regions,       # remaining bodies lose unused outputs
        dead_code,          # the passes below need not visit unused nodes
        spell_strings,      # all passes below handle numbers only
        decompress,         # before constants are folded, which would round in f16
        fold_constants,     # rules look for constants: weights stored in f16, computed shapes
        dedupe,             # rules compare ports: x in `x * sigmoid(x)` must be one
        canonicalize,       # patterns written out become the operations that the passes below know
        layout,             # after activations are one node each; before absorb_scales: scales then lie along channels
        canonicalize,       # merges Transposes that have become adjacent
        dedupe,             # merges equal Transposes of one tensor
        "MiddleFinish",
        "BackStart",
        absorb_scales,      # needs convolutions with their scales and shifts next to them
        decompose,          # after all rules that match the composite operation
        fold_constants,     # arithmetic on attributes in decompositions: scales of BatchNormInference, for instance
        absorb_scales,      # scales that decompositions produced
        simplify,           # produces operations that only lowering knows, hence last
        fold_constants,     # constants that rules produced
        dedupe,             # equal constants and means that decompositions produced
        round_short_floats, # after patterns of arithmetic are matched; lowering fuses in f32
        dead_code,          # lowering sees live nodes only
        "BackFinish",
    )  # fmt: skip
