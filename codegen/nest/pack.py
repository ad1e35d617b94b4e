"""Packing of an operand: the same definition over a blocked layout.

b[k, j]  ->  b[j // 16, k, j % 16]                weights at compile time (`pack_array`)
b[k, j]  ->  b[j // 16, k // 4, j % 16, k % 4]    bytes whose products are summed four at a time
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from aot.codegen.ir.access import volume
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads
from aot.codegen.ir.loops import Buffer, Expr, Load, Size, as_expr, dense
from aot.codegen.ir.schedule import Pack, ScheduleError
from aot.codegen.ir.traverse import expressions, rewrite_definition
from aot.runtime.abi import DType

Number = TypeVar("Number", bound=np.generic)


def pack(definition: Definition, plan: Pack) -> Definition:
    """Redirect every load of `plan.operand` to its packed form."""
    read = (x for x in loads(*expressions(definition)) if x.buffer.name == plan.operand)
    change: dict[Expr, Expr] = {x: _blocked(x, plan) for x in read}
    return rewrite_definition(definition, change.get)


def pack_buffer(buffer: Buffer, plan: Pack) -> Buffer:
    """[.., n, ..] -> [the dimensions in `order`, n as n / width, and then width], the last block and word padded."""
    axes = (plan.axis,) if plan.fused is None else (plan.fused, plan.axis)
    extents = [buffer.shape[i] for i in axes]
    sizes = [n for n in extents if isinstance(n, int)]
    if len(sizes) < len(extents):
        raise ScheduleError(f"{buffer.name}: a packed axis has a static extent, got axis {plan.axis}")
    blocks = -(-prod(sizes) // plan.width)
    shape = [blocks if i == plan.axis else buffer.shape[i] for i in plan.order]
    size = plan.elements(buffer.dtype)
    packed = (*_in_words(shape, plan, size), plan.width, size) if plan.words else (*shape, plan.width)
    return dense(buffer.name, *packed, space=buffer.space, dtype=buffer.dtype)


def _in_words(shape: list[Size], plan: Pack, size: int) -> tuple[Size, ...]:
    head, tail = shape[: -plan.words], volume(shape[-plan.words :])
    return *head, (tail + size - 1) // size


def pack_array(array: NDArray[Number], plan: Pack) -> NDArray[Number]:
    """Arrange elements of any type in the layout of `pack_buffer`, padded with zeros."""
    size = plan.word_bytes // array.itemsize
    last = tuple(range(array.ndim - plan.words, array.ndim))
    tail = prod(array.shape[i] for i in last)
    if not plan.words or plan.order[-plan.words :] != last or tail % size or not array.flags.c_contiguous:
        packed = _in_blocks(array, plan)
        return _by_words(packed, plan) if plan.words else packed
    words = array.reshape(*array.shape[: last[0]], tail).view(f"<u{plan.word_bytes}")  # which move as one element each
    packed = _in_blocks(words, replace(plan, order=(*plan.order[: -plan.words], last[0])))
    return packed.view(array.dtype).reshape(*packed.shape, size)


def _in_blocks(array: NDArray[Number], plan: Pack) -> NDArray[Number]:
    """Return the elements in the order of `plan`, with the lanes of a block as the innermost dimension."""
    others = tuple(i for i in plan.order if i != plan.axis)
    transposed = array.transpose(*others, *([] if plan.fused is None else [plan.fused]), plan.axis)
    transposed = transposed.reshape(*transposed.shape[: len(others)], -1)
    full_blocks, rest = divmod(transposed.shape[-1], plan.width)
    shape = [array.shape[i] for i in plan.order]
    shape[plan.place] = full_blocks + (rest > 0)
    packed = np.zeros((*shape, plan.width), array.dtype)
    to = np.moveaxis(packed, plan.place, 0)  # a view
    blocks = transposed[..., : full_blocks * plan.width].reshape(*transposed.shape[:-1], full_blocks, plan.width)
    to[:full_blocks] = np.moveaxis(blocks, -2, 0)
    if rest:
        to[full_blocks, ..., :rest] = transposed[..., full_blocks * plan.width :]
    return packed


def _by_words(packed: NDArray[Number], plan: Pack) -> NDArray[Number]:
    head, tail = packed.shape[: -plan.words - 1], prod(packed.shape[-plan.words - 1 : -1])
    size = plan.word_bytes // packed.itemsize
    terms = np.zeros((*head, -(-tail // size) * size, plan.width), packed.dtype)
    terms[..., :tail, :] = packed.reshape(*head, tail, plan.width)
    return np.ascontiguousarray(terms.reshape(*head, -1, size, plan.width).swapaxes(-1, -2))


def _blocked(load: Load, plan: Pack) -> Expr:
    lane = load.index[plan.axis]
    if plan.fused is not None:
        lane = load.index[plan.fused] * as_expr(load.buffer.shape[plan.axis], DType.I64) + lane
    index = [lane // plan.width if i == plan.axis else load.index[i] for i in plan.order]
    if not plan.words:
        return Load(pack_buffer(load.buffer, plan), (*index, lane % plan.width))
    term, size = as_expr(0, DType.I64), plan.elements(load.buffer.dtype)
    for i in plan.order[-plan.words :]:
        term = term * as_expr(load.buffer.shape[i], DType.I64) + load.index[i]
    packed_index = *index[: -plan.words], term // size, lane % plan.width, term % size
    return Load(pack_buffer(load.buffer, plan), packed_index)
