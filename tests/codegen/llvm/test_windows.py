"""Libraries of Windows: their structure, what is refused, and what they compute, run by wine where it is installed."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from typer.testing import CliRunner

import runtime
from aot import cli
from aot.codegen.llvm.build import build
from aot.codegen.llvm.header import header_text
from aot.codegen.llvm.object import optimize
from aot.codegen.machines import MACHINES
from aot.codegen.platforms import WINDOWS, platform_named
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.graph import Graph
from aot.options import CompileOptions
from aot.runtime.abi import MANIFEST_SECTION, QUERY_PREFIX, SEAL_SECTION, WEIGHTS_SECTION
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import CorruptError, PlatformError, UnsupportedError, UsageError
from aot.runtime.loading.foreign.pe import PeFile
from aot.runtime.loading.library import read_manifest, verify
from aot.runtime.machine import missing_features
from tests.codegen.llvm.damage import unharmed_of
from tests.codegen.llvm.test_cross import QUANTISED, RUNNER, packed
from tests.compilers import compiler
from tests.dynamic import loops
from tests.frontends.gguf.networks import Network
from tests.lowering.numbers.short_networks import CASES as SHORT
from tests.lowering.quantized import data
from tests.networks import NETWORKS, functions
from tests.passes.check import graph_of, values
from tests.programs import chain

EXAMPLES = Path(__file__).parents[3] / "examples"
DIGITS = EXAMPLES / "digits" / "model.xml"
LEVEL = "x86-64-v3"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("windows") / "m.dll"
    build(chain(), Target.parse(f"windows-{LEVEL}")).write_shared(path)
    return path


def text_at(file: bytes, address: int) -> str:
    """The text at an address in memory, of a file whose sections are listed at 0x148."""
    for at in range(0x148, 0x148 + 40 * struct.unpack_from("<H", file, 0x46)[0], 40):
        _, size, begin, _, place = struct.unpack_from("<8s4I", file, at)
        if begin <= address < begin + size:
            start = place + address - begin
            return file[start : file.index(b"\0", start)].decode()
    raise AssertionError(f"no section at {address}")


def words_at(file: bytes, address: int, form: str) -> tuple[int, ...]:
    offset = file.index(b".rdata\0\0")
    begin, _, place = struct.unpack_from("<3I", file, offset + 12)
    return struct.unpack_from(form, file, place + address - begin)


def test_it_needs_two_libraries_and_exports_one_function(library: Path) -> None:
    file = library.read_bytes()
    exports, _, imports, size = struct.unpack_from("<4I", file, 0x44 + 20 + 112)
    found: dict[str, set[str]] = {}
    for at in range(imports, imports + size - 20, 20):
        lookup, _, _, name, _ = words_at(file, at, "<5I")
        names = found[text_at(file, name)] = set[str]()
        while (entry := words_at(file, lookup + 8 * len(names), "<Q")[0]) != 0:
            names.add(text_at(file, entry + 2))
    assert found.keys() == WINDOWS.imports.keys()
    assert all(names <= set(WINDOWS.imports[name]) for name, names in found.items())
    count, _, _, at_names = words_at(file, exports + 20, "<4I")
    assert (count, text_at(file, words_at(file, at_names, "<I")[0])) == (1, QUERY_PREFIX + read_manifest(library).tag)


def test_equal_bytes_and_no_time(library: Path, tmp_path: Path) -> None:
    build(chain(), Target.parse(f"windows-{LEVEL}")).write_shared(tmp_path / "other.dll")
    assert library.read_bytes() == (tmp_path / "other.dll").read_bytes()
    assert struct.unpack_from("<I", library.read_bytes(), 0x44 + 4) == (0,)  # the time in the header


def test_sections(library: Path) -> None:
    with library.open("rb") as stream:
        file = PeFile(stream, "m.dll")
        weights = np.frombuffer(file.section(WEIGHTS_SECTION), np.float32)
        names = [section.name for section in file.sections]
    assert (file.machine, weights[16]) == (62, 2)
    assert names == [".text", ".rdata", ".data", ".reloc", MANIFEST_SECTION, SEAL_SECTION, WEIGHTS_SECTION]
    assert verify(library).json["triple"] == "x86_64-pc-windows-msvc"


def test_short_names_and_several_levels(tmp_path: Path) -> None:
    assert Target.parse("windows-v3") == Target.parse("windows-x86-64-v3")
    made = stages(DIGITS, CompileOptions(target="windows-x86-64-v2,v3", level=None)).built
    made.write_shared(tmp_path / "m.dll")
    assert [level["target"] for level in verify(tmp_path / "m.dll").json["levels"]] == [  # type: ignore[union-attr]
        "windows-x86-64-v2",
        "windows-x86-64-v3",
    ]


def test_unsupported_uses_are_refused(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = f"windows-{LEVEL}"
    with pytest.raises(PlatformError, match="is compiled for windows, this system is linux; compile it for linux"):
        runtime.load(library)
    with pytest.raises(PlatformError, match="runs code for this machine"):
        in_memory(build(chain(), Target.parse(target)))
    with pytest.raises(UnsupportedError, match="windows has libraries only"):
        build(chain(), Target.parse(target)).write_object(tmp_path / "m.o")
    with pytest.raises(
        UnsupportedError, match="external weights are supported for Linux, Android and WebAssembly alone"
    ):
        stages(DIGITS, CompileOptions(target=target, external_weights=True))
    with pytest.raises(UsageError, match="windows-x86-64-v4-bf16"):
        Target.parse("windows-x86-64-v4-amx")  # of tile registers only Windows 11 can be asked
    monkeypatch.setitem(sys.modules, "aot.runtime.loading.foreign.pe", None)  # as where the runtime alone is installed
    with pytest.raises(PlatformError, match="is a file of Windows, this system is another one"):
        runtime.load(library)
    monkeypatch.undo()
    for name in ("m.so", "m.o", "m"):
        result = CliRunner().invoke(cli.app, ["compile", str(DIGITS), "--target", target, "-o", str(tmp_path / name)])
        assert (result.exit_code, "a library for windows must be named m.dll" in result.output) == (2, True)


def test_a_signature_of_windows_keeps_the_digest(library: Path, tmp_path: Path) -> None:
    """It changes a checksum and a place in the table of directories, and adds certificates behind all sections."""
    signed = bytearray(library.read_bytes())
    end = len(signed)
    struct.pack_into("<I", signed, 0x44 + 20 + 64, 12345)
    struct.pack_into("<II", signed, 0x44 + 20 + 112 + 8 * 4, end, 1000)
    path = tmp_path / "signed.dll"
    path.write_bytes(bytes(signed) + bytes(1000))
    assert verify(path).tag == read_manifest(library).tag
    signed[end // 2] ^= 1
    for damaged in (bytes(signed), library.read_bytes() + bytes(1000)):  # certificates that nothing refers to
        path.write_bytes(damaged)
        with pytest.raises(CorruptError):
            verify(path)


@pytest.mark.parametrize("target", ["windows-v3", "macos-v8"])
def test_commands_that_describe_and_sign(target: str, tmp_path: Path) -> None:
    """A library of another system is like one of this."""
    library, key, public = tmp_path / f"m{platform_named(target).library}", tmp_path / "key.pem", tmp_path / "key.pub"
    private = Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    for line in (
        f"compile {DIGITS} -o {library} --target {target} -q",
        f"info {library}",
        f"sign {library} {key}",
        f"verify {library} {public}",
        f"sbom {library} --model {DIGITS} -o {tmp_path / 'm.cdx.json'}",
        f"provenance {library} --model {DIGITS} -o {tmp_path / 'm.intoto.json'}",
        f"provenance {library} --model {DIGITS} --check {tmp_path / 'm.intoto.json'}",
    ):
        result = CliRunner().invoke(cli.app, line.split())
        assert result.exit_code == 0, f"{line}: {result.output}"
    assert library.name in (tmp_path / "m.cdx.json").read_text()
    measured = CliRunner().invoke(cli.app, ["report", str(library), "-o", str(tmp_path / "m.html")])
    assert (measured.exit_code, "this system is linux" in measured.output) == (5, True)
    damaged = bytearray(library.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    library.write_bytes(damaged)
    assert CliRunner().invoke(cli.app, ["verify", str(library), str(public)]).exit_code == 4


def test_damaged_files(library: Path, tmp_path: Path) -> None:
    assert unharmed_of(library, tmp_path / "m.dll") < 50


# ---- results, by wine


def program(folder: Path, source: Path, compiler_name: str = "x86_64-w64-mingw32-gcc", *options: str) -> Path:
    """Compile a program for Windows, in the folder of its headers, with the syntax of Microsoft's compiler."""
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument"]
    made = folder / "windows.exe"
    command = [
        *compiler(compiler_name),
        "-fms-extensions",
        *warnings,
        f"-I{folder}",
        *options,
        str(source),
        "-o",
        str(made),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="session")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program for Windows in its folder."""
    found = shutil.which("wine")
    if found is None:
        pytest.skip("needs wine")
    prefix = tmp_path_factory.mktemp("wine")
    environment = {**os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}

    def started(place: Path, made: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [found, str(made), *arguments]
        return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)

    return started


@pytest.fixture(scope="session")
def run(
    tmp_path_factory: pytest.TempPathFactory, wine: Callable[..., subprocess.CompletedProcess[str]]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `network.c` with the given arguments in a folder."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "network.h").write_text(header_text(build(chain(), Target.parse(f"windows-{LEVEL}"))))
    made = program(folder, RUNNER)

    def started(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return wine(place, made, *arguments)

    return started


def needs_level() -> None:
    if missing_features(MACHINES["x86_64"].architecture.features_of(LEVEL)):
        pytest.skip(f"needs a processor of {LEVEL}")


def short(name: str) -> tuple[Callable[[], Graph], Sequence[Array]]:
    make, shape = SHORT[name]
    return lambda: graph_of(make, shape), values(shape)


def network(name: str) -> tuple[Callable[[], Graph], Sequence[Array]]:
    made = NETWORKS[name]
    shape = made().parameters[0].out_port(0).type.static_shape
    return made, values(shape)


def quantized(name: str) -> tuple[Callable[[], Graph], Sequence[Array]]:
    make, shape = QUANTISED[name]
    return lambda: graph_of(make, shape), [data(*shape)]


LOOPS = {name: loops.NETWORKS[name] for name in ("shapes_by_branch", "growing_by_data")}
# One network of each kind: kernels are those of Linux, and what calls them differs by kind. The tests below have a
# picture and a text in f32.
MODELS: dict[str, tuple[Callable[[], Graph], Sequence[Array]]] = {
    "mixed_types": network("mixed_types"),
    "functions": (functions, values((5, 19))),
    **{f"short {name}": short(name) for name in ("attention", "dynamic")},
    "int8 convolution": quantized("convolution"),
    **{f"loop {name}": (one.make, one.inputs[0]) for name, one in LOOPS.items()},
}
PRECISION = {"short attention": "bf16"}  # of others: f32


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_linux(
    name: str, run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Bytes of all outputs of three calls of one request, with 1, 2 and 5 threads."""
    needs_level()
    (make, inputs), precision = MODELS[name], PRECISION.get(name, "f32")
    here = in_memory(stages(make(), CompileOptions(target=LEVEL, precision=precision)).built)
    request = here.create_infer_request()
    expected = b"".join(y.tobytes() for _ in range(3) for y in request.infer(list(inputs)).to_tuple())
    made = stages(make(), CompileOptions(target=f"windows-{LEVEL}", precision=precision)).built
    made.write_shared(tmp_path / "m.dll")
    (tmp_path / "in").write_bytes(packed(inputs))
    ran = run(tmp_path, "m.dll", QUERY_PREFIX + made.tag, "in", "out", "1", "2", "5")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out").read_bytes() == 3 * expected


@pytest.mark.slow
def test_the_processor_is_asked_for_its_level(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    image = np.load(DIGITS.parent / "seven.npy")
    made = stages(DIGITS, CompileOptions(target="windows-x86-64-v2,v3")).built
    made.write_shared(tmp_path / "m.dll")
    (tmp_path / "in").write_bytes(packed([image]))
    ran = run(tmp_path, "m.dll", QUERY_PREFIX + made.tag, "in", "out", "2")
    assert ran.returncode == 0, ran.stderr
    (expected,) = in_memory(stages(DIGITS, CompileOptions(target="x86-64-v2,v3")).built)(image).to_tuple()
    assert (tmp_path / "out").read_bytes() == 3 * expected.tobytes()


@pytest.mark.slow
def test_the_program_of_the_page_reads_the_digit(
    wine: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """`docs/use/deploy/windows.md` shows all of it, and how it is made."""
    target = ["--target", f"windows-{LEVEL}", "-q"]
    for header in ("digits.h", "digits.hpp"):
        arguments = [str(DIGITS), "-o", str(tmp_path / "digits.dll"), "--header", str(tmp_path / header), *target]
        result = CliRunner().invoke(cli.app, ["compile", *arguments])
        assert result.exit_code == 0, result.output
    ran = wine(tmp_path, program(tmp_path, EXAMPLES / "c" / "windows.c"), str(DIGITS.parent / "seven.npy"))
    assert (ran.returncode, ran.stdout.strip()) == (0, "7"), ran.stderr
    program(tmp_path, EXAMPLES / "cpp" / "digits.cpp", "x86_64-w64-mingw32-g++", "-std=c++17", "-DUSE_DLOPEN", "-c")


DLFCN = """
#include <windows.h>
enum { RTLD_NOW, RTLD_LOCAL };
#define dlopen(path, flags) ((void)(flags), (void *)LoadLibraryA(path))
#define dlsym(library, name) ((void *)GetProcAddress((HMODULE)(library), name))
"""


@pytest.mark.slow
def test_a_language_model_draws_the_tokens_of_linux(
    wine: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop inside of the library, with two threads: `examples/c/story.c`, for which Windows loads the library.

    The level has no fused multiply-adds, so that LLVM's least effort gives the same bits.
    """
    story = Network("llama", "Q4_0").write(tmp_path / "story.gguf")
    (tmp_path / "dlfcn.h").write_text(DLFCN)
    monkeypatch.setattr(optimize, "EFFORT", 0)
    for target, name in (("x86-64-v2", "story.so"), ("windows-x86-64-v2", "story.dll")):
        given = [
            str(story),
            "-o",
            str(tmp_path / name),
            "--header",
            str(tmp_path / "story.h"),
            "--target",
            target,
            "-q",
        ]
        result = CliRunner().invoke(cli.app, ["compile", *given])
        assert result.exit_code == 0, result.output
    made = program(tmp_path, EXAMPLES / "c" / "story.c")
    ids = [5, 1, 40, 7, 7, 63, 2]
    for how in (runtime.Sampling(), runtime.Sampling(0.8, seed=3)):
        wanted = runtime.Generator(runtime.load(tmp_path / "story.so")).generate(ids, 40, how)
        ran = wine(tmp_path, made, "story.dll", "40", str(how.temperature), str(how.seed), *map(str, ids))
        assert (ran.returncode, list(map(int, ran.stdout.split()))) == (0, wanted), ran.stderr
