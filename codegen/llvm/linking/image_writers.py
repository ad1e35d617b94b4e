"""Writes libraries without a linker, in the format of their system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aot.codegen.llvm.linking.elf_writer import Data
from aot.codegen.llvm.linking.macho_writer import MachImage
from aot.codegen.llvm.linking.pe_writer import PeImage
from aot.codegen.llvm.linking.wasm_writer import WasmModule
from aot.codegen.machines import Machine
from aot.codegen.platforms import Format, Platform
from aot.runtime.atomic import replacing
from aot.runtime.loading.seal import seal

_IMAGES: Mapping[Format, type[PeImage | MachImage | WasmModule]] = {
    Format.PE: PeImage,
    Format.MACH_O: MachImage,
    Format.WASM: WasmModule,
}


def write_library(path: Path, code: bytes, sections: Sequence[Data], platform: Platform, machine: Machine) -> None:
    """Write the library `path` atomically: an object, and `sections` that define symbols which it lacks; seal it.

    The weights are the last one of `sections`. UnsupportedError for more bytes than an image can have; InternalError
    for code that cannot be linked.
    """
    image = _IMAGES[platform.format](code, sections, platform, machine)
    with replacing(path) as temporary:
        with temporary.open("wb") as stream:
            image.write(stream)
        seal(temporary)
        image.sign(temporary)
