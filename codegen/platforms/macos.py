"""macOS 14.4 and later, on Apple's processors."""

from __future__ import annotations

from aot.codegen.platforms.platform import Format, Platform

MACOS = Platform(
    name="macos",
    suffix="apple-macosx14.4.0",
    library=".dylib",
    machines=("aarch64",),
    pool=("macos.ll",),
    numbers={
        "monotonic": 8,  # CLOCK_UPTIME_RAW
        "signal_set_bytes": 8,  # sizeof(sigset_t) is 4
        "set_mask": 3,  # SIG_SETMASK
        "cpus": 64,  # no thread is moved: nobody may choose a processor
        "cpu_words": 1,
        "cpu_bytes": 8,
    },
    calls={},
    tiles={},
    imports={
        "/usr/lib/libSystem.B.dylib": (
            # LLVM turns loops into calls of these
            *("memcpy", "memmove", "memset", "bzero", "memset_pattern4", "memset_pattern8", "memset_pattern16"),
            "aligned_alloc",
            "free",
            "clock_gettime_nsec_np",
            "getpid",
            "os_sync_wait_on_address",
            "os_sync_wake_by_address_all",
            "sched_yield",
            "pthread_create",
            "pthread_join",
            "pthread_sigmask",
            "sigfillset",
        )
    },
    prefix="macos-",
    format=Format.MACH_O,
    external_weights=False,
    environment="-elf",
)
