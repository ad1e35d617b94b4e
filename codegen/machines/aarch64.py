"""AArch64 as code is made for it: vectors of 128 bits."""

from __future__ import annotations

from aot.codegen.machines.machine import Abilities, Dispatch, Machine
from aot.runtime.abi import DType
from aot.runtime.machines.aarch64 import AARCH64 as ARCHITECTURE


def _abilities(features: frozenset[str], vector_bytes: int) -> Abilities:
    del features, vector_bytes
    return Abilities(fuses=True, converts=frozenset({DType.F16}))


# Words that Linux gives each process: AT_HWCAP and AT_HWCAP2.
_HWCAP = Dispatch(
    template="dispatch_hwcap.ll",
    words={
        "@word(i64 16)": {"fp-armv8": 1 << 0, "neon": 1 << 1, "lse": 1 << 8, "fullfp16": 3 << 9, "dotprod": 1 << 20},
        "@word(i64 26)": {"i8mm": 1 << 13, "bf16": 1 << 14},
    },
)

AARCH64 = Machine(
    architecture=ARCHITECTURE,
    cpu="generic",
    caches=(64 << 10, 512 << 10, 4 << 20),
    base=frozenset({"neon", "fp-armv8", "lse"}),
    vectors=lambda features: (16, 32),
    abilities=_abilities,
    pause=("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
    dispatch={"linux": _HWCAP},
    prefetches_rows=False,
)
