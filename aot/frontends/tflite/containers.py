"""Containers with networks of TensorFlow Lite: MediaPipe's `.task`, a flat zip, and LiteRT-LM's `.litertlm`.

    hand_landmarker.task     hand_detector.tflite, hand_landmarks_detector.tflite
    gemma.litertlm           tf_lite_prefill_decode, tf_lite_embedder, a tokenizer, metadata

Nothing is unpacked to a file; of the sections only the network that is compiled is read. `--signature` names it, and a
signature of it after a colon.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from itertools import islice
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.frontends.archive import Archive, archive_of, open_archive
from aot.frontends.kinds import LITERT_LM, ZIP, is_tflite
from aot.frontends.packages import check
from aot.frontends.tflite import litertlm, reader
from aot.ir.graph import Graph
from aot.runtime.describe import size_text
from aot.runtime.errors import BudgetError, CorruptError, UnsupportedError, UsageError
from aot.runtime.regular import open_file

NETWORK, WEIGHTS = "TFLiteModel", "TFLiteWeights"
KINDS = {"TOKENIZER_MODEL": "tokenizer", "METADATA": "metadata", ".txt": "text", ".binarypb": "graph"}
MAX_SECTIONS = 256
MAX_LEVELS = 2  # containers in containers
MAX_INNER = 1 << 28  # bytes of a container in another, which is read whole


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a container; `contents` reads and checks it. `kind`: NETWORK, or another in words."""

    name: str
    kind: str
    size: int
    contents: Callable[[], memoryview]


@dataclass(slots=True)
class Container:
    """`format`: what wrote it, in words; `about`: what it says of itself."""

    file: str
    format: str
    about: dict[str, str] = field(default_factory=dict[str, str])
    sections: list[Section] = field(default_factory=list[Section])

    @property
    def networks(self) -> dict[str, Section]:
        """Return the sections that are networks by their names."""
        return {s.name: s for s in self.sections if s.kind == NETWORK}


def read(path: Path, name: str | None = None) -> Graph:
    """Return the network that `name` names, or the only one; its signature may follow after a colon."""
    section, signature = _chosen(open_container(path), name)
    return reader.read_bytes(bytes(section.contents()), path / section.name, signature)


def open_container(path: Path) -> Container:
    """Return the contents of a container. CorruptError if it is damaged; BudgetError if it would unpack to far more."""
    check(path, "TensorFlow Lite")
    with open_file(path, "model") as file:
        is_zip = file.read(len(LITERT_LM)) != LITERT_LM
    container = _of_zip(path) if is_zip else _of_litert_lm(path)
    if len(container.sections) > MAX_SECTIONS:
        raise BudgetError(
            f"{path.name}: a container can have at most {MAX_SECTIONS} sections, got {len(container.sections)}"
        )
    return container


def _of_zip(path: Path) -> Container:
    archive = open_archive(path, is_flat=True)
    return Container(path.name, "MediaPipe task", sections=list(islice(_of_archive(archive, "", 1), MAX_SECTIONS + 1)))


def _of_litert_lm(path: Path) -> Container:
    with open_file(path, "model") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    header = litertlm.read(data, path.name)
    sections = [
        Section(p.name, p.kind, p.end - p.begin, partial(_between, data, p, path.name)) for p in header.sections
    ]
    return Container(path.name, f"LiteRT-LM {header.version}", header.about, sections)


def facts(container: Container) -> dict[str, object]:
    """Return the contents of a container, for JSON."""
    sections = [{"name": s.name, "kind": s.kind, "bytes": s.size} for s in container.sections]
    return {"name": container.file, "format": container.format, "about": container.about, "sections": sections}


def text(container: Container) -> str:
    """Return the contents of a container, in words."""
    lines = [f"{container.file}: {container.format}, {len(container.sections)} sections"]
    lines += [f"  about   {name}: {value}" for name, value in container.about.items()]
    lines += [f"  section {s.name}: {s.kind}, {size_text(s.size)}" for s in container.sections]
    return "\n".join(lines)


def _chosen(container: Container, wanted: str | None) -> tuple[Section, str | None]:
    """Return the section that a text names, and the signature after its colon; the only network without a name."""
    sections = container.networks
    named = ", ".join(sections)
    if not sections:
        others = ", ".join(f"{s.name} ({s.kind})" for s in container.sections)
        raise UnsupportedError(
            f"{container.file}: networks of TensorFlow Lite can be compiled, got none, only {others}"
        )
    for name, section in sections.items():
        if wanted == name or (wanted or "").startswith(f"{name}:"):
            return _with_weights(container, section), (wanted or "")[len(name) + 1 :] or None
    if len(sections) == 1:
        return _with_weights(container, *sections.values()), wanted
    raise UsageError(
        f"--signature: {container.file} has the networks {named}, got {repr(wanted) if wanted else 'none'}",
        advice=f"name one of them: --signature {next(iter(sections))!r}, a signature of it: 'NETWORK:SIGNATURE'",
    )


def _with_weights(container: Container, section: Section) -> Section:
    """Return the section of a network; UnsupportedError if another section has its weights."""
    if any(s.kind == WEIGHTS and s.name == f"{section.name} weights" for s in container.sections):
        raise UnsupportedError(f"{container.file}: {section.name}: weights in a section of their own are not supported")
    return section


def _of_archive(archive: Archive, before: str, depth: int) -> Iterator[Section]:
    """Return the entries of a zip, and those of zips in it with their names before them."""
    for name, info in archive.entries.items():
        head = archive.head(name, 8)
        if name.endswith(".task") and head.startswith(ZIP[:4]):
            if depth == MAX_LEVELS or info.file_size > MAX_INNER:
                rule = f"containers lie at most {MAX_LEVELS} deep and have at most {MAX_INNER} bytes"
                raise BudgetError(f"{archive.file}: {rule}, got {name!r} of {info.file_size}")
            inner = archive_of(archive.read(name), f"{archive.file}: {name}", is_flat=True)
            yield from _of_archive(inner, f"{before}{name}/", depth + 1)
        else:
            kind = NETWORK if is_tflite(head) else next((k for n, k in KINDS.items() if name.endswith(n)), "data")
            yield Section(before + name, kind, info.file_size, partial(archive.read, name))


def _between(data: memoryview, part: litertlm.Part, file: str) -> memoryview:
    """Return a section of a file, which is a network."""
    result = data[part.begin : part.end]
    if not is_tflite(bytes(result[:8])):
        raise CorruptError(f"{file}: {part.name}: a network must begin as a file of TensorFlow Lite, got other bytes")
    return result
