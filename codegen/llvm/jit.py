"""Loads a built model into this process, without a file and without a linker.

The code is the object that a shared library would hold; the weights are not copied if they are one aligned block.
"""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.build import Built
from aot.codegen.machines import machine_of
from aot.codegen.platforms import platform_of
from aot.runtime import abi
from aot.runtime.errors import PlatformError


@dataclass(frozen=True, slots=True)
class Loaded:
    """`query` is the address of aot_query_<tag>; it is valid as long as this object lives."""

    query: int
    keep: tuple[object, ...]


def load(built: Built) -> Loaded:
    """Load the code into executable memory; PlatformError if it is for another machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    host = llvm.get_process_triple()
    if machine_of(host) is not built.machine or platform_of(host) is not built.platform:
        raise PlatformError(f"jit: runs code for this machine, {host}, got {built.manifest['triple']}")
    weights = _contiguous(built)
    manifest = np.frombuffer(built.manifest_bytes(), np.uint8)
    jit = llvm.create_lljit_compiler(use_jit_link=True)
    query = abi.QUERY_PREFIX + built.tag
    tracker = (
        llvm.JITLibraryBuilder()
        .add_object_img(built.code)
        .import_symbol(abi.WEIGHTS_PREFIX + built.tag, weights.ctypes.data)
        .import_symbol(abi.MANIFEST_PREFIX + built.tag, manifest.ctypes.data)
        .add_current_process()
        .export_symbol(query)
        .link(jit, built.tag)
    )
    return Loaded(tracker[query], (jit, tracker, weights, manifest))


def _contiguous(built: Built) -> NDArray[np.uint8]:
    """Return the weights at their offsets, in memory aligned to `abi.ARENA_ALIGN`."""
    if len(built.constants) == 1 and built.constants[0].make is None:
        (data,) = built.constants[0].pieces()
        if built.constants[0].offset == 0 and data.ctypes.data % abi.ARENA_ALIGN == 0:
            return data
    space = np.zeros(max(1, built.constant_bytes) + abi.ARENA_ALIGN, np.uint8)
    start = -space.ctypes.data % abi.ARENA_ALIGN
    weights = space[start : start + max(1, built.constant_bytes)]
    for block in built.constants:
        at = block.offset
        for piece in block.pieces():
            weights[at : at + piece.nbytes] = piece
            at += piece.nbytes
    return weights
