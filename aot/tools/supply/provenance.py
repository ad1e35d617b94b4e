"""Provenance of a library: an in-toto statement with SLSA's predicate, which anybody can check by compiling again.

subject m.so  <-  aot compile, with options  <-  m.xml, m.bin, by their SHA-256
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from aot.compilation.recompile import is_same, options_of, to_give_again
from aot.options import CompileOptions
from aot.runtime.errors import CorruptError
from aot.runtime.loading.library import verify
from aot.runtime.regular import read_file
from aot.runtime.version import VERSION
from aot.tools.supply.materials import material, materials

Json = dict[str, Any]
_AGAIN = "give --value, --extensions and --transformations-config again: a library has their names and hashes only"
_FILES = "give the model's own files, this version of aot and, for a library that was tuned, --tune-file"
STATEMENT, PREDICATE = "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:aot:compile:v1"


def provenance(library: Path, model: Path, options: CompileOptions) -> Json:
    """Return the statement that `library` is `model`, compiled, after it was compiled again to the same content hash.

    `options`: options that the library's manifest lacks. CorruptError if the hash is another.
    """
    manifest = verify(library)
    recorded_options = options_of(manifest, options)
    if others := to_give_again(manifest, model, recorded_options):
        rule = f"{' and '.join(others)} must be those that the library was compiled with"
        raise CorruptError(f"provenance: {library}: {rule}, got others or none", advice=_AGAIN)
    if not is_same(manifest, model, recorded_options):
        rule = f"compiling {model} again must give the hash {str(manifest.json['hash'])[:16]}..."
        raise CorruptError(f"provenance: {library}: {rule}, got another", advice=_FILES)
    own = material(library)
    sources = [{"name": s.name, "digest": {"sha256": s.sha256}} for s in materials(model)]
    definition = {
        "buildType": BUILD_TYPE,
        "externalParameters": {"options": manifest.options, "contentHash": manifest.json["hash"]},
        "internalParameters": {"toolchain": manifest.json["toolchain"], "triple": manifest.json["triple"]},
        "resolvedDependencies": sources,
    }
    return {
        "_type": STATEMENT,
        "subject": [{"name": own.name, "digest": {"sha256": own.sha256}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": definition,
            "runDetails": {"builder": {"id": "urn:aot", "version": {"aot": VERSION}}},
        },
    }


def check_provenance(statement: Path, library: Path, model: Path, options: CompileOptions) -> None:
    """Raise CorruptError unless a file holds the statement that `provenance` gives here, for the same files."""
    try:
        tree: object = json.loads(read_file(statement, "provenance"))
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"provenance: {statement}: must be JSON, got {error}") from None
    new_statement = json.loads(json.dumps(provenance(library, model, options), default=str))
    if not isinstance(tree, dict):
        raise CorruptError(f"provenance: {statement}: must be a statement, got {type(tree).__name__}")
    given = cast(Json, tree)
    if wrong := next((key for key in new_statement if new_statement[key] != given.get(key)), None):
        raise CorruptError(f"provenance: {statement}: {wrong} must be that of {library} and {model}, got another")
