"""AArch64 as code is made for it: vectors of 128 bits."""

from __future__ import annotations

from aot.codegen.machines.machine import Abilities, Machine
from aot.runtime.abi import DType
from aot.runtime.machines.aarch64 import AARCH64 as ARCHITECTURE


def _abilities(features: frozenset[str], vector_bytes: int) -> Abilities:
    del features, vector_bytes
    return Abilities(fuses=True, converts=frozenset({DType.F16}))


AARCH64 = Machine(
    architecture=ARCHITECTURE,
    cpu="generic",
    caches=(64 << 10, 512 << 10, 4 << 20),
    base=frozenset({"neon", "fp-armv8", "lse"}),
    vectors=lambda features: (16, 32),
    abilities=_abilities,
    pause=("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
    dispatch={},
    prefetches_rows=False,
)
