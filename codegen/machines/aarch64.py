"""AArch64 as code is made for it: vectors of 128 bits."""

from __future__ import annotations

from aot.codegen.machines.machine import Abilities, Dispatch, Machine
from aot.runtime.abi import DType
from aot.runtime.machines.aarch64 import AARCH64 as ARCHITECTURE

_SIGNED_DOTS = {"dot_signed_bytes": {4: "llvm.aarch64.neon.sdot.v4i32.v16i8"}}
_MIXED_DOTS = {
    "dot_bytes": {4: "llvm.aarch64.neon.usdot.v4i32.v16i8"},
    "dot_blocks": {4: "llvm.aarch64.neon.usmmla.v4i32.v16i8"},
}
_ROUNDS = {
    "round_i32": {
        n: f"llvm.aarch64.neon.fcvtns.{t}" for n, t in ((1, "i32.f32"), (2, "v2i32.v2f32"), (4, "v4i32.v4f32"))
    }
}
_ADDED_PARTS = {"add_even": {4: "llvm.aarch64.neon.bfmlalb"}, "add_odd": {4: "llvm.aarch64.neon.bfmlalt"}}


def _abilities(features: frozenset[str], vector_bytes: int) -> Abilities:
    del vector_bytes
    dots = _MIXED_DOTS if "i8mm" in features else _SIGNED_DOTS if "dotprod" in features else {}
    return Abilities(
        fuses=True,
        fuses_second=True,
        keeps_nan=True,
        multiplies_lanes=True,
        converts=frozenset({DType.F16}),
        dots=4 if dots else 0,
        multiplies_blocks="dot_blocks" in dots,
        sums_half="fullfp16" in features,
        intrinsics={**_ROUNDS, **dots, **(_ADDED_PARTS if "bf16" in features else {})},
    )


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
    uses={
        r"@llvm\.aarch64\.neon\.bfmlal": ("bf16",),
        r"@llvm\.aarch64\.neon\.us(dot|mmla)": ("i8mm",),
        r"@llvm\.aarch64\.neon\.sdot": ("dotprod",),
        r"@llvm\.fma\.(?:v\d+)?f16": ("fullfp16",),
    },
    pause=("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
    dispatch=dict.fromkeys(("linux", "android"), _HWCAP),
    loads_operands=False,
    prefetches_rows=False,
)
