"""`aot run --sandbox`: right results, and libraries that do more than compute are ended, wherever their code runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import cli
from aot.compilation.driver import stages
from aot.options import CompileOptions
from codegen.llvm.object.link import Linker

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
MODEL, SEVEN = DIGITS / "model.xml", DIGITS / "seven.npy"
HEAD = """
#include <sys/syscall.h>
#include <fcntl.h>
long syscall(long, ...);
__attribute__((constructor)) static void act(void) {
"""
ACTS = {
    "opened a file": 'syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);',
    "opened a socket": "syscall(SYS_socket, 2, 1, 0);",
    "started a program": 'char *none[] = {0}; syscall(SYS_execve, "/bin/true", none, none);',
    "changed files": 'syscall(SYS_unlinkat, AT_FDCWD, "/nowhere", 0);',
    "not on the list": "syscall(SYS_fork);",
    "took more than": "for (;;) syscall(SYS_sched_yield);",
    "was ended by SIGSEGV": "*(volatile int *)8 = 1;",
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def hostile(folder: Path, act: str) -> Path:
    """Write a compiled model, with a valid seal, whose constructor does something."""
    source, made, library = folder / "act.c", folder / "act.o", folder / "evil.so"
    source.write_text(HEAD + act + "}\n")
    compiler, linker = shutil.which("cc"), shutil.which("ld")
    assert compiler is not None and linker is not None
    subprocess.run([compiler, "-O1", "-fPIC", "-c", str(source), "-o", str(made)], check=True)
    stages(MODEL, CompileOptions()).built.write_shared(library, linker=Linker(linker, before=(str(made),)))
    return library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sandbox") / "m.so"
    assert run("compile", MODEL, "-o", path).exit_code == 0
    return path


@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_those_outside(library: Path, tmp_path: Path, threads: int) -> None:
    for name, options in {"inside": ["--sandbox"], "outside": []}.items():
        done = run("run", library, SEVEN, "-o", tmp_path / f"{name}.npy", "--threads", threads, *options)
        assert done.exit_code == 0, done.output
    assert np.array_equal(np.load(tmp_path / "inside.npy"), np.load(tmp_path / "outside.npy"))


@pytest.mark.parametrize("what", ACTS)
def test_a_library_that_does_more_is_ended(tmp_path: Path, what: str) -> None:
    late = what == "took more than"
    done = run("run", hostile(tmp_path, ACTS[what]), SEVEN, "--sandbox", "--max-seconds", 2 if late else 60)
    assert what in done.output and done.exit_code == (6 if late else 4), done.output


def test_the_acts_are_real(tmp_path: Path) -> None:
    """Outside of a sandbox, the constructor does what it wants."""
    act = f'syscall(SYS_openat, AT_FDCWD, "{tmp_path}/was-here", O_CREAT | O_WRONLY, 0600);'
    path = hostile(tmp_path, act)
    assert "opened a file" in run("run", path, SEVEN, "--sandbox").output and not (tmp_path / "was-here").exists()
    assert run("run", path, SEVEN).exit_code == 0 and (tmp_path / "was-here").exists()


def test_errors_inside_are_told(library: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((1, 1, 9, 9), np.float32))
    done = run("run", library, tmp_path / "wrong.npy", "--sandbox")
    assert done.exit_code == 2 and "1,1,8,8" in done.output, done.output
    assert run("run", MODEL, SEVEN, "--sandbox").exit_code == 2
    assert run("run", library, SEVEN, "--max-seconds", 5).exit_code == 2
