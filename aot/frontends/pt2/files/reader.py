"""Reads programs that PyTorch exported (.pt2), without PyTorch.

    archive -> schema, weights -> signature, nodes -> Graph of aten.*

Names of inputs and outputs are those of the user's `forward`; further names of their tensors are PyTorch's.
"""

from __future__ import annotations

from pathlib import Path

from aot.frontends.archive import Archive, open_archive
from aot.frontends.conversion.scopes import Scope
from aot.frontends.pt2.files.schema import Table
from aot.frontends.pt2.files.weights import open_weights
from aot.frontends.pt2.graph import regions
from aot.frontends.pt2.graph.importer import ProgramImporter
from aot.frontends.pt2.graph.signature import Signature
from aot.frontends.pt2.graph.symbols import read_symbols
from aot.ir.graph import Graph
from aot.runtime.errors import CorruptError, UnsupportedError

__all__ = ["read", "regions"]

ARCHIVE_VERSIONS = ("0",)
SCHEMA_MAJOR = 8  # PyTorch itself reads only the one that it writes
MODELS = "models/"


def read(path: Path) -> Graph:
    """Return the network of a file in dialect `aten`.

    CorruptError for a file that is damaged; UnsupportedError for another version, or several models. What single
    operations lack is found by the pass that converts them.
    """
    archive = open_archive(path)
    name = _model(archive)
    program = Table(archive.json(f"{MODELS}{name}.json"), f"{archive.file}: {name}")
    _check_version(archive, program)
    module = program.table("graph_module")
    importer = ProgramImporter(
        module.table("graph"), Scope(Graph(name=path.stem, file=path.name)), read_symbols(program, path.name)
    )
    signature = Signature(importer, module, open_weights(archive, name))
    signature.add_inputs()
    importer.run()
    signature.add_outputs()
    return importer.scope.graph


def _model(archive: Archive) -> str:
    """Return the name of the one model in an archive."""
    version = archive.text("archive_version")
    if version not in ARCHIVE_VERSIONS:
        raise UnsupportedError(f"{archive.file}: version 0 of the archive can be read, got {version[:20]!r}")
    if "byteorder" in archive and archive.text("byteorder") != "little":
        order = archive.text("byteorder")[:20]
        raise UnsupportedError(f"{archive.file}: numbers must be stored with the low byte first, got {order!r}")
    names = [n.removeprefix(MODELS).removesuffix(".json") for n in archive.entries if n.startswith(MODELS)]
    if len(names) != 1:
        listed = ", ".join(names[:10]) or "none"
        raise UnsupportedError(f"{archive.file}: an archive must have one model, got {listed}")
    return names[0]


def _check_version(archive: Archive, program: Table) -> None:
    version = program.table("schema_version")
    major = version.whole("major")
    if major != SCHEMA_MAJOR:
        torch = str(program.value("torch_version"))[:20]
        error = UnsupportedError(
            f"{archive.file}: major version {SCHEMA_MAJOR} of the schema can be read, got {major} (PyTorch {torch})"
        )
        error.add_note(
            "export it with PyTorch 2.5 or newer: torch.export.save(torch.export.export(model, inputs), path)"
        )
        raise error
    if "graph_module" not in program:
        raise CorruptError(f"{archive.file}: a program must have a graph_module, got none")
