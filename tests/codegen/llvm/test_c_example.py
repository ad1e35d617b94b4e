"""The C program of examples/c reads a digit, with the network linked into it and loaded from a file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot import cli
from tests.compilers import compiler

EXAMPLES = Path(__file__).parents[3] / "examples"
MODEL, SEVEN = EXAMPLES / "digits" / "model.xml", EXAMPLES / "digits" / "seven.npy"


def compiled(folder: Path, output: str, *options: str) -> None:
    arguments = ["compile", str(MODEL), "-o", str(folder / output), "--header", str(folder / "digits.h"), *options]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("loaded", [False, True])
def test_c_program(tmp_path: Path, loaded: bool, external: bool) -> None:
    compiled(tmp_path, "digits.so" if loaded else "digits.o", *(["--weights", "external"] if external else []))
    shutil.copy(EXAMPLES / "c" / "digits.c", tmp_path)
    ways = ["-DUSE_DLOPEN", "-ldl"] if loaded else ["digits.o"]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    command = [*compiler("cc"), *flags, "digits.c", *ways, "-pthread", "-o", "digits"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    command = ["./digits", str(SEVEN), "./digits.so", *(["./digits.weights"] if external else [])]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert (ran.returncode, ran.stdout) == (0, "7\n"), ran.stderr
    assert subprocess.run(["./digits", "digits.c"], cwd=tmp_path, capture_output=True, check=False).returncode != 0
    if external:
        assert subprocess.run(command[:-1], cwd=tmp_path, capture_output=True, check=False).returncode == 2
        (tmp_path / "short").write_bytes((tmp_path / "digits.weights").read_bytes()[:-70_000])
        short = ["./digits", SEVEN, "./digits.so", "./short"]
        assert subprocess.run(short, cwd=tmp_path, capture_output=True, check=False).returncode == 4
