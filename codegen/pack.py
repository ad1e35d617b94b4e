"""Packing of an operand: the same definition over a blocked layout.

    b[k, j]  ->  b[j // 16, k, j % 16]        weights at compile time (`pack_array`), others as a definition of a group
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from codegen.define import Definition
from codegen.expressions import loads, rewrite
from codegen.loops import Buffer, Expr, Load, dense
from codegen.schedule import Pack, ScheduleError

Number = TypeVar("Number", bound=np.generic)


def pack(definition: Definition, plan: Pack) -> Definition:
    """The definition with every load of `plan.operand` from its packed form."""
    change: dict[Expr, Expr] = {x: _blocked(x, plan) for x in loads(definition.value) if x.buffer.name == plan.operand}
    return replace(definition, value=rewrite(definition.value, change))


def pack_buffer(buffer: Buffer, plan: Pack) -> Buffer:
    """[.., n, ..] -> [n / width, the others in `order`, width], the last block padded."""
    n = buffer.shape[plan.axis]
    if not isinstance(n, int):
        raise ScheduleError(f"{buffer.name}: a packed axis has a static extent, got axis {plan.axis}")
    others = (buffer.shape[i] for i in plan.order)
    return dense(buffer.name, -(-n // plan.width), *others, plan.width, space=buffer.space, dtype=buffer.dtype)


def pack_array(array: NDArray[Number], plan: Pack) -> NDArray[Number]:
    """The elements in the layout of `pack_buffer`, padded with zeros. Works on any element type."""
    moved = array.transpose(*plan.order, plan.axis)
    whole, rest = divmod(moved.shape[-1], plan.width)
    packed = np.zeros((whole + (rest > 0), *moved.shape[:-1], plan.width), array.dtype)
    blocks = moved[..., : whole * plan.width].reshape(*moved.shape[:-1], whole, plan.width)  # a view
    packed[:whole] = np.moveaxis(blocks, -2, 0)
    if rest:
        packed[whole, ..., :rest] = moved[..., whole * plan.width :]
    return packed


def _blocked(load: Load, plan: Pack) -> Expr:
    i = load.index[plan.axis]
    others = (load.index[n] for n in plan.order)
    return Load(pack_buffer(load.buffer, plan), (i // plan.width, *others, i % plan.width))
