"""Links objects into a shared library: with GNU ld, ld.lld, or a C compiler in front of one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.linking.elf_writer import Data, write_data_object
from aot.codegen.machines import Machine
from aot.codegen.platforms import LINUX, Platform
from aot.runtime.atomic import replacing
from aot.runtime.errors import MissingError, PlatformError
from aot.runtime.machine import machine_name


@dataclass(frozen=True, slots=True)
class Linker:
    """A program to link with, and its first arguments; a compiler driver takes the linker's options after -Wl."""

    path: str
    driver: bool = False
    before: tuple[str, ...] = ()

    def command(self, objects: Sequence[Path], output: Path, options: Sequence[str]) -> list[str]:
        linker_options = ["-nostdlib", "-Wl," + ",".join(options)] if self.driver else options
        return [self.path, *self.before, "-shared", "-o", str(output), *linker_options, *map(str, objects)]


def find_linker(arch: str, explicit: str | None = None, platform: Platform = LINUX) -> Linker:
    """Find a linker for the machine of that name: `explicit`, else the first in PATH, else ziglang's.

    MissingError if there is none.
    """
    names, package = platform.linkers, "binutils (or lld)"
    if machine_name() != arch:
        names, package = tuple(name.format(machine=arch) for name in platform.cross_linkers), "lld"
    for name in [explicit] if explicit is not None else names:
        path = shutil.which(name)
        if path is not None:
            return Linker(path, driver="ld" not in Path(path).name.split("-")[-1])
    if explicit is None and find_spec("ziglang") is not None:
        return Linker(sys.executable, before=("-P", "-m", "ziglang", "ld.lld"))
    tried = explicit if explicit is not None else ", ".join(names)
    error = MissingError(f"link: a linker for {arch} is needed, got none of {tried} in PATH")
    error.add_note(f"Debian, Ubuntu: apt install {package}; Fedora: dnf install {package}")
    error.add_note("or pip install 'aot[cross]', which brings one for every machine")
    error.add_note("or compile to memory, or for one target into an object file: neither needs a linker")
    raise error


def link(objects: Sequence[Path], output: Path, linker: Linker, machine: Machine, platform: Platform) -> None:
    """Link the shared library `output` atomically; PlatformError with the linker's message if it fails.

    The library needs only those functions of libc that it uses. It is linked against a stub of libc, so that it
    depends neither on the libc of this machine nor on its version, and cross-linking needs no libc of the target.
    """
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".aot-") as folder:
        ((name, called),) = platform.imports.items()
        functions = Data(".text", "libc_stub", 16, 16, [], called)
        stub, libc = Path(folder) / "libc.o", Path(folder) / name
        with stub.open("wb") as stream:
            write_data_object(stream, machine.architecture.elf, [functions], machine.elf_flags)
        _check(linker, _called(linker.command([stub], libc, ("-soname", libc.name))))
        with replacing(output) as path:
            _check(linker, _called(linker.command([*objects, libc], path, platform.link_options)))


def merge(objects: Sequence[Path], output: Path, linker: Linker) -> None:
    """Merge several relocatable objects into one."""
    with replacing(output) as path:
        options = ["-r", *(["-nostdlib"] if linker.driver else [])]
        command = [linker.path, *linker.before, *options, *map(str, objects), "-o", str(path)]
        _check(linker, _called(command))


def _called(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _check(linker: Linker, done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise PlatformError(f"link: {linker.path} failed: {done.stderr.strip() or done.returncode}")
