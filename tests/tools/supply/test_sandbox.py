"""`aot run --sandbox`: right results, and libraries that do more than compute are ended, wherever their code runs."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import platform
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from aot import cli
from aot.codegen.llvm.linking.linker import find_linker
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.loading.manifest import Dim, TensorInfo
from aot.tools.running.sandbox import _received as received
from tests.compilers import compiler

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples" / "digits"
MODEL, SEVEN = DIGITS / "model.xml", DIGITS / "seven.npy"
HEAD = """
#include <sys/syscall.h>
#include <fcntl.h>
#include <pthread.h>
#define IS(at, text) same(at, text, sizeof text - 1)
#define YES (*(volatile int *)8 = 1)
long syscall(long, ...);
static int same(const char *a, const char *b, int n) { while (n && *a++ == *b++) n--; return !n; }
static void *rest(void *none) { long time[] = {60, 0}; syscall(SYS_nanosleep, time, 0); return none; }
__attribute__((constructor)) static void act(int n, char **arguments, char **variables) {
"""
ACTS = {
    "opened a file": 'syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);',
    "opened a socket": "syscall(SYS_socket, 2, 1, 0);",
    "started a program": 'char *none[] = {0}; syscall(SYS_execve, "/bin/true", none, none);',
    "changed files": 'syscall(SYS_unlinkat, AT_FDCWD, "/nowhere", 0);',
    "asked about a file": 'static char st[512]; syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", st, 0);',
    "touched another process": "syscall(SYS_kill, 1, 0);",
    "started threads": "pthread_t t; for (int n = 0; n < 100; n++) pthread_create(&t, 0, rest, 0);",
    "not on the list": "syscall(SYS_fork);",
    "took more than": "for (;;) syscall(SYS_sched_yield);",
    "was ended by SIGSEGV": "*(volatile int *)8 = 1;",
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


@cache
def compiled() -> Compilation:
    return stages(MODEL, CompileOptions())


def hostile(folder: Path, act: str, head: str = "") -> Path:
    """Write a compiled model, with a valid seal, whose constructor does something."""
    source, made, library = folder / "act.c", folder / "act.o", folder / "evil.so"
    source.write_text(head + HEAD + act + "}\n")
    subprocess.run([*compiler("cc"), "-O1", "-fPIC", "-c", str(source), "-o", str(made)], check=True)
    linker = find_linker(platform.machine())
    compiled().built.write_shared(library, linker=replace(linker, before=(*linker.before, str(made))))
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


# Each is tried after another that is permitted, and ends with SIGSEGV where it had an effect.
EFFECTS = {
    "stat": 'if (!syscall(SYS_stat, "/etc/passwd", st)) YES;',
    "statx": 'if (!syscall(SYS_statx, AT_FDCWD, "/etc/passwd", 0, 0xfff, st)) YES;',
    "statfs": 'if (!syscall(SYS_statfs, "/etc", st)) YES;',
    "stat of an open file": 'if (!syscall(SYS_newfstatat, 0, "/etc/passwd", st, 0)) YES;',
    "access": 'if (!syscall(SYS_access, "/etc/passwd", 0)) YES;',
    "readlink": 'if (syscall(SYS_readlink, "/proc/self/exe", st, 512) > 0) YES;',
    "affinity of another": "if (!syscall(SYS_sched_setaffinity, OTHER, 8, &one)) YES;",
    "reading it": "if (syscall(SYS_sched_getaffinity, OTHER, 8, &one) > 0) YES;",
    "limits of another": "if (!syscall(SYS_prlimit64, OTHER, 7, 0, st)) YES;",
    "a priority": "if (!syscall(SYS_setpriority, 0, OTHER, 5)) YES;",
    "the environment": 'while (*variables) if (IS(*variables++, "AOT_SECRET")) YES;',
}
# Variables lie behind the arguments of the program.
STACK = 'for (char *at = arguments[0]; at < arguments[0] + 600; at++) if (IS(at, "hush-hush")) YES;'


@pytest.mark.parametrize("effect", EFFECTS)
def test_nothing_but_the_library_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effect: str, child: int
) -> None:
    monkeypatch.setenv("AOT_SECRET", "hush-hush")
    code = f"static char st[512]; unsigned long one = 1; syscall(SYS_fstat, 0, st); {EFFECTS[effect]}"
    done = run("run", hostile(tmp_path, code, f"#define OTHER {child}\n"), SEVEN, "--sandbox")
    assert "SIGSEGV" not in done.output and done.exit_code == (0 if effect == "the environment" else 4), done.output
    assert os.environ["AOT_SECRET"] == "hush-hush"


def test_variables_are_overwritten(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aot", "run", hostile(tmp_path, STACK), SEVEN, "--sandbox"]
    secret = {"AOT_SECRET": "hush-hush", **os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=secret, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def test_results_are_limited_together() -> None:
    infos = [TensorInfo(name, (), DType.F32, (Dim("n"),), 64) for name in "ab"]
    one = b'{"shape": [750000]}\n' + bytes(3_000_000)
    taken = received(io.BytesIO(one * 2), infos, 6_000_000)
    assert isinstance(taken, list) and [x.size for x in taken] == [750_000] * 2
    with pytest.raises(ValueError, match="with the results before it"):
        received(io.BytesIO(one * 2), infos, 5_999_999)


def test_a_library_where_nothing_may_be_run_is_in_the_sandbox_too(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied into memory before: the list applies to the copy."""
    facts = os.fstatvfs(0)
    monkeypatch.setattr(os, "fstatvfs", lambda d: types.SimpleNamespace(f_flag=facts.f_flag | os.ST_NOEXEC))
    assert run("run", library, SEVEN, "--sandbox").exit_code == 0
    done = run("run", hostile(tmp_path, ACTS["opened a socket"]), SEVEN, "--sandbox")
    assert "opened a socket" in done.output and done.exit_code == 4


def test_a_fork_may_open_files_under_pythons_lock(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12's fork opens a file under the lock: a filtered supervisor could not answer its own call."""
    fork, files = os.fork, ctypes.PyDLL(None)
    monkeypatch.setattr(os, "fork", lambda: files.close(files.open(b"/proc/self/stat", 0)) or fork())
    done = run("run", library, SEVEN, "--sandbox", "--max-seconds", 20)
    assert done.exit_code == 0, done.output


def test_a_system_that_cannot_ask_is_told(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(rules: object) -> None:
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr("pyseccomp.SyscallFilter.load", load)
    done = run("run", library, SEVEN, "--sandbox")
    assert done.exit_code == 5 and "--sandbox needs a system" in done.output, done.output


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
