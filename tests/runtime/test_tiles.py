"""Tile registers need the system's permission: who asks, what runs without it, and after fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.llvm.build import Built
from aot.codegen.llvm.levels import Levels, dispatch_text
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.runtime.describe import manifest_text
from aot.runtime.loading.library import read_manifest
from aot.runtime.machine import missing_features, refused_tiles
from tests.lowering.numbers.short_networks import attention, linear
from tests.passes.check import graph_of, values

AMX = "x86-64-v4-amx"
HAS = not missing_features(Target.parse(AMX).isa_features) and not refused_tiles()
has_tiles = pytest.mark.skipif(not HAS, reason="this machine has no tile registers, or the system refuses them")
SHAPE = (32, 64)
# A thread with a signal stack of 8 KiB, as many runtimes set one: the registers would not fit.
SMALL_STACK = """
import ctypes, sys
from aot.runtime import errors

class Stack(ctypes.Structure):
    _fields_ = [("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

memory = ctypes.create_string_buffer(8192)
stack = Stack(ctypes.addressof(memory), 0, 8192)
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None) == 0
import runtime
try:
    print(runtime.load(sys.argv[1]).get_property("COMPILE_OPTIONS")["target"])
except errors.PlatformError as error:
    print(error)
"""


def built(target: str, precision: str = "bf16") -> Built | Levels:
    options = CompileOptions(level=None, target=target, precision=precision)
    return stages(graph_of(linear, SHAPE), options).built


def answer(path: Path) -> str:
    """Return the output of a process that loads a library and has a signal stack too small for tile registers."""
    found = subprocess.run([sys.executable, "-c", SMALL_STACK, str(path)], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def test_the_query_falls_to_the_level_below() -> None:
    made = built(f"x86-64-v4,{AMX}")
    assert isinstance(made, Levels)
    assert [one.uses_tiles for one in made.built] == [False, True]
    text = dispatch_text(made)
    assert "call i32 @word(i32 7, i32 3, i32 0)" in text
    assert "br i1 %g1, label %give1, label %try0" in text
    dots = built("x86-64-v4,x86-64-v4-bf16")
    assert isinstance(dots, Levels)
    assert "call i32 @word(i32 7, i32 0, i32 1)" in dispatch_text(dots)
    plain = built("x86-64-v2,x86-64-v3", "f32")
    assert isinstance(plain, Levels)
    assert "call i32 @word(i32 7, i32 3, i32 0)" not in dispatch_text(plain)
    assert "call i32 @word(i32 7, i32 0, i32 1)" not in dispatch_text(plain)


def test_only_libraries_with_tiles_say_so() -> None:
    made = [built(target, precision) for target in ("x86-64-v4", AMX) for precision in ("f32", "bf16")]
    assert [one.manifest.get("tiles", False) for one in made] == [False, False, False, True]


@has_tiles
def test_lower_level_runs_without_permission_for_tiles(tmp_path: Path) -> None:
    built(f"x86-64-v4,{AMX}").write_shared(tmp_path / "m.so")
    assert runtime.load(tmp_path / "m.so").get_property("COMPILE_OPTIONS")["target"] == AMX  # type: ignore[index]
    assert answer(tmp_path / "m.so") == "x86-64-v4"
    assert f"{AMX}, 3 calls: runs here" in manifest_text(read_manifest(tmp_path / "m.so"), tmp_path / "m.so")


@has_tiles
def test_library_of_one_level_is_refused_without_permission(tmp_path: Path) -> None:
    built(AMX).write_shared(tmp_path / "m.so")
    assert "the system must allow tile registers (AMX), got ENOSPC" in answer(tmp_path / "m.so")


@has_tiles
def test_tiles_work_in_a_child(tmp_path: Path) -> None:
    """A fork inherits the permission, and the pool of threads begins anew."""
    inputs = values((2, 48, 64))
    options = CompileOptions(level=None, target=AMX, precision="bf16")
    stages(graph_of(attention, (2, 48, 64)), options).built.write_shared(tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so", 2)
    expected = np.array(model(*inputs)[0])
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(np.asarray(model(*inputs)[0]), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
