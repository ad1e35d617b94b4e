"""The tiles of Winograd's algorithm for a convolution, chosen by their work; none if the plain sum has less."""

from __future__ import annotations

from itertools import product
from math import inf, prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import typical
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Var
from aot.codegen.nest.sums.padding_terms import PaddingTerms
from aot.codegen.schedules.products.padding_share import padding_share
from aot.lowering.algorithms.winograd_form import Tiling, WinogradForm
from aot.lowering.algorithms.winograd_matrices import FINITE, Kind
from aot.runtime.abi import DType

POINTS = range(4, 12)  # products in one direction, where there is such a transform
HALF_POINTS = range(
    4, 5
)  # products in one direction whose sums are f16: with 5 or more, errors are ten times as large as in f32


def choose_tilings(form: WinogradForm, weight: float = COSTS.winograd_weight) -> tuple[float, tuple[Tiling, ...]]:
    """Choose the tiles that together make all outputs; none for a plain convolution. The first result is their work.

    The choice with the least work, in multiply-adds, wins, transforms and ragged tiles included.

    `weight`: multiply-adds that take as long as reading a weight.
    """
    sizes, oc, ic = [typical(a.extent or 1) for a in form.outs], typical(form.oc.extent or 1), form.terms
    if ic < COSTS.min_winograd_channels or oc < COSTS.min_winograd_channels or min(sizes) < COSTS.min_winograd_outputs:
        return inf, ()
    taps = float(prod(typical(k.extent or 1) for k in form.taps))
    zeros = prod(s.room / typical(s.taps.extent or 1) for s in form.long)
    transforms = sum(_transform_cost(form.dtype, stride) for stride in form.strides)
    each = form.x.dtype.stored_bytes / form.dtype.stored_bytes  # dots sum twice as many bytes as i16

    def time(tilings: tuple[Tiling, ...]) -> float:
        if not tilings:
            return each * taps / zeros * ic * oc * (prod(sizes) * _counted(form) + weight)
        tiles = [prod(map(len, t.phases) if t.phases else map(tiles_of, sizes, t.sides, form.steps)) for t in tilings]
        products = sum(n * t.points for n, t in zip(tiles, tilings, strict=True)) * (ic * oc + transforms * (ic + oc))
        return products * 1.1 + sum(t.points for t in tilings) * ic * oc * weight

    choices: list[tuple[Tiling, ...]] = [()]
    for tiling in map(form.tiling, HALF_POINTS if form.dtype is DType.F16 else POINTS):
        grown = tiling.points > COSTS.max_winograd_growth * taps
        if min(tiling.sides) > 1 and not grown and form.factor(tiling):
            choices.append((tiling,))
    short = _short_phases(form)
    if short and sum(t.points for t in short) <= COSTS.max_phase_growth * taps:
        choices.append(short)
    best = min(choices, key=time)
    return time(best), best


def _short_phases(form: WinogradForm) -> tuple[Tiling, ...]:
    """Return the tilings that transform each phase as one tile, a finite signal; none if a phase is too long.

    Taps that lie apart read neighbours of one phase, and zeros before and after it.
    """
    if form.dtype is not DType.F32 or form.summed:
        return ()
    directions = [_phases_of(form, axis, tap, step) for (axis, tap), step in zip(form.window, form.steps, strict=True)]
    return tuple(Tiling(*zip(*each, strict=True)) for each in product(*directions))


def _phases_of(form: WinogradForm, axis: Var, tap: Var, step: int) -> list[tuple[Kind, range]]:
    """Return the transforms of one direction with the phases that each is for; none if a phase is too long."""
    k = next(k for k, i in enumerate(form.x.index) if axis in variables(i))
    size = axis.extent
    if step == 1 or not isinstance(size, int) or size != form.x.buffer.shape[k] or tap.extent != 3:
        return []
    if normal(form.x.index[k], {}).const != -step:
        return []
    least, more = divmod(size, step)
    phases = [(n, r) for n, r in ((least + 1, range(more)), (least, range(more, step))) if n and r]
    if any(n not in FINITE for n, _ in phases):
        return []
    return [(Kind(FINITE[n], 3, finite=True), r) for n, r in phases]


def _transform_cost(dtype: DType, stride: int) -> float:
    """Return the time of a transform in one direction, in multiply-adds for a point and channel."""
    if dtype is DType.I16:
        return COSTS.winograd_byte_transforms[stride - 1]
    each = COSTS.winograd_transform / stride
    return each * COSTS.winograd_short_transform if dtype is DType.BF16 else each


def _counted(form: WinogradForm) -> float:
    """Return the share of a plain convolution's terms that are computed: padding is skipped where taps lie apart."""
    share = 1.0
    for (axis, tap), step in zip(form.window, form.steps, strict=True):
        k = next(k for k, i in enumerate(form.x.index) if axis in variables(i))
        size = form.x.buffer.shape[k]
        if (step > 1 or tap in {s.short for s in form.long}) and isinstance(size, int):
            share *= 1 - padding_share(PaddingTerms(tap, form.x.index[k], size))
    return share


def tiles_of(size: int, side: int, step: int) -> int:
    """Return the number of tiles of `side` outputs in one direction; every `step`-th output belongs to one tile."""
    return step * -(-size // (side * step))
