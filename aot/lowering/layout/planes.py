"""Convolutions of few channels to few outputs, which want planes of channels: their lanes are columns of the image.

    y[h, w] = add[ic in 8, kh, kw in 5](x[ic, h + kh - 2, w + kw - 2] * f[ic, kh, kw])      lanes[w:16]

One to three outputs fill no vector, and a few channels fill one poorly, which each output would fold.
"""

from __future__ import annotations

from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Var
from aot.lowering.ir.lane_axes import dim_of, memory_of
from aot.lowering.ir.steps import Steps


def plane_columns(steps: Steps, reductions: list[Definition], constants: frozenset[str]) -> dict[int, Var]:
    """Return the axis of columns of each convolution that wants planes, by the id of its definition.

    Data whose producer writes every other column, as transposed convolutions do, stay as they are: its stores would be
    scattered. Groups write tiles of neighbours.
    """
    definitions = [w for step in steps.steps for w in step.works if isinstance(w, Definition)]
    scattered = {d.out.name for d in definitions if d.target and not isinstance(d.target[-1], Var | Const)}
    axes: dict[int, Var] = {}
    for d in reductions:
        column = _column(d, constants)
        if column is not None and scattered.isdisjoint(x.buffer.name for x in memory_of(d)):
            axes[id(d)] = column
    return axes


def _column(d: Definition, constants: frozenset[str]) -> Var | None:
    """Return the axis of columns if `d` is a convolution of few channels to few outputs."""
    r, memory = d.reduction, memory_of(d)
    data = [x for x in memory if x.buffer.name not in constants]
    if r is None or r.fn != "add" or not r.dtype.is_float or len(memory) != 2 or len(data) != 1 or not data[0].index:
        return None
    index, own = data[0].index, variables(*data[0].index)
    others = variables(*(i for x in memory if x is not data[0] for i in x.index))
    columns = [a for a in d.axes if normal(index[-1], {}).terms.get(a) == 1 and dim_of(d.target, a, d.axes) is not None]
    if len(columns) != 1 or not others.isdisjoint(own & {*d.axes}) or not own & others >= {*r.axes}:
        return None
    outputs, channels, taps = (
        prod(typical(a.extent or 1) for a in axes)
        for axes in (others & {*d.axes}, {a for a in r.axes if a in index}, {a for a in r.axes if a not in index})
    )
    few = outputs < COSTS.min_product_lanes and channels <= COSTS.max_plane_channels
    wide = typical(columns[0].extent or 1) >= COSTS.min_plane_columns
    return columns[0] if few and wide and taps * outputs >= COSTS.min_plane_reads else None
