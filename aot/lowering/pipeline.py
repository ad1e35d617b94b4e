"""The order of lowering. Each line says why it stands where it stands.

A pass changes one block of steps at a time: the model's own, then each body of control flow. The last two see all
blocks together. Passes below `assign_layouts` rely on final strides; `aot.lowering.ir.verify` says what holds between
any two passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from aot.codegen.target import Target
from aot.lowering.algorithms.halve_products import halve_products
from aot.lowering.algorithms.separate_functions import separate_functions
from aot.lowering.algorithms.separate_pooling import separate_pooling
from aot.lowering.algorithms.unroll_recurrence import unroll_recurrence
from aot.lowering.algorithms.use_strassen import use_strassen
from aot.lowering.algorithms.use_winograd import use_winograd
from aot.lowering.fusion.defer_division import defer_division
from aot.lowering.fusion.fuse_attention import fuse_attention
from aot.lowering.fusion.fuse_row_strips import fuse_row_strips
from aot.lowering.fusion.fuse_steps import fuse_steps
from aot.lowering.fusion.group_rows import group_rows
from aot.lowering.fusion.hoist_invariants import hoist_invariants
from aot.lowering.fusion.join_results import join_results
from aot.lowering.fusion.split_quotient_axes import split_quotient_axes
from aot.lowering.ir.steps import Layouts, Steps
from aot.lowering.layout.arrange_words import arrange_words
from aot.lowering.layout.assign_layouts import assign_layouts
from aot.lowering.program.write_in_place import write_in_place
from aot.lowering.storage.compress_constants import compress_constants
from aot.lowering.storage.narrow_constants import narrow_constants
from aot.lowering.storage.precision.short_types import Sums
from aot.lowering.storage.precision.shorten_floats import shorten_floats
from aot.lowering.storage.quantise_activations import quantise_activations
from aot.lowering.storage.shorten_levels import shorten_levels
from aot.lowering.storage.tabulate_functions import tabulate_functions
from aot.lowering.storage.use_integer_dots import use_integer_dots
from aot.options import CompileOptions
from aot.precision import precision_of

Run = Callable[[Steps], object]


@dataclass(frozen=True, slots=True)
class Lowering:
    """A lowering pass: `run` changes the steps that it is given in place.

    `needs`: the layouts that the pass requires; `gives`: the layouts that it leaves. `whole`: it runs once, on all
    blocks together, instead of once a block. `required`: it runs even after the last pass that
    `--stop-after-lowering` allows.
    """

    name: str
    run: Run
    needs: Layouts
    gives: Layouts
    whole: bool = False
    required: bool = False
    enabled: bool = True


def pipeline(options: CompileOptions, target: Target) -> tuple[Lowering, ...]:
    """Return the lowering passes in run order for these options and this target."""
    small = options.small_weights
    precision = precision_of(options.precision)
    plain = small or options.plain_products  # no form of a product that adds numbers before it multiplies them
    alike = not (precision.is_plain or options.fast_math)  # bits may not depend on the target
    shortened = partial(shorten_floats, precision=precision, small=small, sums=Sums.for_target(target))
    rounded = partial(quantise_activations, target=target)
    dots = partial(use_integer_dots, target=target, windows=not alike)
    attention = partial(fuse_attention, target=target)
    winograd, strassen = partial(use_winograd, target=target), partial(use_strassen, target=target)
    functions = partial(separate_functions, target=target)
    halved = partial(halve_products, target=target)
    placed = partial(assign_layouts, target=target)
    words = partial(arrange_words, target=target)
    strips = partial(fuse_row_strips, target=target)
    unrolled = partial(unroll_recurrence, target=target)
    overwritten = partial(write_in_place, target=target)
    compressed = partial(compress_constants, always=small)
    narrowed = partial(narrow_constants, target=target, always=small)
    every = (
        _logical("fuse_steps", fuse_steps),  # views vanish before any pass counts readers
        # before sums of integers are made of products of what it rounds
        _logical("quantise_activations", rounded, enabled=options.activations != "f32"),
        _logical("use_integer_dots", dots),  # quantised products still have their scales beside them
        _logical("group_rows", group_rows),  # before layouts are voted on: a group votes as one
        _logical("split_quotient_axes", split_quotient_axes),  # grouped and transposed convolutions become products
        _logical("hoist_invariants", hoist_invariants),  # what is equal along an axis leaves the sums
        _logical("use_integer_dots_again", dots),  # for products that the split has exposed
        _logical("tabulate_functions", tabulate_functions),  # levels and their functions are one expression by now
        _logical("shorten_levels", shorten_levels),  # functions that no table holds
        # after all that decides by the model alone which layers run together, before what the target decides
        _logical("shorten_floats", shortened, whole=True, enabled=not precision.is_plain),
        _logical("defer_division", defer_division),  # needs softmax as a group of rows; takes a pass out of the kernel
        _logical("fuse_attention", attention),  # needs softmax as a group of rows
        _logical("use_winograd", winograd, enabled=not plain),  # its tiles are values that get layouts below
        # strides are final below
        Lowering("assign_layouts", placed, Layouts.LOGICAL, Layouts.FINAL, required=True),
        _final("use_strassen", strassen, enabled=not (plain or alike)),  # halves are addresses: needs strides
        _final("separate_pooling", separate_pooling),  # needs the halo fills that layouts brought
        _final("fuse_row_strips", strips),  # weighs bytes of rows as they lie in memory
        _final("halve_products", halved, enabled=not plain),  # takes what no group took; words lie side by side by now
        _final("separate_functions", functions),  # asks which sums run along memory; groups made before stay whole
        _final("unroll_recurrence", unrolled),  # moves buffers by their strides, step by step
        _final("write_in_place", overwritten),  # the last readers are known, and which layouts are equal
        # the passes above see no works inside of choices
        _final("arrange_words", words, enabled=not precision.is_plain),
        _final("compress_constants", compressed, whole=True),  # the readers in all blocks are known
        _final("narrow_constants", narrowed, whole=True),  # takes what bytes could not hold
        _final("join_results", join_results),  # other passes see definitions with one output
    )
    return tuple(p for p in every if p.enabled)


def _logical(name: str, run: Run, *, whole: bool = False, enabled: bool = True) -> Lowering:
    """Declare a pass that works on logical indices, before layouts are assigned."""
    return Lowering(name, run, Layouts.LOGICAL, Layouts.LOGICAL, whole, enabled=enabled)


def _final(name: str, run: Run, *, whole: bool = False, enabled: bool = True) -> Lowering:
    """Declare a pass that relies on strides and keeps them."""
    return Lowering(name, run, Layouts.FINAL, Layouts.FINAL, whole, enabled=enabled)
