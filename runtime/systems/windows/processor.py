"""Processor and memory of a process of Windows; features are those that CPUID tells."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import ctypes
import mmap
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from aot.runtime.systems.defaults import (
    CACHES,
    CGROUP,
    CPUINFO,
    PROCESSORS,
    caches,
    cgroup_quota,
    memory_limit,
    place_of,
    processors,
    refused_tiles,
)
from aot.runtime.systems.windows import KERNEL32

# leaf, subleaf, word (eax, ebx, ecx, edx): bits, and the features that they tell, in Linux' names
_FEATURE_BITS = {
    (1, 0, 2): "0 pni 1 pclmulqdq 9 ssse3 12 fma 13 cx16 19 sse4_1 20 sse4_2 22 movbe 23 popcnt 25 aes 26 xsave 28 avx "
    "29 f16c 30 rdrand",
    (1, 0, 3): "8 cx8 15 cmov 23 mmx 24 fxsr 25 sse 26 sse2",
    (7, 0, 1): "3 bmi1 5 avx2 8 bmi2 16 avx512f 17 avx512dq 19 adx 21 avx512ifma 28 avx512cd 29 sha_ni 30 avx512bw "
    "31 avx512vl",
    (7, 0, 2): "1 avx512vbmi 6 avx512_vbmi2 8 gfni 9 vaes 10 vpclmulqdq 11 avx512_vnni 12 avx512_bitalg "
    "14 avx512_vpopcntdq",
    (7, 0, 3): "8 avx512_vp2intersect 23 avx512_fp16",
    (7, 1, 0): "4 avx_vnni 5 avx512_bf16",
    (0x80000001, 0, 2): "0 lahf_lm 5 abm 8 3dnowprefetch 11 xop 16 fma4",
    (0x80000001, 0, 3): "29 lm",
}
_OSXSAVE_BIT = 27  # bit of leaf 1, ecx (OSXSAVE): XCR0 can be read
_SAVED_REGISTERS = {
    "avx": 0x06,
    "avx512f": 0xE6,
}  # bits of XCR0: the registers that features need, and the system saves
_AVX_PREFIXES = (
    "avx",
    "fma",
    "f16c",
    "vaes",
    "vpclmulqdq",
    "xop",
)  # beginnings of the names of what needs these registers
# void cpuid(leaf in ecx, subleaf in edx, words in r8): push rbx; mov eax, ecx; mov ecx, edx; cpuid; the four words to
# [r8]; pop rbx; ret. At byte 32: eax = XCR0: xor ecx, ecx; xgetbv; ret.
_MACHINE_CODE = bytes.fromhex("53 89c8 89d1 0fa2 418900 41895804 41894808 4189500c 5b c3").ljust(
    32, b"\xcc"
) + bytes.fromhex("31c9 0f01d0 c3")
_COMMIT, _WRITABLE, _RUNS, _RELEASE = 0x3000, 0x04, 0x20, 0x8000  # MEM_…, PAGE_…

KERNEL32.GetCurrentProcess.restype = KERNEL32.GetCurrentThread.restype = ctypes.c_void_p
KERNEL32.SetThreadAffinityMask.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
KERNEL32.SetThreadAffinityMask.restype = ctypes.c_size_t
KERNEL32.VirtualAlloc.restype = ctypes.c_void_p
KERNEL32.VirtualAlloc.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint32)
KERNEL32.VirtualProtect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_void_p)
KERNEL32.VirtualFree.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32)
KERNEL32.GetProcessAffinityMask.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class _Memory(ctypes.Structure):
    """MEMORYSTATUSEX."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 6),
    )


def machine() -> str:
    """Return the machine that the code of this process is for, which an emulator may run."""
    return "ARM64" if "ARM64" in sys.version else "AMD64"


@cache
def features(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the processor's features with registers that the system saves, in Linux' names; none if not x86-64."""
    del cpuinfo
    if machine() != "AMD64":
        return frozenset()
    code = KERNEL32.VirtualAlloc(None, mmap.PAGESIZE, _COMMIT, _WRITABLE)
    if not code:
        return frozenset()
    try:
        ctypes.memmove(code, _MACHINE_CODE, len(_MACHINE_CODE))
        if not KERNEL32.VirtualProtect(code, mmap.PAGESIZE, _RUNS, ctypes.byref(ctypes.c_uint32())):
            return frozenset()  # a process that may not make code
        return _features(code)
    finally:
        KERNEL32.VirtualFree(code, 0, _RELEASE)


def _features(code: int) -> frozenset[str]:
    call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(code)

    def words(leaf: int, subleaf: int) -> ctypes.Array[ctypes.c_uint32]:
        registers = (ctypes.c_uint32 * 4)()
        call(leaf & 0x80000000, 0, ctypes.addressof(registers))
        known = registers[0] >= leaf
        registers = (ctypes.c_uint32 * 4)()
        if known:
            call(leaf, subleaf, ctypes.addressof(registers))
        return registers

    names: set[str] = set()
    for (leaf, subleaf, word), text in _FEATURE_BITS.items():
        bits, result = text.split(), words(leaf, subleaf)[word]
        names |= {name for bit, name in zip(bits[::2], bits[1::2], strict=True) if result >> int(bit) & 1}
    saved = 0
    if words(1, 0)[2] >> _OSXSAVE_BIT & 1:
        saved = ctypes.CFUNCTYPE(ctypes.c_uint32)(code + 32)()
    if saved & _SAVED_REGISTERS["avx"] != _SAVED_REGISTERS["avx"]:
        names = {name for name in names if not name.startswith(_AVX_PREFIXES)}
    if saved & _SAVED_REGISTERS["avx512f"] != _SAVED_REGISTERS["avx512f"]:
        names = {name for name in names if not name.startswith("avx512")}
    return frozenset(names)


def model(cpuinfo: Path = CPUINFO) -> str:
    """Return the name of the processor; empty if the system does not tell."""
    del cpuinfo
    return os.environ.get("PROCESSOR_IDENTIFIER", "")


def allowed_processors() -> set[int]:
    """Return the processors of this process' group that it may use."""
    own, all_of_group = ctypes.c_size_t(), ctypes.c_size_t()
    KERNEL32.GetProcessAffinityMask(KERNEL32.GetCurrentProcess(), ctypes.byref(own), ctypes.byref(all_of_group))
    return {bit for bit in range(own.value.bit_length()) if own.value >> bit & 1} or set(range(processors()))


def move_thread(allowed: Iterable[int]) -> bool:
    """Move the calling thread to processors of its group; False if the system refuses."""
    mask = sum(1 << processor for processor in allowed if processor < 8 * ctypes.sizeof(ctypes.c_size_t))
    return KERNEL32.SetThreadAffinityMask(KERNEL32.GetCurrentThread(), mask) != 0


@cache
def memory() -> int:
    """Return the bytes of memory of this machine."""
    status = _Memory(length=ctypes.sizeof(_Memory))
    return status.total if KERNEL32.GlobalMemoryStatusEx(ctypes.byref(status)) else 0


__all__ = [
    "CACHES",
    "CGROUP",
    "CPUINFO",
    "PROCESSORS",
    "allowed_processors",
    "caches",
    "cgroup_quota",
    "features",
    "machine",
    "memory",
    "memory_limit",
    "model",
    "move_thread",
    "place_of",
    "processors",
    "refused_tiles",
]
