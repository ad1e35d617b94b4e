"""Builds a program: object code, manifest and weights, ready to be written as a library or loaded in memory.

Program -> functions -> module text -> object code -+-> write_shared: m.so
                                       manifest    -+-> write_object: m.o
                                       constants   -+-> jit.load: memory
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const, Kernel, Size, Var
from aot.codegen.ir.program import (
    Check,
    ConstantBlock,
    MemoryRegion,
    Program,
    SizeConstraint,
    StateVariable,
    Tensor,
    Version,
)
from aot.codegen.llvm.driver.module import Function as Emitted
from aot.codegen.llvm.driver.module import fixed_memory, module, pool_module, scratch_of
from aot.codegen.llvm.driver.shape_functions import depends, late_symbols_of
from aot.codegen.llvm.driver.size_code import size_text
from aot.codegen.llvm.emit.function_text import Function
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.linking.append import alignment, append, placeholder
from aot.codegen.llvm.linking.elf_writer import PAGE, Data, write_data_object
from aot.codegen.llvm.linking.image_writers import write_library
from aot.codegen.llvm.linking.linker import Linker, find_linker, link
from aot.codegen.llvm.linking.relocatable import add_sections
from aot.codegen.llvm.object.kernel_module import functions_text, has_vectors
from aot.codegen.llvm.object.optimize import assembly
from aot.codegen.llvm.object.parts import Parts
from aot.codegen.llvm.object.store import Store
from aot.codegen.llvm.object.workers import Workers
from aot.codegen.llvm.weights import Blocks, WeightsFile, hashed, parts_of
from aot.codegen.machines import MACHINES, Machine
from aot.codegen.nest.scheduled_kernel import facts_of
from aot.codegen.platforms import Platform, platform_of
from aot.codegen.target import Target
from aot.runtime import abi
from aot.runtime.atomic import naming, replacing
from aot.runtime.errors import InternalError, UnsupportedError
from aot.runtime.loading.seal import seal
from aot.runtime.loading.weights import WeightsInfo, beside, content_hash, padded
from aot.runtime.loading.weights import write as write_weights

Manifest = dict[str, object]
Progress = Callable[[str, int, int], None]
T = TypeVar("T")
_TAG_DIGITS = 12
_NO_TAG = "0"  # placeholder of the tag until all code is compiled
_TAGGED = (abi.QUERY_PREFIX, abi.MANIFEST_PREFIX, abi.WEIGHTS_PREFIX)  # symbols of the drivers, before the tag
# Bytes of weights in an object, which the linker of a program may put between the code and data that it addresses by
# offsets of 32 bits. In a library they come last, and may have any size.
_MOST_WEIGHTS = (2 << 30) - (64 << 20)


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled model. Equal programs, targets and levels give equal bytes, here and in every file written.

    `external`: the weights go into a file beside the library. `seconds`: those that its text and LLVM took, by kernel.
    `weights_file`: the weights in a file, if they are large and made at each access.
    """

    tag: str
    arch: str
    code: bytes = field(repr=False)
    manifest: Manifest = field(repr=False)
    constants: tuple[ConstantBlock, ...] = field(repr=False)
    constant_bytes: int
    external: WeightsInfo | None = None
    seconds: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]], repr=False, compare=False
    )
    weights_file: WeightsFile | None = field(default=None, repr=False, compare=False)

    @property
    def blocks(self) -> Blocks:
        """The weights: those that are made already, unless their file has become a library."""
        return self.constants if self.weights_file is None or self.weights_file.is_library else self.weights_file.blocks

    def write_shared(self, path: Path, *, linker: Linker | None = None) -> None:
        """Write the shared library, and external weights beside it, each atomically.

        PlatformError without a linker.
        """
        if not self.platform.needs_linker:
            sections = self.manifest_section(), seal_section(self.tag), self.sections()[-1]
            self._write_external(path)
            write_library(path, self.code, sections, self.platform, self.machine)
            return
        used_linker = linker if linker is not None else find_linker(self.arch, platform=self.platform)
        with naming(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=".aot-") as folder:
            folder_path = Path(folder)
            library = folder_path / f"model{self.platform.library}"
            link(self._objects(folder_path), library, used_linker, self.machine, self.platform)
            if self.external is None:
                parts = parts_of(self.blocks, max(1, self.constant_bytes))
                append(library, abi.WEIGHTS_SECTION, self._page, parts, self.weights_file)
            seal(library)
            self._write_external(path)
            library.replace(path)

    def write_object(self, path: Path) -> None:
        """Write one relocatable object for static linking, without a linker; its only visible symbol is the query.

        UnsupportedError for more weights than an object can hold.
        """
        check_object(self.constant_bytes if self.external is None else 0, self.platform)
        with replacing(path) as temporary, temporary.open("wb") as stream:
            add_sections(stream, self.code, self.sections())
        self._write_external(path)

    @property
    def machine(self) -> Machine:
        return MACHINES[self.arch]

    @property
    def platform(self) -> Platform:
        return platform_of(str(self.manifest["triple"]))

    @property
    def _page(self) -> int:
        """Bytes of the largest page that the library may be mapped in."""
        return self.platform.pages[self.machine.name]

    @property
    def uses_tiles(self) -> bool:
        """True if loading asks the system for tile registers."""
        return bool(self.manifest.get("tiles"))

    def manifest_bytes(self) -> bytes:
        return manifest_bytes(self.manifest)

    def _write_external(self, path: Path) -> None:
        if self.external is not None:
            write_weights(beside(path), self.external, parts_of(self.blocks, self.constant_bytes))

    def _objects(self, folder: Path) -> list[Path]:
        code, data = folder / "code.o", folder / "data.o"
        code.write_bytes(self.code)
        sections = seal_section(self.tag), placeholder(), *(reserved(s, self._page) for s in self.sections())
        with data.open("wb") as stream:
            write_data_object(stream, self.machine.architecture.elf, sections, self.machine.elf_flags)
        return [code, data]

    def sections(self) -> tuple[Data, ...]:
        """Sections besides the code: manifest and weights."""
        name = abi.WEIGHTS_PREFIX + self.tag
        if self.external is not None:
            size = padded(self.constant_bytes)
            external = Data(abi.RESERVED_SECTION, name, size, abi.WEIGHTS_PAGE, [], reserved=True)
            return self.manifest_section(), external
        return self.manifest_section(), weights_section(name, max(1, self.constant_bytes), self.blocks)

    def manifest_section(self, section: str = abi.MANIFEST_SECTION) -> Data:
        data = self.manifest_bytes()
        return Data(section, abi.MANIFEST_PREFIX + self.tag, len(data), 8, [(0, data)])


def weights_section(name: str, size: int, constants: tuple[ConstantBlock, ...], aliases: tuple[str, ...] = ()) -> Data:
    """Return the section of weights inside of a library or an object."""
    return Data(abi.WEIGHTS_SECTION, name, size, PAGE, _placed(constants), aliases=aliases)


def seal_section(tag: str) -> Data:
    """Return the section of the seal, which is written last."""
    return Data(abi.SEAL_SECTION, abi.SEAL_PREFIX + tag, abi.SEAL_BYTES, 8, [(0, bytes(abi.SEAL_BYTES))])


def check_object(size: int, platform: Platform) -> None:
    """Raise UnsupportedError for more bytes of weights than an object can hold, and for a system without objects."""
    if not platform.needs_linker:
        raise UnsupportedError(f"write: {platform.name} has libraries only, m{platform.library}, got an object to link")
    if size > _MOST_WEIGHTS:
        raise UnsupportedError(
            f"write: weights in an object have at most {_MOST_WEIGHTS} bytes, got {size}; make them external"
        )


def _placed(constants: tuple[ConstantBlock, ...]) -> Iterator[tuple[int, NDArray[np.generic]]]:
    """Yield the pieces of all blocks with their offsets."""
    for block in constants:
        at = block.offset
        for piece in block.pieces():
            yield at, piece
            at += piece.nbytes


def reserved(data: Data, page: int) -> Data:
    """Reserve pages for weights, which are written after linking; return other sections as they are."""
    if data.section != abi.WEIGHTS_SECTION:
        return data
    return replace(data, align=alignment(data.size, page), blocks=(), reserved=True)


def build(
    program: Program,
    target: Target,
    *,
    level: int | None = 1,
    options: Manifest | None = None,
    external: bool = False,
    progress: Progress = _silent,
    added: Manifest | None = None,
    store: Store | None = None,
    folder: Path | None = None,
    parts: Parts | None = None,
) -> Built:
    """Compile `program` for `target`; `level` None runs no LLVM passes.

    `options`: further options of the compiler, kept in the manifest. `external`: weights in their own file.
    `added`: entries of the manifest that change no hash, as texts about the model. `store`: has object code of kernels.
    `folder`: of the library, where large weights are kept once they are made.
    `parts`: kernels of the program that are being compiled already.
    `progress(stage, done, total)` is called for each module that is compiled.
    """
    with ExitStack() as stack:
        if parts is None:
            parts = Parts(stack.enter_context(Workers()), target, level, store, pool_module(target))
        functions = emit_functions(program, target, partial(parts.place, count=len(program.kernels)))
        constants = tuple(sorted(program.constants, key=lambda block: block.offset))
        _check_constants(program, constants)
        weights, weights_file = hashed(constants, program.constant_bytes, folder)
        used = target.using(parts.finish_texts())
        manifest = make_manifest(program, functions, used, {"level": level, **(options or {})})

        def sealed(layout: str) -> tuple[str, WeightsInfo, Manifest]:
            """Return the tag, the weights' description and the manifest; their sizes do not depend on `layout`."""
            info = WeightsInfo(program.constant_bytes, layout, weights)
            digest = content_hash(info)
            tag = f"{_identifier(program.name)}_{digest[:_TAG_DIGITS]}"
            manifest_json = manifest | {
                "tag": tag,
                "hash": digest,
                "external" if external else "embedded": info._asdict(),
            }
            return tag, info, manifest_json | (added or {}) | fixed_memory(program)

        drivers = module(program, functions, target)
        _, _, draft = sealed(hashlib.sha256().hexdigest())
        text = drivers.text(_NO_TAG, len(manifest_bytes(draft)))
        objects = parts.finish(text, partial(progress, "compile"))
        tag, info, sealed_manifest = sealed(_layout(drivers.text(_NO_TAG, 0) + objects.digest, constants, manifest))
        code = objects.joined({prefix + _NO_TAG: prefix + tag for prefix in _TAGGED})
    arch = target.machine.name
    return Built(
        tag,
        arch,
        code,
        sealed_manifest,
        constants,
        program.constant_bytes,
        info if external else None,
        objects.seconds,
        weights_file,
    )


def emit_functions(program: Program, target: Target, emit: Callable[[Kernel, bool], T]) -> dict[str, T]:
    """Return the result of `emit` for each kernel, by its name. Equal kernels share one.

    `emit` also gets whether all callers flush denormal numbers to zero.
    """
    emitted: dict[tuple[Kernel, bool], T] = {}
    functions: dict[str, T] = {}
    keeping = {call.kernel for call in program.calls if not call.flushes}  # denormal numbers
    for kernel in program.kernels:
        flushes = kernel.name not in keeping
        key = kernel.named(""), flushes and target.abilities.rounds_normal
        if key not in emitted:
            emitted[key] = emit(kernel, key[1])
        functions[kernel.name] = emitted[key]
    return functions


def functions_of(program: Program, target: Target) -> dict[str, Function]:
    """Return the emitted function of each kernel, by its name."""
    return emit_functions(program, target, lambda kernel, flushes: emit(kernel, target=target, flushes=flushes))


def kernels_text(program: Program, target: Target) -> str:
    """Return the LLVM IR of the kernels alone, for dumps."""
    return functions_text(list(dict.fromkeys(functions_of(program, target).values())))


def kernels_assembly(program: Program, target: Target, level: int | None = 1) -> str:
    """Return the assembly of the kernels alone, compiled as for the model."""
    functions = dict.fromkeys(functions_of(program, target).values())
    apart = [f for f in functions if has_vectors(f.text())]
    others = [f for f in functions if f not in apart]
    return "".join(assembly(functions_text(fs), target, n) for fs, n in ((apart, None), (others, level)) if fs)


def make_manifest(program: Program, functions: Mapping[str, Emitted], target: Target, options: Manifest) -> Manifest:
    """Return everything a loader must know; the keys are listed in `aot.runtime.abi`."""
    version = ".".join(map(str, llvm.llvm_version_info))
    late = depends(program)
    return {
        "manifest": abi.MANIFEST_VERSION,
        "abi": abi.ABI_VERSION,
        "name": program.name,
        "machine": target.machine.architecture.elf,
        "triple": target.triple,
        "features": list(target.isa_features),
        "symbols": [_symbol(s) for s in program.symbols],
        "late": [x.symbol.name for x in program.late],
        "capacities": [{"of": x.symbol.name, "initial": x.initial} for x in program.late if x.capacity is not None],
        "computed": program.words - len(program.stored) + len(program.computed),
        **({"cancel": len(program.stored)} if program.is_cancellable else {}),
        "rules": [{"one": size_text(r.one), "other": size_text(r.other), "text": r.text} for r in _rules(program)],
        "inputs": [_tensor(t, _align(program, MemoryRegion.INPUT, i), late) for i, t in enumerate(program.inputs)],
        "outputs": [_tensor(t, _align(program, MemoryRegion.OUTPUT, i), late) for i, t in enumerate(program.outputs)],
        "calls": [
            {"kernel": c.kernel, "layers": list(c.layers), "work": _dim(c.work), "traffic": _dim(c.traffic)}
            for c in program.calls
        ],
        **({"versions": [_version(v) for v in program.versions]} if program.versions else {}),
        "weights": program.constant_bytes,
        **({"tiles": True} if any(facts_of(k).tiles for k in program.kernels) else {}),
        **({"denormals": program.denormals} if program.denormals else {}),
        **({"in_floats": {why: list(layers) for why, layers in program.in_floats}} if program.in_floats else {}),
        "scratch": _dim(scratch_of(program, functions)),
        "variables": [_variable(v) for v in program.variables],
        "options": options,
        "toolchain": {"llvmlite": llvmlite.__version__, "llvm": version},
    }


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the manifest as it is stored in the file: ASCII JSON with sorted keys."""
    return json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode("ascii")


def _version(version: Version) -> dict[str, object]:
    return {"sizes": dict(version.sizes), "first": version.first, "end": version.end}


def _variable(v: StateVariable) -> dict[str, object]:
    entry: dict[str, object] = {"name": v.name, "dtype": v.dtype.value, "shape": list(v.shape)}
    entry |= {"flag": v.flag, "data": v.data}
    return entry if v.cache is None else entry | {"cache": v.cache._asdict()}


def _symbol(symbol: Var) -> dict[str, object]:
    high = symbol.extent - 1 if isinstance(symbol.extent, int) else None
    return {"name": symbol.name, "min": symbol.low, "max": high}


def _align(program: Program, region: MemoryRegion, index: int) -> int:
    """Return the alignment that the kernels assume of the address of a tensor."""
    kernels = {kernel.name: kernel for kernel in program.kernels}
    return max(
        (
            min(buffer.align, abi.ARENA_ALIGN)
            for call in program.calls
            for place, buffer in zip(call.args, kernels[call.kernel].buffers, strict=True)
            if place.region is region and place.index == index
        ),
        default=1,
    )


def _rules(program: Program) -> list[SizeConstraint]:
    """Return the rules of the input shapes, then the rules checked at run time."""
    return [*program.rules, *(c.rule for c in program.control if isinstance(c, Check))]


def _tensor(tensor: Tensor, align: int, late: Mapping[str, frozenset[str]]) -> dict[str, object]:
    return {
        "align": align,
        "name": tensor.name,
        "names": list(tensor.names),
        "dtype": tensor.dtype.value,
        "shape": [{"late": size_text(d)} if late_symbols_of(d, late) else _dim(d) for d in tensor.shape],
        **({"string": tensor.string} if tensor.string else {}),
        **({"default": tensor.default} if tensor.default is not None else {}),
    }


def _dim(size: Size) -> object:
    match size:
        case int():
            return size
        case Const(value):
            return int(value)
        case Var(name):
            entry = _symbol(size)
            return {"symbol": name, "min": entry["min"], "max": entry["max"]}
        case _:
            return {"expr": size_text(size)}


def _check_constants(program: Program, constants: tuple[ConstantBlock, ...]) -> None:
    end = 0
    for block in constants:
        if block.offset % abi.ARENA_ALIGN or block.offset < end:
            raise InternalError(f"{program.name}: constants lie apart at multiples of 64, got offset {block.offset}")
        end = block.offset + block.nbytes
    if end > program.constant_bytes:
        raise InternalError(f"{program.name}: constants end within {program.constant_bytes} bytes, got {end}")


def _layout(draft: str, constants: tuple[ConstantBlock, ...], manifest: Manifest) -> str:
    """Return the hash of everything but the values of the weights."""
    entries = ",".join(f"{b.offset}:{b.source.dtype.str}:{b.nbytes}" for b in constants)
    return hashlib.sha256(draft.encode() + manifest_bytes(manifest) + entries.encode()).hexdigest()


def _identifier(name: str) -> str:
    """Turn `name` into a part of a C symbol."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII)[:40].strip("_").lower() or "model"
