"""Compiled networks in programs: CMake, pkg-config, Rust, Go, C#, images of containers without Python, musl."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aot.codegen.llvm.header import header_text
from aot.compilation.driver import stages
from aot.options import CompileOptions
from tests.compilers import compiler

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
MODEL, SEVEN = EXAMPLES / "digits" / "model.xml", EXAMPLES / "digits" / "seven.npy"
GLIBC = [Path("/lib64/ld-linux-x86-64.so.2"), Path("/lib/x86_64-linux-gnu/libc.so.6")]
MUSL = Path("/lib/ld-musl-x86_64.so.1")

pytestmark = pytest.mark.slow


def need(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}, which only these examples do")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def run_alone(root: Path, *command: str) -> str:
    """Run a program that sees no files but those of `root`."""
    if os.getuid():
        pytest.skip("needs root for chroot, as containers do")
    return run("chroot", root, *command, cwd=root)


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the network as an object, a library and a header, the C program and the image."""
    folder = tmp_path_factory.mktemp("digits")
    built = stages(MODEL, CompileOptions(target="x86-64-v3")).built
    built.write_object(folder / "digits.o")
    built.write_shared(folder / "digits.so")
    (folder / "digits.h").write_text(header_text(built, "digits"))
    shutil.copy(EXAMPLES / "c" / "digits.c", folder)
    shutil.copy(SEVEN, folder)
    return folder


def test_cmake_builds_the_example_in_c(tmp_path: Path) -> None:
    need("cmake", "cc")
    command = tmp_path / "aot"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m aot "$@"\n')
    command.chmod(0o755)
    run("cmake", "-B", tmp_path / "build", f"-DAOT={command}", cwd=EXAMPLES / "c", PYTHONPATH=str(ROOT))
    run("cmake", "--build", tmp_path / "build", cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert run(tmp_path / "build" / "digits", SEVEN, cwd=tmp_path) == "7\n"


def test_pkg_config(digits: Path, tmp_path: Path) -> None:
    need("pkg-config")
    for name, folder in (("digits.so", "lib"), ("digits.h", "include")):
        (tmp_path / folder).mkdir()
        shutil.copy(digits / name, tmp_path / folder)
    text = (EXAMPLES / "c" / "digits.pc.in").read_text().replace("@prefix@", str(tmp_path))
    (tmp_path / "digits.pc").write_text(text)
    flags = run("pkg-config", "--cflags", "--libs", "digits", cwd=tmp_path, PKG_CONFIG_PATH=str(tmp_path)).split()
    run(*compiler("cc"), digits / "digits.c", *flags, "-o", "digits", cwd=tmp_path)
    assert run(tmp_path / "digits", SEVEN, cwd=tmp_path) == "7\n"


def test_cargo_builds_the_example_in_rust(digits: Path, tmp_path: Path) -> None:
    need("cargo")
    shutil.copytree(EXAMPLES / "rust", tmp_path / "rust")
    shutil.copy(digits / "digits.h", tmp_path / "rust")
    built = {"CARGO_TARGET_DIR": str(tmp_path / "built"), "RUSTFLAGS": "-D warnings"}
    run("cargo", "build", "--offline", "--quiet", cwd=tmp_path / "rust", **built)
    program = tmp_path / "built" / "debug" / "digits"
    assert run(program, SEVEN, digits / "digits.so", cwd=tmp_path) == "7\n"
    for image, library, code in ((program, digits / "digits.so", 4), (SEVEN, SEVEN, 5)):
        assert subprocess.run([program, image, library], capture_output=True, check=False).returncode == code


def test_go_builds_the_example(digits: Path, tmp_path: Path) -> None:
    need("go", "cc")
    shutil.copytree(EXAMPLES / "go", tmp_path / "go")
    for name in ("digits.o", "digits.h"):
        shutil.copy(digits / name, tmp_path / "go")
    built = {"GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    run("go", "build", "-o", "digits", ".", cwd=tmp_path / "go", **built)
    assert run(tmp_path / "go" / "digits", SEVEN, cwd=tmp_path) == "7\n"


# Mono lacks this class, which .NET has since version 3.
LIBRARIES_OF_MONO = """
namespace System.Runtime.InteropServices {
    static class NativeLibrary {
        [DllImport("libdl.so.2", EntryPoint = "dlopen")] static extern IntPtr Open(string path, int flags);
        [DllImport("libdl.so.2", EntryPoint = "dlsym")] public static extern IntPtr GetExport(IntPtr at, string name);
        public static IntPtr Load(string path) { return Open(path, 2); }
    }
}
"""


def test_mono_builds_the_example_in_csharp(digits: Path, tmp_path: Path) -> None:
    need("mcs", "mono")
    (tmp_path / "libraries.cs").write_text(LIBRARIES_OF_MONO)
    run("mcs", "-out:digits.exe", EXAMPLES / "csharp" / "Program.cs", "libraries.cs", cwd=tmp_path)
    assert run("mono", tmp_path / "digits.exe", SEVEN, digits / "digits.so", cwd=digits) == "7\n"


@pytest.mark.parametrize(("target", "most"), [("linked", 1_200_000), ("loaded", 3_000_000)])
def test_containers_hold_all_that_the_program_needs(digits: Path, tmp_path: Path, target: str, most: int) -> None:
    """The file system that the Dockerfile describes, made by hand: it needs no daemon."""
    need("cc")
    build, root = tmp_path / "build", tmp_path / "root"
    shutil.copytree(digits, build)
    root.mkdir()
    before, after = re.split(rf"^FROM .* AS {target}$", (EXAMPLES / "docker" / "Dockerfile").read_text(), flags=re.M)
    for command in re.findall(r"^RUN (cc .*)$", before, re.M):
        run("sh", "-c", command, cwd=build)
    stage = after.split("\nFROM ")[0]
    for names, place in re.findall(r"^COPY (?:--from=build )?(.*) (\S+)$", stage, re.M):
        for name in names.split():
            shutil.copy(build / Path(name).name, root / place.lstrip("/"))
    if target == "loaded":  # what the base image has
        for path in GLIBC:
            (root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.relative_to("/"))
    [entry] = re.findall(r"^ENTRYPOINT \[(.*)\]$", stage, re.M)
    assert run_alone(root, *re.findall('"([^"]*)"', entry)) == "7\n"
    assert sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) < most


@pytest.mark.parametrize("loaded", [False, True])
def test_a_library_runs_with_musl(digits: Path, tmp_path: Path, loaded: bool) -> None:
    """Alpine's libc: the library is loaded by it, or the object linked with it; there is no glibc."""
    need("musl-gcc")
    ways = ["-DUSE_DLOPEN"] if loaded else ["-static", digits / "digits.o"]
    run("musl-gcc", "-O2", digits / "digits.c", *ways, "-o", tmp_path / "digits", cwd=tmp_path)
    shutil.copy(SEVEN, tmp_path)
    if loaded:
        (tmp_path / "lib").mkdir()
        shutil.copy(MUSL, tmp_path / "lib")
        shutil.copy(digits / "digits.so", tmp_path)
    assert run_alone(tmp_path, "/digits", "/seven.npy", "/digits.so") == "7\n"
