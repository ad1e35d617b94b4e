"""Packing of an operand: the same definition over a blocked layout.

b[k, j]  ->  b[j // 16, k, j % 16]                weights at compile time (`packed_arrays.pack_array`)
b[k, j]  ->  b[j // 16, k // 4, j % 16, k % 4]    bytes whose products are summed four at a time
"""

from __future__ import annotations

from math import prod

from aot.codegen.ir.access import volume
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads
from aot.codegen.ir.loops import Buffer, Expr, Load, Size, as_expr, dense
from aot.codegen.ir.schedule import Pack, ScheduleError
from aot.codegen.ir.traverse import expressions, rewrite_definition
from aot.runtime.abi import DType


def pack(definition: Definition, packing: Pack) -> Definition:
    """Redirect every load of `plan.operand` to its packed form."""
    read = (x for x in loads(*expressions(definition)) if x.buffer.name == packing.operand)
    change: dict[Expr, Expr] = {x: _blocked(x, packing) for x in read}
    return rewrite_definition(definition, change.get)


def pack_buffer(buffer: Buffer, packing: Pack) -> Buffer:
    """[.., n, ..] -> [the dimensions in `order`, n as n / width, and then width], the last block and word padded."""
    axes = (packing.axis,) if packing.fused is None else (packing.fused, packing.axis)
    extents = [buffer.shape[i] for i in axes]
    sizes = [n for n in extents if isinstance(n, int)]
    if len(sizes) < len(extents):
        raise ScheduleError(f"{buffer.name}: a packed axis has a static extent, got axis {packing.axis}")
    blocks = -(-prod(sizes) // packing.width)
    shape = [blocks if i == packing.axis else buffer.shape[i] for i in packing.order]
    size = packing.elements(buffer.dtype)
    packed = (*_in_words(shape, packing, size), packing.width, size) if packing.words else (*shape, packing.width)
    return dense(buffer.name, *packed, space=buffer.space, dtype=buffer.dtype)


def _in_words(shape: list[Size], packing: Pack, size: int) -> tuple[Size, ...]:
    head, tail = shape[: -packing.words], volume(shape[-packing.words :])
    return *head, (tail + size - 1) // size


def _blocked(load: Load, packing: Pack) -> Expr:
    lane = load.index[packing.axis]
    if packing.fused is not None:
        lane = load.index[packing.fused] * as_expr(load.buffer.shape[packing.axis], DType.I64) + lane
    index = [lane // packing.width if i == packing.axis else load.index[i] for i in packing.order]
    if not packing.words:
        return Load(pack_buffer(load.buffer, packing), (*index, lane % packing.width))
    term, size = as_expr(0, DType.I64), packing.elements(load.buffer.dtype)
    for i in packing.order[-packing.words :]:
        term = term * as_expr(load.buffer.shape[i], DType.I64) + load.index[i]
    packed_index = *index[: -packing.words], term // size, lane % packing.width, term % size
    return Load(pack_buffer(load.buffer, packing), packed_index)
