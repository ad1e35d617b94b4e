"""Compilers of C and C++: this machine's, or else that of the package ziglang, which pip brings."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec

import pytest

_ZIG = {
    "cc": ["cc"],
    "c++": ["c++"],
    "aarch64-linux-gnu-gcc": ["cc", "-target", "aarch64-linux-musl"],
    "riscv64-linux-gnu-gcc": ["cc", "-target", "riscv64-linux-musl"],
    "x86_64-w64-mingw32-gcc": ["cc", "-target", "x86_64-windows-gnu"],
    "x86_64-w64-mingw32-g++": ["c++", "-target", "x86_64-windows-gnu"],
}


def compiler(name: str) -> list[str]:
    """Return the command of `cc`, `c++` or of another system; the test is skipped without any."""
    found = shutil.which(name)
    if found is not None:
        return [found]
    if find_spec("ziglang") is None:
        pytest.skip(f"needs the compiler {name}, or the package ziglang (extra test)")
    return [sys.executable, "-P", "-m", "ziglang", *_ZIG[name], "-fno-sanitize=all"]
