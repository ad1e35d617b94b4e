"""Denormal elements of the constants of kernels for which they count as zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aot.codegen.ir.numbers.denormals import denormals
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, reads
from aot.ir.values.deferred import is_normal, release, value_of
from aot.lowering.ir.steps import Value


class DenormalCounts:
    """Counts the denormal elements of constants, each once."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values
        self._counts: dict[str, int] = {}

    @property
    def total(self) -> int:
        """The number of denormal elements of all constants that were counted."""
        return sum(self._counts.values())

    def count(self, names: Iterable[str]) -> None:
        """Count the denormal elements of these values, if they are constants."""
        for name in names:
            value = self._values[name]
            is_float_constant = value.region is MemoryRegion.CONSTANT and value.buffer.dtype.is_float
            if name not in self._counts and is_float_constant and value.data is not None:
                self._counts[name] = 0 if is_normal(value.data) else denormals(value_of(value.data))
                release(value.data)

    def has_tiny_scalars(self, works: tuple[Work, ...], names: Mapping[str, str]) -> bool:
        """True if a constant of one element is denormal: log(x + 1e-45) means it. `names`: of values by buffers."""
        scalars = {names[x.buffer.name] for w in works for x in reads(w) if x.buffer.name in names}
        values = (self._values[n] for n in scalars if self._values[n].region is MemoryRegion.CONSTANT)
        data = (v.array for v in values if v.data is not None and v.data.size == 1)
        return any(d is not None and denormals(d) for d in data)
