"""Addresses of the values of a program."""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.program import Address, MemoryRegion
from aot.codegen.ir.schedule import Pack
from aot.lowering.ir.steps import Steps
from aot.lowering.program.arena import Plan
from aot.lowering.program.constant_places import Constants


@dataclass(frozen=True, slots=True)
class Addresses:
    """The places of values: in the `arena`, among the `constants`, in the state, or in memory of the caller."""

    steps: Steps
    arena: Plan
    constants: Constants

    def of(self, name: str, packed: Pack | None = None, offset: int = 0) -> Address:
        """Return the address of a value, or of the byte `offset` of it; a packed constant is laid out first."""
        address = self._first(name, packed)
        return replace(address, offset=address.offset + offset) if offset else address

    def _first(self, name: str, packed: Pack | None) -> Address:
        value = self.steps.values[name]
        match value.region:
            case MemoryRegion.ARENA | MemoryRegion.SHARED:
                return Address(MemoryRegion.ARENA, 0, self.arena.offsets[name])
            case MemoryRegion.STATE:
                return Address(MemoryRegion.STATE, 0, self.steps.sizes.of(value.at))
            case MemoryRegion.CONSTANT:
                return Address(MemoryRegion.CONSTANT, 0, self.constants.add(value, packed))
            case _:
                return Address(value.region, value.index)
