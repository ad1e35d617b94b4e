"""Windows 8 and later: calls of KERNEL32 alone, and none of a C library."""

from __future__ import annotations

from aot.codegen.platforms.platform import Format, Platform

GROUPS = 16  # groups of 64 processors; threads in other groups are not moved

# Touches each page of a frame of rax bytes, in order, so that the guard page below the stack moves: LLVM calls it where
# a frame is larger than a page. It keeps all registers.
_CHKSTK = bytes.fromhex(
    "51 50"  #                      push rcx; push rax
    "48 3d 00 10 00 00"  #          cmp rax, 4096
    "48 8d 4c 24 18"  #             lea rcx, [rsp + 24]
    "72 19"  #                      jb last
    "48 81 e9 00 10 00 00"  # next: sub rcx, 4096
    "48 83 09 00"  #                or qword ptr [rcx], 0
    "48 2d 00 10 00 00"  #          sub rax, 4096
    "48 3d 00 10 00 00"  #          cmp rax, 4096
    "77 e7"  #                      ja next
    "48 29 c1"  #             last: sub rcx, rax
    "48 83 09 00"  #                or qword ptr [rcx], 0
    "58 59 c3"  #                   pop rax; pop rcx; ret
)

WINDOWS = Platform(
    name="windows",
    suffix="pc-windows-msvc",
    library=".dll",
    machines=("x86_64",),
    pool=("windows.ll",),
    numbers={
        "signal_set_bytes": 8,  # no thread has signals
        "set_mask": 0,
        "cpus": GROUPS * 64,
        "cpu_words": GROUPS,
        "cpu_bytes": GROUPS * 8,
        "thread_stack": 1 << 20,
        "reserved": 1 << 16,  # STACK_SIZE_PARAM_IS_A_RESERVATION
        "commit": 0x3000,  # MEM_COMMIT | MEM_RESERVE
        "writable": 4,  # PAGE_READWRITE
        "release": 0x8000,  # MEM_RELEASE
    },
    calls={},
    tiles={},  # a function that only Windows 11 has would enable them
    imports={
        "KERNEL32.dll": (
            "CloseHandle",
            "CreateThread",
            "GetCurrentProcessId",
            "GetCurrentProcessorNumberEx",
            "GetCurrentThread",
            "GetThreadGroupAffinity",
            "QueryPerformanceCounter",
            "QueryPerformanceFrequency",
            "RtlFillMemory",
            "RtlMoveMemory",
            "SetThreadGroupAffinity",
            "SwitchToThread",
            "VirtualAlloc",
            "VirtualFree",
            "WaitForSingleObject",
        ),
        "api-ms-win-core-synch-l1-2-0.dll": ("WaitOnAddress", "WakeByAddressAll"),  # Windows 8
    },
    prefix="windows-",
    format=Format.PE,
    external_weights=False,
    environment="-elf",
    code={"x86_64": {"__chkstk": _CHKSTK}},
)
