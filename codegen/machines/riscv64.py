"""RISC-V of 64 bits. Code has vectors of 128 bits, the shortest of processors with V."""

from __future__ import annotations

from aot.codegen.machines.machine import Abilities, Machine
from aot.runtime.machines.riscv64 import RISCV64 as ARCHITECTURE

RISCV64 = Machine(
    architecture=ARCHITECTURE,
    cpu="generic-rv64",
    caches=(32 << 10, 512 << 10, 4 << 20),
    base=frozenset(ARCHITECTURE.levels["riscv64-v"]),
    vectors=lambda features: (16, 32),
    abilities=lambda features, vector_bytes: Abilities(fuses=True),
    pause=("call void @llvm.riscv.pause()", "declare void @llvm.riscv.pause()"),
    dispatch={},
    module_flags='!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"target-abi", !"lp64d"}\n',
    elf_flags=5,  # compressed instructions, floats of 64 bits in registers
    prefetches_rows=False,
)
