"""One library for several instruction sets: a whole model for each level, and a query that asks the processor.

    aot_query_<tag> -> features      -> aot_query_<tag of level>     hidden; the highest level that runs here
                                        | kernels, pool, manifest of the level
                                        | weights     of all levels: packed ones differ with the length of vectors

Weights that are equal in several levels are stored once, see `aot.lowering.program.constant_places`.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import llvmlite.binding as llvm

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.program import ConstantBlock
from aot.codegen.llvm.build import (
    Built,
    Manifest,
    check_object,
    manifest_bytes,
    reserved,
    seal_section,
    weights_section,
)
from aot.codegen.llvm.linking.append import append, placeholder
from aot.codegen.llvm.linking.elf_writer import Data, write_data_object
from aot.codegen.llvm.linking.image_writers import write_library
from aot.codegen.llvm.linking.linker import Linker, find_linker, link, merge
from aot.codegen.llvm.linking.relocatable import add_sections, hidden
from aot.codegen.llvm.object.combine import combine
from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.llvm.pool import template_text
from aot.codegen.llvm.weights import parts_of, weights_hash
from aot.codegen.machines import MACHINES, Dispatch, Machine
from aot.codegen.platforms import Platform, platform_named
from aot.codegen.target import Target
from aot.runtime import abi
from aot.runtime.atomic import naming, replacing
from aot.runtime.errors import InternalError, PlatformError, UnsupportedError, UsageError
from aot.runtime.loading.seal import seal
from aot.runtime.loading.weights import WeightsInfo
from aot.runtime.machine import machine_name, missing_features, refused_tiles


@dataclass(frozen=True, slots=True)
class Levels:
    """The same model for several targets, lowest first."""

    tag: str
    built: tuple[Built, ...] = field(repr=False)
    manifest: Manifest = field(repr=False)

    @property
    def machine(self) -> Machine:
        return self.built[0].machine

    @property
    def platform(self) -> Platform:
        return self.built[0].platform

    @property
    def best(self) -> Built:
        """Highest level that runs on this machine; PlatformError if none does."""
        for library in reversed(self.built):
            if not missing_features(_features(library)) and not (library.uses_tiles and refused_tiles()):
                return library
        raise PlatformError(f"jit: needs processor features: {', '.join(missing_features(_features(self.built[0])))}")

    def write_shared(self, path: Path, *, linker: Linker | None = None) -> None:
        """Write the library, as for a single level."""
        if not self.platform.needs_linker:
            self._write_image(path)
            return
        used_linker = linker if linker is not None else find_linker(self.machine.name, platform=self.platform)
        with (
            naming(path),
            tempfile.TemporaryDirectory(dir=path.parent, prefix=".aot-") as folder,
            replacing(path) as temporary,
        ):
            page = self.platform.pages[self.machine.name]
            data = seal_section(self.tag), placeholder(), reserved(self._weights(), page)
            link(self._objects(Path(folder), data), temporary, used_linker, self.machine, self.platform)
            append(temporary, abi.WEIGHTS_SECTION, page, self._parts())
            seal(temporary)

    def write_object(self, path: Path, *, linker: Linker | None = None) -> None:
        """Write one relocatable object; unlike for a single level, PlatformError without a linker.

        UnsupportedError for more weights than an object can hold.
        """
        check_object(self.built[0].constant_bytes, self.platform)
        used_linker = linker if linker is not None else find_linker(self.machine.name, platform=self.platform)
        with naming(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=".aot-") as folder:
            merge(self._objects(Path(folder), (self._weights(),)), path, used_linker)

    def _write_image(self, path: Path) -> None:
        code = combine([(library, {}) for library in (*map(_hidden, self.built), _compiled(self))])
        levels = (library.manifest_section(abi.LEVELS_SECTION) for library in self.built)
        sections = self._manifest(), seal_section(self.tag), *levels, self._weights()
        write_library(path, code, sections, self.platform, self.machine)

    def _manifest(self) -> Data:
        data = manifest_bytes(self.manifest)
        return Data(abi.MANIFEST_SECTION, abi.MANIFEST_PREFIX + self.tag, len(data), 8, [(0, data)])

    def _weights(self) -> Data:
        """Return the section of the weights of all levels, with a symbol for each level."""
        first, *others = (abi.WEIGHTS_PREFIX + library.tag for library in self.built)
        return weights_section(first, max(1, self.built[0].constant_bytes), _constants(self.built), tuple(others))

    def _parts(self) -> Iterator[bytes | memoryview]:
        return parts_of(_constants(self.built), max(1, self.built[0].constant_bytes))

    def _objects(self, folder: Path, more: tuple[Data, ...]) -> list[Path]:
        paths: list[Path] = []
        for i, library in enumerate(self.built):
            paths.append(folder / f"level{i}.o")
            with paths[-1].open("wb") as stream:
                add_sections(stream, _hidden(library), [library.manifest_section(abi.LEVELS_SECTION)])
        paths += [folder / "query.o", folder / "manifest.o"]
        paths[-2].write_bytes(_compiled(self))
        with paths[-1].open("wb") as stream:
            write_data_object(stream, self.machine.architecture.elf, (self._manifest(), *more), self.machine.elf_flags)
        return paths


def names_of(text: str) -> tuple[str, ...]:
    """Split `x86-64-v2,v4` into names of targets, lowest first; a single name is returned as it is.

    UsageError if several names are not all levels of one machine whose processors report features.
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) == 1:
        return (text,)
    platform = platform_named(names[0])
    prefix = platform.prefix
    known = [machine.architecture for machine in MACHINES.values() if platform.name in machine.dispatch]
    for one in known:
        full = {one.level_of(name.removeprefix(prefix)) for name in names}
        if full <= one.levels.keys():
            return tuple(prefix + name for name in one.levels if name in full)
    if not known:
        raise UsageError(f"target: a library for {platform.name} has one target, not several targets, got {text}")
    listed = "; or ".join(", ".join(one.levels) for one in known)
    raise UsageError(f"target: several targets are levels of one machine, of {listed}, got {text}")


def join(names: Sequence[str], built: Sequence[Built]) -> Levels:
    """Join the levels `names`, lowest first, into one model; they share the offsets of weights."""
    if any(library.external is not None for library in built):
        raise InternalError("target: levels have their weights in the library, got external ones")
    digest = hashlib.sha256(":".join(str(library.manifest["hash"]) for library in built).encode()).hexdigest()
    base = built[0]
    tag = f"{base.tag.rpartition('_')[0]}_{digest[:12]}"
    levels = [
        {"target": name, "features": library.manifest["features"], "calls": len(_list(library.manifest["calls"]))}
        | ({"tiles": True} if library.uses_tiles else {})
        for name, library in zip(names, built, strict=True)
    ]
    weights = WeightsInfo(base.constant_bytes, digest, weights_hash(_constants(built), base.constant_bytes))
    document: Manifest = {"tag": tag, "hash": digest, "levels": levels, "embedded": weights._asdict()}
    return Levels(tag, tuple(built), base.manifest | document)


def _constants(built: Sequence[Built]) -> tuple[ConstantBlock, ...]:
    """Return the weights of all levels, in order; InternalError if the levels place them differently."""
    constant_blocks: dict[int, ConstantBlock] = {}
    for library in built:
        for block in library.constants:
            if constant_blocks.setdefault(block.offset, block).nbytes != block.nbytes:
                raise InternalError(f"target: levels have their weights in one place, got two at {block.offset}")
    if len({library.constant_bytes for library in built}) != 1:
        raise InternalError("target: levels have their weights in one place, got several sizes")
    return tuple(constant_blocks[offset] for offset in sorted(constant_blocks))


def dispatch_text(levels: Levels) -> str:
    """Return the LLVM IR of the query function that chooses a level; null if not even the lowest one runs."""
    dispatch = _dispatch(levels)
    words = {call: bits for call, bits in dispatch.words.items() if call in dispatch.always or _asks(levels, bits)}
    lines = ["define ptr @" + abi.QUERY_PREFIX + levels.tag + "(i32 %version) nounwind {", "entry:"]
    lines += [f"  %w{n} = call i32 {call}" for n, call in enumerate(words)]
    lines.append(f"  br label %try{len(levels.built) - 1}")
    declared: list[str] = []
    for i, level in reversed(list(enumerate(levels.built))):
        features = _features(level)
        unknown = set(features).difference(*dispatch.words.values())
        if unknown:
            raise InternalError(f"target: the processor tells of {', '.join(sorted(unknown))}, got no bit for it")
        lines.append(f"try{i}:")
        fit = "true"
        for n, word in enumerate(words.values()):
            mask = _mask(bits for name, bits in word.items() if name in features)
            lines.append(f"  %h{i}.{n} = call i1 @has(i32 %w{n}, i32 {mask})")
            lines.append(f"  %f{i}.{n} = and i1 {fit}, %h{i}.{n}")
            fit = f"%f{i}.{n}"
        query = f"@{abi.QUERY_PREFIX}{level.tag}"
        declared.append(f"declare hidden ptr {query}(i32)")
        lower = f"try{i - 1}" if i else "none"
        lines += [f"  br i1 {fit}, label %take{i}, label %{lower}", f"take{i}:"]
        lines.append(f"  %t{i} = call ptr {query}(i32 %version)")
        if level.uses_tiles:  # the system may refuse the registers
            lines += [f"  %g{i} = icmp ne ptr %t{i}, null", f"  br i1 %g{i}, label %give{i}, label %{lower}"]
            lines.append(f"give{i}:")
        lines.append(f"  ret ptr %t{i}")
    return "\n".join([template_text(dispatch.template), *declared, *lines, "none:", "  ret ptr null", "}"]) + "\n"


def _mask(bits: Iterable[int]) -> int:
    """Return the signed number of 32 bits that has all of `bits`."""
    mask = 0
    for some in bits:
        mask |= some
    return mask if mask < 1 << 31 else mask - (1 << 32)


def _dispatch(levels: Levels) -> Dispatch:
    return levels.machine.dispatch[levels.platform.name]


def _asks(levels: Levels, bits: Mapping[str, int]) -> bool:
    """True if a level needs one of the features in `bits`."""
    return any(not bits.keys().isdisjoint(_features(library)) for library in levels.built)


def _compiled(levels: Levels) -> bytes:
    name = levels.machine.name
    if _dispatch(levels).assembly:
        if machine_name() != name:
            raise UnsupportedError(f"target: several levels of {name} are compiled on {name}, got {machine_name()}")
        llvm.initialize_native_asmparser()
    lowest = levels.platform.prefix + next(iter(levels.machine.architecture.levels))
    return compile_module(dispatch_text(levels), Target.parse(lowest))


def _hidden(library: Built) -> bytes:
    """Return the code of a level; the library does not export its query."""
    return hidden(library.code, [abi.QUERY_PREFIX + library.tag])


def _features(library: Built) -> list[str]:
    return [str(name) for name in _list(library.manifest["features"])]


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []  # type: ignore[arg-type]
