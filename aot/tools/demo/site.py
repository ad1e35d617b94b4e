"""The files of a page around a WebAssembly module: the page, the loader, the module, and its weights.

index.html, aot.mjs with aot-more.mjs, net.wasm, and net.weights if they are external; or one file with all of these
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aot.codegen.llvm.callers import loader_files
from aot.codegen.platforms import WASM, platform_of
from aot.runtime.atomic import copy, replacing
from aot.runtime.errors import UsageError
from aot.runtime.loading.library import verify
from aot.runtime.loading.weights import beside
from aot.runtime.regular import open_file, read_file
from aot.tools.demo.kinds import facts_of, kind_of
from aot.tools.demo.options import Kind, Options
from aot.tools.demo.page import LOADER, page


class Site:
    """A page for the module `library`, in a folder, or a file that ends in .html and needs no other.

    `kind`: by inputs and outputs of the model if it is None. UsageError for a model without one; CorruptError.
    """

    def __init__(self, library: Path, output: Path, options: Options, kind: Kind | None = None) -> None:
        manifest = verify(library)
        platform = platform_of(str(manifest.json["triple"]))
        if platform is not WASM:
            raise UsageError(f"demo: a page needs a module for wasm, got one for {platform.name}: {library}")
        kind = kind or kind_of(manifest)
        facts = {"module": library.name, "title": manifest.name} | facts_of(kind, library, manifest, options)
        external, self.copies = "external" in manifest.json, dict[Path, Path]()
        if output.suffix == ".html":
            if external or "atomics" in manifest.features:
                got = "external weights" if external else "threads"
                raise UsageError(
                    f"demo: a page in one file needs a module with its weights, without threads, got {got}"
                )
            self._texts = {output: page(kind, facts, read_file(library, "demo"))}
            return
        sources = [library, *([beside(library)] if external else [])]
        self.copies = {source: output / source.name for source in sources}
        loader = {path: text for path, text in loader_files(output / LOADER).items() if path.suffix == LOADER.suffix}
        self._texts = {output / "index.html": page(kind, facts), **loader}

    @property
    def outputs(self) -> list[Path]:
        return [*self._texts, *(copied for source, copied in self.copies.items() if not _is_same(source, copied))]

    def write(self) -> Iterable[Path]:
        """Write the files, and return their paths."""
        for path, text in self._texts.items():
            with replacing(path) as new:
                new.write_text(text, encoding="utf-8")
        for source, copied in self.copies.items():
            if _is_same(source, copied):
                continue
            with open_file(source, "demo") as stream, replacing(copied) as new, new.open("wb") as target:
                copy(stream, target)
        return [*self._texts, *self.copies.values()]


def _is_same(source: Path, path: Path) -> bool:
    return path.exists() and path.samefile(source)
