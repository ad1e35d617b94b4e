"""Files that a program with a compiled model needs: a header, or a loader of WebAssembly, also as a package of npm."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from aot.codegen.llvm.build import Built
from aot.codegen.llvm.header import cpp_header_text, header_text
from aot.codegen.llvm.levels import Levels
from aot.codegen.platforms import Format, Platform
from aot.runtime.errors import UsageError

_PACKAGE = "package.json"
_TYPES = {".mjs": ".d.mts", ".js": ".d.ts"}  # suffixes of loaders, and of their types
_ENTRY = """import {{ load as loadModule }} from "./aot.mjs";
export * from "./aot.mjs";

export const load = (options) => loadModule(new URL({module}, import.meta.url), options);
"""
_ENTRY_TYPES = """import type { Network, Options } from "./aot.mjs";
export * from "./aot.mjs";

/** Load the network of this package. Throws AotError for a damaged module, and where the engine lacks instructions. */
export function load(options?: Options): Promise<Network>;
"""


def caller_files(path: Path, platform: Platform, library: Sequence[Path]) -> list[Path]:
    """Return the files that `files_for_callers` writes: those of a header, of a loader, or of a package.

    `library`: the files of the model. UsageError for a header of a WebAssembly module, for a loader of another library,
    and for a package in another folder than its module.
    """
    is_module, is_package = platform.format is Format.WASM, path.name == _PACKAGE
    is_script = is_package or path.suffix in _TYPES
    if is_module != is_script:
        known = ", ".join((*(f"m{suffix}" for suffix in _TYPES), _PACKAGE)) if is_module else "m.h or m.hpp"
        raise UsageError(f"--header: a model for {platform.name} has {known}, got {path}")
    folder = path.parent
    if is_package and library[0].parent.resolve() != folder.resolve():
        raise UsageError(f"--header: a package has its module in its folder, {folder}, got {library[0]}")
    if is_package:
        return [path, folder / "index.mjs", folder / "index.d.mts", *loader_files(folder / "aot.mjs")]
    return list(loader_files(path)) if is_script else [path]


def files_for_callers(path: Path, built: Built | Levels, name: str, library: Sequence[Path]) -> dict[Path, str]:
    """Return the texts of a header, of the loader of WebAssembly, or of a package of npm, by the name of `path`.

    `library`: the files of the model. A package.json that exists is the user's, and is left out.
    """
    files = caller_files(path, built.platform, library)
    if path.name == _PACKAGE:
        description = _description(str(built.manifest["name"]), [*files[1:], *library])
        entry = _ENTRY.format(module=json.dumps(f"./{quote(library[0].name)}"))
        own = zip(files, (description, entry, _ENTRY_TYPES), strict=False)
        texts = {**dict(own), **loader_files(path.with_name("aot.mjs"))}
        return {file: text for file, text in texts.items() if file != path or not path.exists()}
    if path.suffix in _TYPES:
        return loader_files(path)
    return {path: (cpp_header_text if path.suffix == ".hpp" else header_text)(built, name)}


def loader_files(path: Path) -> dict[Path, str]:
    """Return the texts of the loader of WebAssembly modules, of its types, and of what it imports when that is used."""
    more = path.with_name(f"{path.stem}-more{path.suffix}")
    names = {"model-more.mjs": more.name, "model.mjs": path.name}
    files = {path: "model.mjs", more: "model-more.mjs"}
    here = Path(__file__).parent
    texts = {file: _without_comments((here / name).read_text(encoding="utf-8")) for file, name in files.items()}
    for file, text in texts.items():
        texts[file] = re.sub(r'(?<="\./)model(-more)?\.mjs', lambda match: names[match[0]], text)
    return texts | {path.with_suffix(_TYPES[path.suffix]): (here / "model.d.mts").read_text(encoding="utf-8")}


def _without_comments(script: str) -> str:
    """Return a script without comments and indentation; its strings have one line, and no `//` after a space."""
    lines = (re.sub(r"^(//|/\*\*) .*| // .*", "", line.strip()) for line in script.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def _description(model: str, files: Sequence[Path]) -> str:
    """Return the package.json of a package of `files`; the module among them has the suffix `.wasm`."""
    (module,) = (file for file in files if file.suffix == ".wasm")
    facts = {
        "name": re.sub(r"[^a-z0-9-]+", "-", module.stem.lower()).strip("-") or "network",
        "version": "1.0.0",
        "description": f"The network {model}, compiled for WebAssembly",
        "type": "module",
        "exports": {".": {"types": "./index.d.mts", "default": "./index.mjs"}, "./*": "./*"},
        "files": sorted(file.name for file in files),
    }
    return json.dumps(facts, indent=2) + "\n"
