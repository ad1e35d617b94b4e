"""WebAssembly of 32 bits as code is made for it: vectors of 128 bits.

An engine has as many registers as the processor, 16 on x86-64, less one of its own. V8 takes one for each product and
each loaded number: tiles that leave three free do not spill there; those for the 32 of AArch64 do.
"""

from __future__ import annotations

from aot.codegen.machines.machine import Abilities, Machine
from aot.runtime.machines.wasm32 import WASM32 as ARCHITECTURE

_REGISTERS = 13  # for schedules: with 4 rows of 2 vectors a tile, networks take 0.77 to 0.98 of the time of 6 rows


def _abilities(features: frozenset[str], vector_bytes: int) -> Abilities:
    del features, vector_bytes
    return Abilities(rounds=False, dots=2, intrinsics={"dot_pairs": {4: "llvm.wasm.dot"}})


WASM32 = Machine(
    architecture=ARCHITECTURE,
    cpu="generic",
    caches=(32 << 10, 512 << 10, 4 << 20),
    base=frozenset(ARCHITECTURE.levels["wasm"]),
    vectors=lambda features: (16, _REGISTERS),
    abilities=_abilities,
    pause=("", ""),
    dispatch={},
    spare_registers=16 - _REGISTERS,
    prefetches_rows=False,
)
