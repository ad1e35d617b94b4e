"""Options that a library records: the property COMPILE_OPTIONS of a loaded model."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import cast

from aot.extensions.folder import Extensions, folders_of
from aot.options import CompileOptions
from aot.options.declaration import Record
from aot.options.table import options as rows
from aot.runtime.regular import read_file

CONTENTS = "contents"  # key of the hashes, by option, of values of which a library records only names


def recorded_options(options: CompileOptions, tuned: int, extensions: Extensions | None = None) -> dict[str, object]:
    """Return the options by name; `tuned`: the number of schedules that were measured.

    Of values that became constants, of extensions and of their configuration, only names and hashes: values may be
    large, and folders lie elsewhere. The hash of `extensions` is one of their configuration, too.
    """
    defaults, recorded = CompileOptions(), dict[str, object](tuned=tuned)
    for name, row in rows().items():
        value = getattr(options, name)
        is_set = value != getattr(defaults, name)
        if row.record is Record.ALWAYS or (row.record is Record.IF_SET and is_set and not row.harmless):
            recorded[name] = [list(pair) for pair in value] if name == "layouts" else value
        if row.record is Record.NAMES and is_set:
            recorded[name] = _names(value)
    contents = contents_of(options, extensions)
    return recorded | ({CONTENTS: contents} if contents else {})


def contents_of(options: CompileOptions, extensions: Extensions | None) -> dict[str, str]:
    """Return hashes, by option, of values that became constants, a file of them, and extensions with configuration."""
    digests = {"values": sha256(repr(options.values).encode()).hexdigest()} if options.values else {}
    if options.mean_file is not None:
        digests["mean_file"] = sha256(read_file(options.mean_file, "mean-file")).hexdigest()
    return digests | ({} if extensions is None else {"extensions": extensions.digest})


def _names(value: object) -> list[str]:
    """Return the names of values, or of folders and files without the places where they lie."""
    if isinstance(value, Path):
        return [folder.name for folder in folders_of(value)]
    entries = cast("tuple[Path | tuple[str, object], ...]", value)
    return [entry.name if isinstance(entry, Path) else entry[0] for entry in entries]
