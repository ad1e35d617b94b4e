"""Libraries of Android: what they need of Bionic, sizes of pages, registers; results under an emulator, with musl."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import runtime
from aot.codegen.llvm.build import build
from aot.codegen.platforms import ANDROID
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.runtime.errors import PlatformError
from aot.runtime.loading.elf import ElfFile
from aot.runtime.loading.library import read_manifest
from tests.codegen.llvm.test_cross import DIGITS, emulated, linker
from tests.networks import NETWORKS
from tests.passes.check import values
from tests.programs import chain

API = 24
BIONIC = {  # level of the API that brought a function to 64-bit processors, by libc/libc.map.txt of Bionic
    **dict.fromkeys(("memcpy", "memmove", "memset", "free", "posix_memalign", "getauxval"), 21),
    **dict.fromkeys(("clock_gettime", "getpid", "syscall", "sigfillset"), 21),
    **dict.fromkeys(("sched_yield", "sched_getcpu", "sched_getaffinity", "sched_setaffinity"), 21),
    **dict.fromkeys(("pthread_create", "pthread_join", "pthread_sigmask"), 21),
    "aligned_alloc": 28,
}


def test_bionic_has_all_functions() -> None:
    assert all(BIONIC[name] <= API for name in ANDROID.functions)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["android-aarch64-v8", "android-x86-64-v2", "android-v8,v8.2"])
def test_structure(target: str, tmp_path: Path) -> None:
    """It needs libc.so alone, and may be mapped where pages have 16 KB."""
    stages(DIGITS, CompileOptions(target=target, level=None)).built.write_shared(tmp_path / "m.so", linker=linker())
    data = (tmp_path / "m.so").read_bytes()
    with (tmp_path / "m.so").open("rb") as stream:
        file = ElfFile(stream, "m.so")
        symbols, dynamic, names = file.dynamic_symbols(), file.section(".dynamic"), file.section(".dynstr")
    needed = [value for tag, value in struct.iter_unpack("<QQ", dynamic) if tag == 1]
    assert [names[at:].split(b"\0")[0] for at in needed] == [b"libc.so"]
    assert {s.name for s in symbols if not s.defined} <= set(ANDROID.functions)
    assert [s.name for s in symbols if s.defined] == [f"aot_query_{read_manifest(tmp_path / 'm.so').tag}"]
    at, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    rows = [struct.unpack_from("<IIQQQQQQ", data, at + 56 * i) for i in range(count)]
    kinds = [row[0] for row in rows]
    assert 6 not in kinds[kinds.index(1) :]  # the table of segments itself comes before those that are loaded
    assert {row[7] % (16 << 10) for row in rows if row[0] == 1} == {0}
    assert all(row[2] % row[7] == row[3] % row[7] for row in rows if row[0] == 1)
    with pytest.raises(PlatformError, match="is compiled for android, this system is linux"):
        runtime.load(tmp_path / "m.so")


def test_the_register_of_the_platform_is_left_alone() -> None:
    made = stages(NETWORKS["picture"](), CompileOptions(target="android-aarch64-v8"))
    assert "x19" in made.asm()
    assert "x18" not in made.asm()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed_types"])  # kernels are those of Linux
def test_results_are_those_of_linux(name: str, tmp_path: Path) -> None:
    """The object, linked with musl, whose functions have the same names; no Bionic runs here."""
    make = NETWORKS[name]
    inputs = values(make().parameters[0].out_port(0).type.static_shape)
    found = {
        t: emulated(stages(make(), CompileOptions(target=t)).built, tmp_path, inputs)
        for t in ("aarch64-v8.2", "android-v8.2")
    }
    assert len(set(found.values())) == 1


def test_short_names() -> None:
    assert Target.parse("android-v8.2") == Target.parse("android-aarch64-v8.2")
    assert build(chain(), Target.parse("android-v3")).manifest["triple"] == "x86_64-unknown-linux-android24"
