"""The order of the lowering passes, with the reason for each position.

A pass changes one block of steps at a time: the model's own, then each body of control flow. Those that are `whole` see
all blocks together. Passes below `assign_layouts` rely on final strides; `aot.lowering.ir.verify` says what holds
between any two passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aot.codegen.dataclass import dataclass
from aot.lowering.algorithms.separate_functions import separate_functions
from aot.lowering.algorithms.separate_pooling import separate_pooling
from aot.lowering.algorithms.unroll_recurrence import unroll_recurrence
from aot.lowering.algorithms.use_fast_inner_products import use_fast_inner_products
from aot.lowering.algorithms.use_strassen import use_strassen
from aot.lowering.algorithms.use_winograd import use_winograd
from aot.lowering.context import Context
from aot.lowering.fusion.defer_division import defer_division
from aot.lowering.fusion.fuse_attention import fuse_attention
from aot.lowering.fusion.fuse_row_strips import fuse_row_strips
from aot.lowering.fusion.fuse_steps import fuse_steps
from aot.lowering.fusion.group_rows import group_rows
from aot.lowering.fusion.hoist_invariants import hoist_invariants
from aot.lowering.fusion.join_results import join_results
from aot.lowering.fusion.split_quotient_axes import split_quotient_axes
from aot.lowering.ir.steps import Layouts, Steps
from aot.lowering.layout.assign_layouts import assign_layouts
from aot.lowering.layout.pack_k_pairs import pack_k_pairs
from aot.lowering.layout.write_in_place import write_in_place
from aot.lowering.numbers.precision.shorten_floats import shorten_floats
from aot.lowering.numbers.quantize_activations import quantize_activations
from aot.lowering.numbers.shorten_levels import shorten_levels
from aot.lowering.numbers.tabulate_functions import tabulate_functions
from aot.lowering.numbers.use_integer_dots import use_integer_dots, use_integer_dots_again
from aot.lowering.storage.compress_constants import compress_constants
from aot.lowering.storage.narrow_constants import narrow_constants
from aot.options.rules import ROUNDED


class Pass(Protocol):
    """A function that changes steps in place; its name is the name of the pass."""

    __name__: str

    def __call__(self, steps: Steps, context: Context, /) -> object: ...


def _always(_context: Context) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Lowering:
    """A lowering pass and its place.

    `needs`: the layouts that the pass requires; `gives`: the layouts that it leaves. `whole`: it runs once, on all
    blocks together, instead of once a block. `required`: it runs even after the last pass that
    `--stop-after-lowering` allows. `enabled`: tells if a compilation has the pass.
    """

    run: Pass
    needs: Layouts
    gives: Layouts
    whole: bool = False
    required: bool = False
    enabled: Callable[[Context], bool] = _always

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__


def logical(run: Pass, *, whole: bool = False, enabled: Callable[[Context], bool] = _always) -> Lowering:
    """Declare a pass that works on logical indices, before layouts are assigned."""
    return Lowering(run, Layouts.LOGICAL, Layouts.LOGICAL, whole, enabled=enabled)


def final(run: Pass, *, whole: bool = False, enabled: Callable[[Context], bool] = _always) -> Lowering:
    """Declare a pass that relies on strides and keeps them."""
    return Lowering(run, Layouts.FINAL, Layouts.FINAL, whole, enabled=enabled)


ORDER = (
    logical(fuse_steps),  # views vanish before any pass counts consumers
    # before sums of integers are made of products of what it rounds
    logical(quantize_activations, enabled=lambda context: context.activations == ROUNDED),
    logical(use_integer_dots),  # quantised products still have their scales beside them
    logical(group_rows),  # before layouts are voted on: a group votes as one
    logical(split_quotient_axes),  # grouped and transposed convolutions become products
    logical(hoist_invariants),  # what is equal along an axis leaves the sums
    logical(use_integer_dots_again),  # for products that the split has exposed
    logical(tabulate_functions),  # levels and their functions are one expression by now
    logical(shorten_levels),  # functions that no table holds
    # after all that decides by the model alone which layers run together, before what the target decides
    logical(shorten_floats, whole=True, enabled=lambda context: not context.precision.computes_in_f32),
    logical(defer_division),  # needs softmax as a group of rows; takes a pass out of the kernel
    logical(fuse_attention),  # needs softmax as a group of rows
    logical(use_winograd, enabled=lambda context: context.adds_before_products),  # its tiles get layouts below
    # strides are final below
    Lowering(assign_layouts, Layouts.LOGICAL, Layouts.FINAL, required=True),
    # halves are addresses: needs strides
    final(use_strassen, enabled=lambda context: context.adds_before_products and not context.same_bits),
    final(separate_pooling),  # needs the halo fills that layouts brought
    final(fuse_row_strips),  # weighs bytes of rows as they lie in memory
    # after all passes that group products; operands lie word by word
    final(use_fast_inner_products, enabled=lambda context: context.adds_before_products),
    final(separate_functions),  # asks which sums run along memory; groups made before stay whole
    final(unroll_recurrence),  # moves buffers by their strides, step by step
    final(write_in_place),  # the last consumers are known, and which layouts are equal
    # the passes above see no works inside of choices
    final(pack_k_pairs, enabled=lambda context: not context.precision.computes_in_f32),
    final(compress_constants, whole=True),  # the consumers in all blocks are known
    final(narrow_constants, whole=True),  # takes what bytes could not hold
    final(join_results),  # other passes see definitions with one output
)


def pipeline(context: Context) -> tuple[Lowering, ...]:
    """Return the lowering passes of a compilation in run order."""
    return tuple(item for item in ORDER if item.enabled(context))
