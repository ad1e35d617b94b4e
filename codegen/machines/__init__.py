"""Instruction sets as code is made for them, a file each; `aot.runtime.machines` has what a loader must know."""

from aot.codegen.machines.aarch64 import AARCH64
from aot.codegen.machines.machine import Abilities, Dispatch, FlushMode, Machine
from aot.codegen.machines.riscv64 import RISCV64
from aot.codegen.machines.wasm32 import WASM32
from aot.codegen.machines.x86_64 import X86_64
from aot.runtime.errors import UnsupportedError

MACHINES: dict[str, Machine] = {known.name: known for known in (X86_64, AARCH64, RISCV64, WASM32)}


def machine_of(triple: str) -> Machine:
    """Return the machine of a triple; UnsupportedError if none is known by its name."""
    name = triple.split("-", 1)[0]
    if name not in MACHINES:
        raise UnsupportedError(f"target: the machine must be one of {', '.join(MACHINES)}, got {name}")
    return MACHINES[name]


__all__ = ["MACHINES", "Abilities", "Dispatch", "FlushMode", "Machine", "machine_of"]
