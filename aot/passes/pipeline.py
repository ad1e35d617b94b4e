"""THE order of passes. Each line has a comment that gives the reason for its position."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aot.ir.graph import Graph
from aot.passes.front.scope_region_symbols import scope_region_symbols
from aot.passes.front.take_names import take_names
from aot.passes.middle.control.append_variables import append_variables
from aot.passes.middle.control.carry_variables import carry_variables
from aot.passes.middle.control.drop_unused_region_ports import drop_unused_region_ports
from aot.passes.middle.control.inline_regions import inline_regions
from aot.passes.middle.control.limit_context import LimitContext
from aot.passes.middle.control.loops_to_sequences import loops_to_sequences
from aot.passes.middle.control.set_row_lengths import set_row_lengths
from aot.passes.middle.control.shorten_variables import ShortenVariables
from aot.passes.middle.control.simplify_loops import simplify_loops
from aot.passes.middle.control.unify_branch_ranks import unify_branch_ranks
from aot.passes.middle.decompose import decompose
from aot.passes.middle.decompress_weights import decompress_weights
from aot.passes.middle.fold_constants import fold_constants
from aot.passes.middle.layout.change_layout import change_layout
from aot.passes.middle.lower_strings import lower_strings
from aot.passes.middle.merge_equal_nodes import merge_equal_nodes
from aot.passes.middle.remove_dead_code import remove_dead_code
from aot.passes.middle.round_short_floats import round_short_floats
from aot.passes.rewrite import RuleSet
from aot.passes.rules import activation, algebra, branches, conv, fake_quantize, levels, norm, pooling, shape
from aot.precision import Precision

Pass = Callable[[Graph], bool]

quantized = (*fake_quantize.RULES, *levels.RULES)
plain = (*shape.RULES, *algebra.RULES, *activation.RULES, *norm.RULES, pooling.drop_unused_indices)
canonicalize = RuleSet("canonicalize", (*plain, *quantized))
weights = (*conv.RULES, *branches.RULES)
absorb_scales = RuleSet("absorb_scales", (*shape.RULES, *algebra.RULES, *weights, *activation.RULES))
# Concats are nested last: the rules above see a Concat whole, with consumers that are alike.
simplify = RuleSet("simplify", (*shape.RULES, *algebra.RULES, *pooling.RULES, *levels.RULES, shape.nest_concats))


def pipeline(
    front: Iterable[Pass] = (),
    *,
    named: bool = False,
    context: int | None = None,
    row_lengths: bool = False,
    precision: Precision | None = None,
) -> tuple[Pass | str, ...]:
    """Return all passes in order; strings are the anchors that extensions refer to.

    `front`: passes with which a front end leaves its dialect; `named`: nodes get the names of the user's layers;
    `context`: tokens that caches of language models have room for; `row_lengths`: their rows have lengths of their own;
    `precision`: types in which layers compute, None for f32.
    """
    return (
        "FrontStart",
        *front,  # foreign operations become those of the opset; types cannot be inferred before
        scope_region_symbols,  # types inside of bodies get symbols of the body's scope
        *((take_names,) if named else ()),  # extensions look for nodes by these names
        "FrontFinish",
        "MiddleStart",
        append_variables,  # caches stay where they are; before carry_variables, which copies variables of dynamic sizes
        *((LimitContext(context),) if context is not None else ()),  # needs the CacheSizes that append_variables adds
        *((set_row_lengths,) if row_lengths else ()),  # needs the Append nodes, which get one more input
        *(
            (ShortenVariables(precision),) if precision is not None else ()
        ),  # needs the Append nodes, whose type it changes
        carry_variables,  # no variables in bodies, and none of dynamic size, for the passes below
        simplify_loops,  # before bodies are copied: uses of counters become inputs and outputs of the loop
        loops_to_sequences,  # once slices are recognised; before bodies are copied
        unify_branch_ranks,  # before inlining, which would take the rank of one branch for that of both
        inline_regions,  # static control flow disappears: passes below fuse across former bodies
        unify_branch_ranks,  # every value has one rank; bodies that were copied, too
        drop_unused_region_ports,  # remaining bodies lose unused outputs
        remove_dead_code,  # the passes below need not visit unused nodes
        lower_strings,  # all passes below handle numbers only
        decompress_weights,  # before constants are folded, which would round in f16
        fold_constants,  # rules look for constants: weights stored in f16, computed shapes
        merge_equal_nodes,  # rules compare ports: x in `x * sigmoid(x)` must be one
        canonicalize,  # patterns written out become the operations that the passes below know
        change_layout,  # after activations are one node each; before absorb_scales: scales are along channels
        canonicalize,  # merges Transposes that have become adjacent
        merge_equal_nodes,  # merges equal Transposes of one tensor
        "MiddleFinish",
        "BackStart",
        absorb_scales,  # needs convolutions with their scales and shifts next to them
        decompose,  # after all rules that match the composite operation
        fold_constants,  # arithmetic on attributes in decompositions: scales of BatchNormInference, for instance
        absorb_scales,  # scales that decompositions produced
        simplify,  # produces operations that only lowering knows, hence last
        fold_constants,  # constants that rules produced
        merge_equal_nodes,  # equal constants and means that decompositions produced
        round_short_floats,  # after patterns of arithmetic are matched; lowering fuses in f32
        remove_dead_code,  # lowering sees live nodes only
        "BackFinish",
    )
