"""Kernels that make their loops when they are first read: if the code is kept, they never are."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Kernel, Prefetch, Size, Stmt, Var
from aot.codegen.ir.traverse import has_prefetch, uses_tiles
from aot.codegen.nest.nest import units


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts about a kernel's loops: enough to make a program if a store has the code.

    `units`: iterations of all parallel loops together, over the kernel's sizes. `tiles`: loops use tile registers.
    `one_way`: loops prefetch the next panel, so that they may not run backwards. `counting`: they prefetch in calls of
    some number of units or more.
    """

    units: Size
    tiles: bool
    one_way: bool
    counting: bool


class CachedKernel(Kernel):
    """A kernel known by the digest of its loops, which `make` returns."""

    __slots__ = ("_make", "digest", "facts")

    def __init__(
        self,
        name: str,
        sizes: tuple[Var, ...],
        buffers: tuple[Buffer, ...],
        digest: str,
        facts: KernelFacts,
        make: Callable[[], Kernel],
    ) -> None:
        for field, value in (("name", name), ("sizes", sizes), ("buffers", buffers)):
            object.__setattr__(self, field, value)
        self.digest, self.facts, self._make = digest, facts, make

    def __getattr__(self, field: str) -> tuple[Stmt, ...]:
        """Make the loops, the only field that is not set."""
        if field != "body":
            raise AttributeError(field)
        object.__setattr__(self, field, self._make().body)
        return self.body

    def named(self, name: str) -> CachedKernel:
        """Return the kernel with another name."""
        return CachedKernel(name, self.sizes, self.buffers, self.digest, self.facts, self._make)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the fields of a kernel with loops for `pickle`."""
        return Kernel, (self.name, self.sizes, self.buffers, self.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CachedKernel) and (self.name, self.digest) == (other.name, other.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))


@lru_cache(maxsize=1 << 8)
def facts_of(kernel: Kernel) -> KernelFacts:
    """Return the facts of a kernel's loops."""
    if isinstance(kernel, CachedKernel):
        return kernel.facts
    body = kernel.body

    def is_one_way(p: Prefetch) -> bool:
        return not p.ahead

    def is_counting(p: Prefetch) -> bool:
        return p.least > 0

    one_way, counting = has_prefetch(body, is_one_way), has_prefetch(body, is_counting)
    return KernelFacts(units(kernel), uses_tiles(body), one_way, counting)
