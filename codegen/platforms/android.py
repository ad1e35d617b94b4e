"""Android 7.0 (API 24) and later: the kernel of Linux with Bionic, a C library of its own."""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.platforms.linux import LINUX

_LIBC = tuple(name for name in LINUX.functions if name != "aligned_alloc")  # it came with API 28

_PAGE = 16 << 10  # the largest of a device

ANDROID = replace(
    LINUX,
    name="android",
    machines=("x86_64", "aarch64"),
    suffix="unknown-linux-android24",
    pool=(*LINUX.pool, "android.ll"),
    imports={"libc.so": (*_LIBC, "posix_memalign")},
    tiles={},  # no Android runs on such a processor
    link_options=(*LINUX.link_options, "-z", f"max-page-size={_PAGE}"),
    pages={"x86_64": _PAGE, "aarch64": _PAGE},
    linkers=("ld.lld",),
    cross_linkers=("ld.lld",),
    prefix="android-",
)
