"""Libraries of macOS: their structure, their signature, damaged ones; results by a loader of ours under an emulator."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.llvm.build import build
from aot.codegen.llvm.header import header_text
from aot.codegen.platforms import MACOS
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.runtime.abi import MANIFEST_SECTION, QUERY_PREFIX, SEAL_SECTION, WEIGHTS_SECTION
from aot.runtime.errors import CorruptError, PlatformError, UnsupportedError, UsageError
from aot.runtime.loading.foreign.macho import HEADER, SIGNATURE, MachFile
from aot.runtime.loading.library import read_manifest, verify
from tests.codegen.llvm.damage import unharmed_of
from tests.codegen.llvm.test_cross import RUNNER, emulated, one_of
from tests.compilers import compiler
from tests.networks import NETWORKS
from tests.passes.check import values
from tests.programs import chain

LOADER = Path(__file__).parents[1] / "macho.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("macos") / "m.dylib"
    build(chain(), Target.parse("macos-v8")).write_shared(path)
    return path


def commands(file: bytes | bytearray) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    at = HEADER.size
    for _ in range(struct.unpack_from("<I", file, 16)[0]):
        kind, size = struct.unpack_from("<2I", file, at)
        found.setdefault(kind, []).append(bytes(file[at : at + size]))
        at += size
    return found


def test_structure(library: Path, tmp_path: Path) -> None:
    with library.open("rb") as stream:
        file = MachFile(stream, "m.dylib")
        weights = np.frombuffer(file.section(WEIGHTS_SECTION), np.float32)
    names = [section.name for section in file.sections]
    assert (file.machine, weights[16]) == (183, 2)
    wanted = ["__text", "__const", "__got", "__data", MANIFEST_SECTION, SEAL_SECTION, WEIGHTS_SECTION]
    assert names == wanted
    data = library.read_bytes()
    (needed,) = commands(data)[0xC]
    assert needed[24:].rstrip(b"\0") == b"/usr/lib/libSystem.B.dylib"
    _, _, symbols, count, names_at, names_size = struct.unpack("<6I", commands(data)[2][0])
    texts = data[names_at : names_at + names_size]
    rows = [struct.unpack_from("<IBBHQ", data, symbols + 16 * i) for i in range(count)]
    found = {texts[row[0] :].split(b"\0")[0].decode()[1:]: row[1] for row in rows}
    assert [n for n, kind in found.items() if kind == 0x0F] == [QUERY_PREFIX + read_manifest(library).tag]
    assert {n for n, kind in found.items() if kind == 0x01} <= set(MACOS.functions)
    build(chain(), Target.parse("macos-aarch64-v8")).write_shared(tmp_path / "other.dylib")
    assert (tmp_path / "other.dylib").read_bytes() == data


def test_the_signature_has_the_hash_of_each_page(library: Path) -> None:
    data = library.read_bytes()
    at, size = struct.unpack_from("<2I", commands(data)[0x1D][0], 8)
    assert at + size == len(data)
    assert struct.unpack_from(">5I", data, at)[:3:2] == (0xFADE0CC0, 1)
    _, _, _, _, hashes, _, _, count, limit = struct.unpack_from(">9I", data, at + 20)
    assert limit == at
    for i in range(count):
        place = at + 20 + hashes + 32 * i
        assert data[place : place + 32] == hashlib.sha256(data[4096 * i : min(4096 * (i + 1), at)]).digest()


def test_signing_anew_keeps_the_digest(library: Path, tmp_path: Path) -> None:
    data = bytearray(library.read_bytes())
    at, size = struct.unpack_from("<2I", commands(data)[0x1D][0], 8)
    command = data.index(struct.pack("<4I", 0x1D, 16, at, size))
    struct.pack_into("<I", data, command + 12, size + 5000)
    (tmp_path / "m.dylib").write_bytes(data[:at] + bytes(size + 5000))
    verify(tmp_path / "m.dylib")
    data[at // 2] ^= 1
    (tmp_path / "m.dylib").write_bytes(data)
    with pytest.raises(CorruptError):
        verify(tmp_path / "m.dylib")


def test_unsupported_uses_are_refused(library: Path, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="is compiled for macos, this system is linux"):
        runtime.load(library)
    with library.open("rb") as stream, pytest.raises(PlatformError, match="is compiled for macos"):
        runtime.import_model(stream)
    with pytest.raises(UnsupportedError, match="macos has libraries only"):
        build(chain(), Target.parse("macos-v8")).write_object(tmp_path / "m.o")
    with pytest.raises(UsageError, match="several targets"):
        stages(NETWORKS["text"](), CompileOptions(target="macos-v8,v8.2"))


def test_damaged_files(library: Path, tmp_path: Path) -> None:
    assert unharmed_of(library, tmp_path / "m.dylib") < 60


def test_hostile_files(library: Path, tmp_path: Path) -> None:
    """Load commands are few, and what the digest leaves out does not overlap."""
    whole, path = library.read_bytes(), tmp_path / "m.dylib"
    *head, count, size, flags, zero = HEADER.unpack_from(whole)
    at, places = HEADER.size, list[int]()
    for _ in range(count):
        kind, length = struct.unpack_from("<2I", whole, at)
        places += [at] if kind == SIGNATURE else []
        at += length
    (signature,) = places
    start = struct.unpack_from("<I", whole, signature + 8)[0]
    for place, fields, rule in (
        (0, HEADER.pack(*head, count, 1 << 20, flags, zero), "load commands of 1048576 bytes"),
        (0, HEADER.pack(*head, 1000, size, flags, zero), "1000 load commands"),
        (signature + 8, struct.pack("<I", start // 2), "overlap"),
        (signature + 8, struct.pack("<I", 0xFFFFFFFF), "behind its end"),
    ):
        path.write_bytes(whole[:place] + fields + whole[place + len(fields) :])
        with pytest.raises(CorruptError, match=rule):
            verify(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["picture", "mixed_types"])  # kernels are those of Linux
def test_results_are_those_of_linux(name: str, tmp_path: Path) -> None:
    """The file as it is, loaded by `macho.c` on Linux with that system's functions: macOS itself has not run it."""
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if emulator is None:
        pytest.skip("needs qemu-user")
    make = NETWORKS[name]
    inputs = values(make().parameters[0].out_port(0).type.static_shape)
    expected = emulated(stages(make(), CompileOptions(target="aarch64-v8.2")).built, tmp_path, inputs)
    made = stages(make(), CompileOptions(target="macos-v8.2")).built
    made.write_shared(tmp_path / "m.dylib")
    (tmp_path / "network.h").write_text(header_text(made))
    options = ["-static", "-Wall", "-Wextra", "-I.", f"-DQUERY={QUERY_PREFIX}{made.tag}", '-DLIBRARY="m.dylib"']
    command = [*compiler("aarch64-linux-gnu-gcc"), *options, str(RUNNER), str(LOADER), "-pthread", "-o", "network"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(
        [emulator, "-cpu", "max", "./network", "in", "out", "3"], cwd=tmp_path, capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert one_of(3, (tmp_path / "out").read_bytes()) == expected
