"""Shared libraries for another machine: linked by whichever linker there is, run by an emulator where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot.driver import stages
from aot.options import CompileOptions
from codegen.llvm.build import build
from codegen.llvm.header import header_text
from codegen.llvm.link import LIBC, Linker, find_linker
from codegen.target import Target
from runtime.elf import ElfFile
from runtime.errors import PlatformError
from runtime.library import read_manifest
from tests.programs import chain

EXAMPLES = Path(__file__).parents[2] / "examples"


def linker() -> Linker:
    try:
        return find_linker("aarch64")
    except PlatformError:
        pytest.skip("needs ld.lld, a cross linker, or the package ziglang (extra cross)")


def test_library_for_another_machine(tmp_path: Path) -> None:
    build(chain(), Target.parse("aarch64")).write_shared(tmp_path / "m.so", linker=linker())
    with (tmp_path / "m.so").open("rb") as stream:
        file = ElfFile(stream, "m.so")
        symbols = file.dynamic_symbols()
        weights = np.frombuffer(file.section(".aot.weights"), np.float32)
    assert (file.machine, weights[16]) == (183, 2)
    assert [s.name for s in symbols if s.defined] == [f"aot_query_{read_manifest(tmp_path / 'm.so').tag}"]
    assert {s.name for s in symbols if not s.defined} <= set(LIBC)


def test_network_runs_under_an_emulator(tmp_path: Path) -> None:
    """The C example, linked statically for aarch64."""
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64-static")
    emulator = emulator or shutil.which("qemu-aarch64")
    if compiler is None or emulator is None:
        pytest.skip("needs qemu-user and a C compiler for aarch64")
    made = stages(EXAMPLES / "digits" / "model.xml", CompileOptions(target="aarch64")).built
    made.write_object(tmp_path / "digits.o")
    (tmp_path / "digits.h").write_text(header_text(made))
    shutil.copy(EXAMPLES / "c" / "digits.c", tmp_path)
    command = [compiler, "-static", "-std=c99", "digits.c", "digits.o", "-pthread", "-o", "digits"]
    subprocess.run(command, cwd=tmp_path, check=True)
    image = EXAMPLES / "digits" / "seven.npy"
    ran = subprocess.run([emulator, "./digits", image], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout == "7\n", ran.stderr
