"""Instruction sets as a loader sees them, a file each: names, levels, and what the system calls their features."""

from aot.runtime.machines.aarch64 import AARCH64
from aot.runtime.machines.architecture import Architecture
from aot.runtime.machines.riscv64 import RISCV64
from aot.runtime.machines.wasm32 import WASM32
from aot.runtime.machines.x86_64 import X86_64

ARCHITECTURES: dict[str, Architecture] = {known.name: known for known in (X86_64, AARCH64, RISCV64, WASM32)}


def architecture_of(elf: object) -> Architecture | None:
    """Return the instruction set of a manifest's number of a machine; None if none is known by it."""
    return next((known for known in ARCHITECTURES.values() if known.elf == elf), None)


__all__ = ["ARCHITECTURES", "Architecture", "architecture_of"]
