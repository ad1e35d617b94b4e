"""The machine this process runs on."""

from __future__ import annotations

import llvmlite.binding as llvm


def host() -> tuple[str, str, tuple[str, ...]]:
    """Triple, CPU name and the features it has."""
    features = llvm.get_host_cpu_features()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), tuple(sorted(k for k, on in features.items() if on))
