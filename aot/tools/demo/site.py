"""The files of a page around a WebAssembly module: the page, the loader, the module, and its weights.

index.html, aot.mjs with aot.more.mjs, net.wasm, and net.weights if they are external
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from aot.codegen.llvm.callers import loader_files
from aot.codegen.platforms import WASM, platform_of
from aot.runtime.atomic import copy, replacing
from aot.runtime.errors import UsageError
from aot.runtime.loading.library import verify
from aot.runtime.loading.manifest import Manifest
from aot.runtime.loading.weights import beside
from aot.runtime.regular import open_file
from aot.tools.report.page import Facts, in_script
from aot.tools.running.pictures import form_of


class Site:
    """A page in a folder for the module `library`. UsageError unless it classifies one picture; CorruptError."""

    def __init__(self, library: Path, folder: Path, labels: list[str], top: int) -> None:
        manifest = verify(library)
        platform = platform_of(str(manifest.json["triple"]))
        if platform is not WASM:
            raise UsageError(f"demo: a page needs a module for wasm, got one for {platform.name}: {library}")
        self.sources = [library, *([beside(library)] if "external" in manifest.json else [])]
        self.copies = {source: folder / source.name for source in self.sources}
        facts = {"module": library.name, "title": manifest.name, "labels": labels, "top": top}
        self._texts = {
            folder / "index.html": _page(facts | _facts(manifest, labels)),
            **{path: text for path, text in loader_files(folder / "aot.mjs").items() if path.suffix == ".mjs"},
        }

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


def _page(facts: Facts) -> str:
    text = (files("aot.tools.demo") / "page.html").read_text("utf-8")
    return text.replace("/*FACTS*/", in_script(facts))


def _facts(manifest: Manifest, labels: list[str]) -> Facts:
    """Return how the page gives the picture to the network, and where it finds the scores."""
    inputs = [info for info in manifest.inputs if info.default is None]
    if len(inputs) != 1:
        raise UsageError(f"demo: the network must have one input, a picture, got {', '.join(i.name for i in inputs)}")
    (picture,), scores = inputs, manifest.outputs[0]
    if picture.dtype.value not in ("u8", "f32", "f64"):
        raise UsageError(f"input '{picture.name}': must be u8, f32 or f64 for a page, got {picture}")
    sizes = [size for size in scores.shape[1:] if size != 1]
    if len(sizes) != 1 or not isinstance(sizes[0], int):
        raise UsageError(f"output '{scores.name}': must be N,classes for a page, got {scores}")
    if labels and len(labels) != sizes[0]:
        raise UsageError(f"labels: must be {sizes[0]}, one a class, got {len(labels)}")
    return {"input": picture.name, "type": picture.dtype.value, "output": scores.name, **form_of(picture)._asdict()}
