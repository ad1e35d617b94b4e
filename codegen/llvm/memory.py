"""Where the temps of a kernel lie: a block on the stack, and the scratch memory of the thread.

    alloc a { alloc b {} alloc c {} }   ->   a at 0, b and c both after it
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import inf

from codegen.index import bounds, normal
from codegen.llvm.text import Function, Value, integer
from codegen.loops import Buffer, Size, Space
from runtime.errors import InternalError

STACK_BYTES = 32 << 10


class Stacks:
    """Two stacks that grow and shrink with the allocs; what counts in the end is how far they reached."""

    def __init__(self, function: Function) -> None:
        self.f = function
        self.top = {Space.STACK: 0, Space.ARENA: 0}
        self.most = {Space.STACK: 0, Space.ARENA: 0}

    @contextmanager
    def room(self, buffer: Buffer) -> Generator[Value]:
        """The address of a temp, 64-byte aligned, for as long as its alloc lasts."""
        size = -(-reach(buffer) // 64) * 64
        large = self.top[Space.STACK] + size > STACK_BYTES
        space = Space.ARENA if buffer.space is Space.ARENA or large else Space.STACK
        start = self.top[space]
        self.top[space] = start + size
        self.most[space] = max(self.most[space], start + size)
        base = Value("ptr", "%stack" if space is Space.STACK else "%scratch")
        yield self.f.gep("i8", base, integer(start), self.f.blocks[0]) if start else base
        self.top[space] = start

    def finish(self) -> None:
        """Reserve the stack, once its size is known."""
        self.f.scratch_bytes = self.most[Space.ARENA]
        if self.most[Space.STACK]:
            self.f.blocks[0].lines.insert(0, f"  %stack = alloca [{self.most[Space.STACK]} x i8], align 64")


def reach(buffer: Buffer) -> int:
    """How far a buffer of known, or at least bounded, size reaches."""
    elements = 1
    for n, stride in zip(buffer.shape, buffer.strides, strict=True):
        if n == 0:
            return 0
        elements += (_most(buffer, n) - 1) * _most(buffer, stride)
    return elements * buffer.dtype.stored_bytes


def _most(buffer: Buffer, size: Size) -> int:
    high = size if isinstance(size, int) else bounds(normal(size, {}))[1]
    if high == inf:
        raise InternalError(f"{buffer.name}: a temp has bounded dimensions, got {size}")
    return int(high)
