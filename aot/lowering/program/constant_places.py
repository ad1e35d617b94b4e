"""Places of constants in the weights of a library, which its programs (versions and levels of one model) share.

program 0    fc1 packed for 16 lanes | bias | fc2 packed       ->   blocks 0, 1, 2
program 1    fc1 packed for 8 lanes  | bias                    ->   blocks 3, 1
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import partial
from math import prod

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.program import ConstantBlock
from aot.codegen.ir.schedule import Pack
from aot.codegen.nest.pack import pack_buffer
from aot.codegen.nest.packed_arrays import pack_array
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.deferred import Deferred, release, rows_of, value_of
from aot.lowering.ir.steps import Value
from aot.lowering.program.arena import ALIGN

PIECE = 1 << 20  # elements of a constant that are made together: they stay in the cache, and take no memory


@dataclass(slots=True)
class Weights:
    """Blocks of one library. With `several` programs, blocks of equal bytes are one."""

    several: bool = False
    size: int = 0
    _known: dict[bytes, ConstantBlock] = field(default_factory=dict[bytes, ConstantBlock])

    def place(self, block: ConstantBlock) -> ConstantBlock:
        """Return the block at its offset, or one of the same bytes."""
        if not self.several:
            return self._append(block)
        sha = hashlib.sha256()
        for piece in block.pieces():
            sha.update(piece.data)
        digest = sha.digest()
        if digest not in self._known:
            self._known[digest] = self._append(block)
        return self._known[digest]

    def _append(self, block: ConstantBlock) -> ConstantBlock:
        constant_block = replace(block, offset=self.size)
        self.size += -(-max(constant_block.nbytes, 1) // ALIGN) * ALIGN
        return constant_block


class Constants:
    """Constants of one program: its weights have a value once for each packing."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._known: dict[tuple[str, Pack | None], ConstantBlock] = {}

    def add(self, value: Value, packing: Pack | None) -> int:
        """Add a block; return its offset."""
        key = (value.name, packing)
        if key not in self._known:
            self._known[key] = self.weights.place(_block(value, packing))
        return self._known[key].offset

    @property
    def blocks(self) -> tuple[ConstantBlock, ...]:
        """Return the distinct blocks in the order of their addition."""
        return tuple({block.offset: block for block in self._known.values()}.values())


def _block(value: Value, packing: Pack | None) -> ConstantBlock:
    """Return the elements in the type of their buffer; packed types have one element a byte here."""
    data, stored = value.data, numpy_dtype(value.buffer.dtype)
    assert data is not None
    if packing is None and value.arrange is None and not isinstance(data, Deferred) and data.dtype == stored:
        return ConstantBlock(0, data)
    shape = value.buffer.shape if packing is None else pack_buffer(value.buffer, packing).shape
    count = prod(n for n in shape if isinstance(n, int))
    source = np.empty(0, numpy_dtype(data.type.dtype)) if isinstance(data, Deferred) else data
    return ConstantBlock(0, source, partial(_pieces, value, packing), count * stored.itemsize)


def _pieces(value: Value, packing: Pack | None) -> list[Callable[[], Array]]:
    """Return functions that compute the elements in memory order, a run of contiguous rows each."""
    return [partial(_piece, value, packing, begin, end) for begin, end in _cuts(value, packing)]


def _piece(value: Value, packing: Pack | None, begin: int, end: int) -> Array:
    data, stored = value.data, numpy_dtype(value.buffer.dtype)
    assert data is not None
    rows = rows_of(data, begin, end) if data.shape else value_of(data)
    rows = rows if value.arrange is None else value.arrange(rows)
    rows = rows.astype(stored, copy=False)
    packed = rows if packing is None else pack_array(rows, packing)
    release(data)
    return packed


def _cuts(value: Value, packing: Pack | None) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the rows that are made together."""
    assert value.data is not None
    rows, *others = value.data.shape or (1,)
    has_separate_rows = packing is None or (
        packing.axis == packing.order[0] == 0 and packing.words < len(packing.order)
    )
    is_made_whole = isinstance(value.data, Deferred) and not value.data.is_in_rows
    if is_made_whole or value.arrange is not None or not value.data.shape or not has_separate_rows:
        yield 0, rows
        return
    width = 1 if packing is None else packing.width
    each = max(PIECE // max(prod(others) * width, 1), 1) * width
    yield from ((begin, min(begin + each, rows)) for begin in range(0, rows, each))
