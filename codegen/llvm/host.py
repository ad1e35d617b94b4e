"""The machine this process runs on."""

from __future__ import annotations

import llvmlite.binding as llvm


def host() -> tuple[str, str, dict[str, bool]]:
    """Return triple, CPU name, and for each feature that LLVM knows whether processor and system have it."""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(sorted(llvm.get_host_cpu_features().items()))
