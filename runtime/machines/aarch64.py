"""AArch64 as a loader sees it.

Levels are versions of the architecture with the extensions that products of bytes and of short floats need: -v8 is
Cortex-A53 and A72, -v8.2 Cortex-A76 and Neoverse N1, -v8.6 Neoverse V1 and N2 and all newer ones of servers.
"""

from aot.runtime.machines.architecture import Architecture

_V8 = ("neon",)
_V8_2 = (*_V8, "fp-armv8", "lse", "fullfp16", "dotprod")
_V8_6 = (*_V8_2, "bf16", "i8mm")
_KERNEL_NAMES = {
    "neon": "asimd",
    "fp-armv8": "fp",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
    "lse": "atomics",
    "crc": "crc32",
    "rdm": "asimdrdm",
    "rcpc": "lrcpc",
    "complxnum": "fcma",
    "jsconv": "jscvt",
    "sha3": "sha3",
}

AARCH64 = Architecture(
    name="aarch64",
    elf=183,
    aliases=("arm64",),
    prefix="aarch64-",
    levels={"aarch64-v8": _V8, "aarch64-v8.2": _V8_2, "aarch64-v8.6": _V8_6},
    short_names={"aarch64": "aarch64-v8"},
    kernel_names=_KERNEL_NAMES,
    reported=frozenset(_KERNEL_NAMES) | {"aes", "bf16", "bti", "i8mm", "pauth", "sha2", "sm4", "ssbs", "sve", "sve2"},
)
