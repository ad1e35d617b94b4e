"""RISC-V of 64 bits as a loader sees it: one level, general-purpose processors (RV64GC) with vectors (V)."""

from aot.runtime.machines.architecture import Architecture

_V = ("m", "a", "f", "d", "c", "v", "zihintpause")

RISCV64 = Architecture(
    name="riscv64",
    elf=243,
    prefix="riscv64-",
    levels={"riscv64-v": _V},
    short_names={"riscv64": "riscv64-v"},
    kernel_names={},
    reported=frozenset(_V),
    unused=frozenset({"zihintpause"}),  # a hint, which processors without it take for nothing
)
