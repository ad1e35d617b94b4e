"""Writers of libraries without a linker, by format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aot.codegen.llvm.object import macho_writer, pe_writer
from aot.codegen.llvm.object.elf_writer import Data
from aot.codegen.machines import Machine
from aot.codegen.platforms import Format, Platform

_WRITERS: Mapping[Format, Callable[[Path, bytes, Sequence[Data], Platform, Machine], None]] = {
    Format.PE: pe_writer.write_library,
    Format.MACH_O: macho_writer.write_library,
}


def write_library(path: Path, code: bytes, sections: Sequence[Data], platform: Platform, machine: Machine) -> None:
    """Write the library `path` atomically: an object, and `sections` that define symbols which it lacks; seal it."""
    _WRITERS[platform.format](path, code, sections, platform, machine)
