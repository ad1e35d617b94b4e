"""Memory of a kernel's temporaries: a block on the stack, and the scratch memory of the thread.

    alloc a { alloc b {} alloc c {} }   ->   a at 0, b and c both after it

Temporaries on the stack have bounded sizes; those in scratch memory may have dynamic sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import inf

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Buffer, Expr, Size, Space, Var, as_expr, prim
from aot.codegen.llvm.emit.function_text import Function, Value
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

STACK_BYTES = 32 << 10


class Stacks:
    """Two stacks that grow and shrink with the allocs; the kernel needs their greatest sizes."""

    def __init__(self, function: Function, sizes: tuple[Var, ...], value: Callable[[Size], Value]) -> None:
        """`value` emits the value of a size over `sizes`, at the function's begin."""
        self.f, self.value = function, value
        self.sizes = frozenset(sizes)
        self.top: Size = 0  # of the scratch memory
        self.most: Size = 0
        self.stack_top = self.stack_most = 0

    @contextmanager
    def room(self, buffer: Buffer) -> Generator[Value]:
        """Yield the address of a temp, 64-byte aligned; its memory is free again at the end of the alloc."""
        if buffer.space is not Space.ARENA:
            before, nbytes = self.stack_top, _lines(reach(buffer))
            if isinstance(nbytes, int) and before + nbytes <= STACK_BYTES:
                self.stack_top = before + nbytes
                self.stack_most = max(self.stack_most, self.stack_top)
                yield self._after("%stack", before)
                self.stack_top = before
                return
        start = self.top
        self.top = start + _lines(reach(buffer, self.sizes))
        self.most = _larger(self.most, self.top)
        yield self._after("%scratch", start)
        self.top = start

    def _after(self, base: str, start: Size) -> Value:
        pointer = Value("ptr", base)
        return pointer if start == 0 else self.f.gep("i8", pointer, self.value(start), self.f.blocks[0])

    def finish(self) -> None:
        """Reserve the stack, once its size is known."""
        self.f.scratch_bytes = self.most
        if self.stack_most:
            self.f.blocks[0].lines.insert(0, f"  %stack = alloca [{self.stack_most} x i8], align 64")


def reach(buffer: Buffer, sizes: frozenset[Var] = frozenset()) -> Size:
    """Return the bytes from a buffer's begin to its end, over `sizes`; upper bounds replace other dynamic sizes."""
    elements: Size = 1
    for n, stride in zip(buffer.shape, buffer.strides, strict=True):
        if n == 0:
            return 0
        elements = elements + (_most(buffer, n, sizes) - 1) * _most(buffer, stride, sizes)
    return elements * buffer.dtype.stored_bytes


def _lines(size: Size) -> Size:
    """Round up to whole cache lines."""
    return (size + 63) // 64 * 64


def _larger(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return prim("max", as_expr(a, DType.I64), as_expr(b, DType.I64))


def _most(buffer: Buffer, size: Size, sizes: frozenset[Var]) -> Size:
    if isinstance(size, Expr) and (used := variables(size)) and used <= sizes:
        return size
    high = size if isinstance(size, int) else bounds(normal(size, {}))[1]
    if high == inf:
        raise InternalError(f"{buffer.name}: a temp has bounded dimensions, got {size}")
    return int(high)
