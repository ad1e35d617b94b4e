"""One library for several instruction sets: a whole model for each level, and a query that chooses one by CPUID.

    aot_query_<tag> -> cpuid, xgetbv -> aot_query_<tag of level>     hidden; the highest level that runs here
                                        | kernels, pool, manifest of the level
                                        | weights     of all levels: packed ones differ with the length of vectors

Weights that are equal in several levels are stored once, see `aot.lowering.program.constant_places`.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
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
    parts_of,
    reserved,
    weights_hash,
    weights_section,
)
from aot.codegen.llvm.object.append import append, placeholder
from aot.codegen.llvm.object.elf_writer import Data, write_data_object
from aot.codegen.llvm.object.link import Linker, find_linker, link, merge
from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.llvm.object.relocatable import add_sections, hidden
from aot.codegen.llvm.pool import template_text
from aot.codegen.target import Target
from aot.runtime import abi
from aot.runtime.atomic import naming, replacing
from aot.runtime.errors import InternalError, PlatformError, UnsupportedError, UsageError
from aot.runtime.levels import LEVELS
from aot.runtime.loading.seal import seal
from aot.runtime.loading.weights import WeightsInfo
from aot.runtime.machine import machine_name, missing_features, refused_tiles

_LOWEST = "x86-64-v2"
# word of CPUID, as (leaf, register, subleaf) -> the bit of each feature
_WORDS: dict[tuple[int, int, int], dict[str, int]] = {
    (1, 2, 0): {
        "sse3": 0,
        "ssse3": 9,
        "fma": 12,
        "cx16": 13,
        "sse4.1": 19,
        "sse4.2": 20,
        "movbe": 22,
        "popcnt": 23,
        "xsave": 27,
        "avx": 28,
        "f16c": 29,
    },
    (1, 3, 0): {"cx8": 8, "cmov": 15, "mmx": 23, "fxsr": 24, "sse": 25, "sse2": 26},
    (7, 1, 0): {
        "bmi": 3,
        "avx2": 5,
        "bmi2": 8,
        "avx512f": 16,
        "avx512dq": 17,
        "avx512cd": 28,
        "avx512bw": 30,
        "avx512vl": 31,
    },
    (0x80000001, 2, 0): {"sahf": 0, "lzcnt": 5},
    (7, 2, 0): {"avx512vbmi": 1, "avx512vnni": 11},
    (7, 3, 0): {"amx-bf16": 22, "amx-tile": 24, "amx-int8": 25},
    (7, 0, 1): {"avx512bf16": 5},
}
_ALWAYS = ((1, 2, 0), (1, 3, 0), (7, 1, 0), (0x80000001, 2, 0))  # words that are read for all levels
_SAVED = {"avx": 0x06, "avx512f": 0xE6, "amx-tile": 0x600E6}  # bits of XCR0: registers that the system must save


@dataclass(frozen=True, slots=True)
class Levels:
    """The same model for several targets, lowest first."""

    tag: str
    built: tuple[Built, ...] = field(repr=False)
    manifest: Manifest = field(repr=False)

    @property
    def best(self) -> Built:
        """Highest level that runs on this machine; PlatformError if none does."""
        for made in reversed(self.built):
            if not missing_features(_features(made)) and not (made.uses_tiles and refused_tiles()):
                return made
        raise PlatformError(f"jit: needs processor features: {', '.join(missing_features(_features(self.built[0])))}")

    def write_shared(self, path: Path, *, linker: Linker | None = None) -> None:
        """Write the library, as for a single level."""
        chosen = linker if linker is not None else find_linker("x86_64")
        with (
            naming(path),
            tempfile.TemporaryDirectory(dir=path.parent, prefix=".aot-") as folder,
            replacing(path) as made,
        ):
            name = abi.SEAL_PREFIX + self.tag
            mark = Data(abi.SEAL_SECTION, name, abi.SEAL_BYTES, 8, [(0, bytes(abi.SEAL_BYTES))])
            data = mark, placeholder(), reserved(self._weights())
            link(self._objects(Path(folder), data), made, chosen, abi.MACHINES["x86_64"])
            append(made, abi.WEIGHTS_SECTION, abi.WEIGHTS_PAGE, self._parts())
            seal(made)

    def write_object(self, path: Path, *, linker: Linker | None = None) -> None:
        """Write one relocatable object; unlike for a single level, PlatformError without a linker.

        UnsupportedError for more weights than an object can hold.
        """
        check_object(self.built[0].constant_bytes)
        chosen = linker if linker is not None else find_linker("x86_64")
        with naming(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=".aot-") as folder:
            merge(self._objects(Path(folder), (self._weights(),)), path, chosen)

    def _weights(self) -> Data:
        """Return the section of the weights of all levels, with a symbol for each level."""
        first, *others = (abi.WEIGHTS_PREFIX + made.tag for made in self.built)
        return weights_section(first, max(1, self.built[0].constant_bytes), _constants(self.built), tuple(others))

    def _parts(self) -> Iterator[bytes | memoryview]:
        return parts_of(_constants(self.built), max(1, self.built[0].constant_bytes))

    def _objects(self, folder: Path, more: tuple[Data, ...]) -> list[Path]:
        paths: list[Path] = []
        for i, made in enumerate(self.built):
            paths.append(folder / f"level{i}.o")
            with paths[-1].open("wb") as stream:
                code = hidden(made.code, [abi.QUERY_PREFIX + made.tag])
                add_sections(stream, code, [made.manifest_section(abi.LEVELS_SECTION)])
        data = manifest_bytes(self.manifest)
        section = Data(abi.MANIFEST_SECTION, abi.MANIFEST_PREFIX + self.tag, len(data), 8, [(0, data)])
        paths += [folder / "query.o", folder / "manifest.o"]
        paths[-2].write_bytes(_compiled(self))
        with paths[-1].open("wb") as stream:
            write_data_object(stream, abi.MACHINES["x86_64"], (section, *more))
        return paths


def names_of(text: str) -> tuple[str, ...]:
    """Split `x86-64-v2,v4` into names of targets, lowest first; a single name is returned as it is.

    UsageError if several names are not all levels of x86-64.
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) == 1:
        return (text,)
    full = {name if name.startswith("x86-64-") else f"x86-64-{name}" for name in names}
    if not full <= LEVELS.keys():
        known = ", ".join(name.removeprefix("x86-64-") for name in LEVELS)
        raise UsageError(f"target: several targets are levels of x86-64, of {known}, got {text}")
    return tuple(name for name in LEVELS if name in full)


def join(names: Sequence[str], built: Sequence[Built]) -> Levels:
    """Join the levels `names`, lowest first, into one model; they share the offsets of weights."""
    if any(made.external is not None for made in built):
        raise InternalError("target: levels have their weights in the library, got external ones")
    digest = hashlib.sha256(":".join(str(made.manifest["hash"]) for made in built).encode()).hexdigest()
    base = built[0]
    tag = f"{base.tag.rpartition('_')[0]}_{digest[:12]}"
    levels = [
        {"target": name, "features": made.manifest["features"], "calls": len(_list(made.manifest["calls"]))}
        | ({"tiles": True} if made.uses_tiles else {})
        for name, made in zip(names, built, strict=True)
    ]
    weights = WeightsInfo(base.constant_bytes, digest, weights_hash(_constants(built), base.constant_bytes))
    whole: Manifest = {"tag": tag, "hash": digest, "levels": levels, "embedded": weights._asdict()}
    return Levels(tag, tuple(built), base.manifest | whole)


def _constants(built: Sequence[Built]) -> tuple[ConstantBlock, ...]:
    """Return the weights of all levels, in order; InternalError if the levels place them differently."""
    found: dict[int, ConstantBlock] = {}
    for made in built:
        for block in made.constants:
            if found.setdefault(block.offset, block).nbytes != block.nbytes:
                raise InternalError(f"target: levels have their weights in one place, got two at {block.offset}")
    if len({made.constant_bytes for made in built}) != 1:
        raise InternalError("target: levels have their weights in one place, got several sizes")
    return tuple(found[offset] for offset in sorted(found))


def dispatch_text(levels: Levels) -> str:
    """Return the LLVM IR of the query function that chooses a level; null if not even the lowest one runs."""
    lines = ["define ptr @" + abi.QUERY_PREFIX + levels.tag + "(i32 %version) nounwind {", "entry:"]
    words = {place: bits for place, bits in _WORDS.items() if place in _ALWAYS or _asks(levels, bits)}
    for i, (leaf, register, subleaf) in enumerate(words):
        asked = leaf if leaf < 1 << 31 else leaf - (1 << 32)
        lines.append(f"  %w{i} = call i32 @word(i32 {asked}, i32 {register}, i32 {subleaf})")
    lines += ["  %saved = call i32 @saved(i32 %w0)", f"  br label %try{len(levels.built) - 1}"]
    declared: list[str] = []
    for i, made in reversed(list(enumerate(levels.built))):
        features = _features(made)
        unknown = set(features).difference(*_WORDS.values())
        if unknown:
            raise InternalError(f"target: CPUID tells of {', '.join(sorted(unknown))}, got no bit for it")
        lines.append(f"try{i}:")
        masks = [sum(1 << bit for name, bit in word.items() if name in features) for word in words.values()]
        tests = [(f"%w{n}", mask) for n, mask in enumerate(masks)]
        tests.append(("%saved", max((mask for name, mask in _SAVED.items() if name in features), default=0)))
        fit = "true"
        for n, (word, mask) in enumerate(tests):
            lines.append(f"  %h{i}.{n} = call i1 @has(i32 {word}, i32 {mask if mask < 1 << 31 else mask - (1 << 32)})")
            lines.append(f"  %f{i}.{n} = and i1 {fit}, %h{i}.{n}")
            fit = f"%f{i}.{n}"
        query = f"@{abi.QUERY_PREFIX}{made.tag}"
        declared.append(f"declare hidden ptr {query}(i32)")
        lower = f"try{i - 1}" if i else "none"
        lines += [f"  br i1 {fit}, label %take{i}, label %{lower}", f"take{i}:"]
        lines.append(f"  %t{i} = call ptr {query}(i32 %version)")
        if made.uses_tiles:  # the system may refuse the registers
            lines += [f"  %g{i} = icmp ne ptr %t{i}, null", f"  br i1 %g{i}, label %give{i}, label %{lower}"]
            lines.append(f"give{i}:")
        lines.append(f"  ret ptr %t{i}")
    return "\n".join([template_text("dispatch.ll"), *declared, *lines, "none:", "  ret ptr null", "}"]) + "\n"


def _asks(levels: Levels, bits: dict[str, int]) -> bool:
    """True if a level needs one of the features in `bits`."""
    return any(not bits.keys().isdisjoint(_features(made)) for made in levels.built)


def _compiled(levels: Levels) -> bytes:
    if machine_name() != "x86_64":
        raise UnsupportedError(f"target: several levels are compiled on x86_64, got {machine_name()}")
    llvm.initialize_native_asmparser()  # for CPUID
    return compile_module(dispatch_text(levels), Target.parse(_LOWEST))


def _features(made: Built) -> list[str]:
    return [str(name) for name in _list(made.manifest["features"])]


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []  # type: ignore[arg-type]
