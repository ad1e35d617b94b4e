"""Linux, with any C library: a model calls only functions of the same meaning and layout in glibc and musl."""

from __future__ import annotations

from aot.codegen.platforms.platform import Platform

CPUS = 1024  # processors in cpu_set_t; threads on processors beyond these are not moved

LINUX = Platform(
    name="linux",
    suffix="unknown-linux-gnu",
    library=".so",
    machines=("x86_64", "aarch64", "riscv64"),
    pool=("linux.ll",),
    numbers={
        "monotonic": 1,  # CLOCK_MONOTONIC
        "signal_set_bytes": 128,  # sizeof(sigset_t)
        "set_mask": 2,  # SIG_SETMASK
        "cpus": CPUS,
        "cpu_words": CPUS // 64,
        "cpu_bytes": CPUS // 8,
    },
    calls={"futex": {"x86_64": 202, "aarch64": 98, "riscv64": 98}},
    # arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA); refused where a thread's signal stack is too small, or by a policy
    tiles={"x86_64": "call i64 (i64, ...) @syscall(i64 158, i64 4131, i64 18)"},
    imports={
        "libc.so.6": (
            *("memcpy", "memmove", "memset"),  # LLVM turns loops into calls of these
            "aligned_alloc",
            "free",
            "clock_gettime",
            "getpid",
            "syscall",
            "sched_yield",
            "sched_getcpu",
            "sched_getaffinity",
            "sched_setaffinity",
            "pthread_create",
            "pthread_join",
            "pthread_sigmask",
            "sigfillset",
            "getauxval",
        )
    },
    link_options=(
        "--build-id=none",
        "--hash-style=gnu",
        *("-z", "relro"),
        *("-z", "now"),
        *("-z", "noexecstack"),
        *("-z", "defs"),
        "--as-needed",
        "-Bsymbolic",
        *("--exclude-libs", "ALL"),
        "-s",
    ),
    pages={"x86_64": 4 << 10, "aarch64": 64 << 10, "riscv64": 4 << 10},
    linkers=("ld", "ld.lld", "cc", "gcc", "clang"),
    cross_linkers=("{machine}-linux-gnu-ld", "ld.lld", "{machine}-linux-gnu-gcc"),
)
