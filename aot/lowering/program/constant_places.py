"""Places of constants in the weights of a library, which its programs (versions and levels of one model) share.

program 0    fc1 packed for 16 lanes | bias | fc2 packed       ->   blocks 0, 1, 2
program 1    fc1 packed for 8 lanes  | bias                    ->   blocks 3, 1
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from aot.ir.types import Array, numpy_dtype
from aot.ir.values.deferred import Deferred, value_of
from aot.lowering.ir.steps import Value
from aot.lowering.program.arena import ALIGN
from codegen.ir.program import ConstantBlock
from codegen.ir.schedule import Pack
from codegen.nest.pack import pack_array, pack_buffer


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
        digest = hashlib.sha256(np.ascontiguousarray(block.data).reshape(-1).view(np.uint8).data).digest()
        if digest not in self._known:
            self._known[digest] = self._append(block)
        return self._known[digest]

    def _append(self, block: ConstantBlock) -> ConstantBlock:
        made = replace(block, offset=self.size)
        self.size += -(-max(made.nbytes, 1) // ALIGN) * ALIGN
        return made


class Constants:
    """Constants of one program: its weights have a value once for each packing."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._known: dict[tuple[str, Pack | None], ConstantBlock] = {}

    def add(self, value: Value, plan: Pack | None) -> int:
        """Add a block; return its offset."""
        key = (value.name, plan)
        if key not in self._known:
            self._known[key] = self.weights.place(_block(value, plan))
        return self._known[key].offset

    @property
    def blocks(self) -> tuple[ConstantBlock, ...]:
        """Return the distinct blocks in the order in which they were added."""
        return tuple({block.offset: block for block in self._known.values()}.values())


def _block(value: Value, plan: Pack | None) -> ConstantBlock:
    """Return the elements in the type of their buffer; packed types have one element a byte here."""
    data, stored = value.data, numpy_dtype(value.buffer.dtype)
    assert data is not None
    if plan is None and value.arrange is None and not isinstance(data, Deferred) and data.dtype == stored:
        return ConstantBlock(0, data)
    shape = value.buffer.shape if plan is None else pack_buffer(value.buffer, plan).shape
    count = prod(n for n in shape if isinstance(n, int))

    def arrange(source: Array) -> Array:
        whole = value_of(data) if isinstance(data, Deferred) else source
        made = whole if value.arrange is None else value.arrange(whole)
        made = made.astype(stored, copy=False)
        return made if plan is None else pack_array(made, plan)

    source = np.empty(0, numpy_dtype(data.type.dtype)) if isinstance(data, Deferred) else data
    return ConstantBlock(0, source, arrange, count * stored.itemsize)
