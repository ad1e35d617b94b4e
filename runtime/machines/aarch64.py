"""AArch64 as a loader sees it."""

from aot.runtime.machines.architecture import Architecture

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
    levels={"aarch64": ("neon",)},
    kernel_names=_KERNEL_NAMES,
    reported=frozenset(_KERNEL_NAMES) | {"aes", "bf16", "bti", "i8mm", "pauth", "sha2", "sm4", "ssbs", "sve", "sve2"},
)
