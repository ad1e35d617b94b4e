"""Kinds of pages: which one suits a model, by its inputs and outputs, and the facts that its scripts read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aot.runtime.errors import UsageError
from aot.runtime.generation.interface import IDS, NAMES
from aot.runtime.loading.manifest import Manifest, TensorInfo
from aot.text.embedding import check_encoder, is_encoder
from aot.tools.demo.options import Kind, Options
from aot.tools.demo.words import Facts, turns_of, words_of
from aot.tools.running.pictures import form_of

LINES = ("A cat sleeps on the sofa.", "Stock prices fell today.", "How do I bake bread?", "The train leaves at noon.")
TOP, TOP_BOXES = 5, 100  # scores and boxes that are shown
MAX_BOXES = 1000  # rows of a network that has chosen its boxes; others have a row for each grid cell


def kind_of(manifest: Manifest) -> Kind:
    """Return the kind of page for a model, by its inputs and outputs; UsageError for a model without one."""
    names = {info.name for info in manifest.inputs}
    if manifest.variables and IDS in names and names <= NAMES:
        return Kind.CHAT
    if is_encoder(manifest):
        return Kind.SEARCH
    scores = manifest.outputs[0]
    if _classes(scores) is not None:
        return Kind.CLASSES
    if _form(scores):
        return Kind.BOXES
    known = "N,classes, boxes as of YOLO or DetectionOutput, logits of a language model, or vectors of an encoder"
    raise UsageError(f"output '{scores.name}': must be {known} for a page, got {scores}")


def facts_of(kind: Kind, module: Path, manifest: Manifest, options: Options) -> Facts:
    """Return the facts of a page; UsageError for a model that does not suit it."""
    return _FACTS[kind](module, manifest, options)


def _classifier(module: Path, manifest: Manifest, options: Options) -> Facts:
    del module
    scores = manifest.outputs[0]
    count = _classes(scores)
    if count is None:
        raise UsageError(f"output '{scores.name}': must be N,classes for a page, got {scores}")
    return _picture(manifest) | _labelled(options, count, TOP)


def _detector(module: Path, manifest: Manifest, options: Options) -> Facts:
    del module
    boxes = manifest.outputs[0]
    facts = _form(boxes)
    if not facts:
        raise UsageError(f"output '{boxes.name}': must be boxes as of YOLO or DetectionOutput for a page, got {boxes}")
    first = {"centres": 4, "objects": 5}.get(facts["form"])
    count = None if first is None else facts["columns"] - first
    return _picture(manifest) | facts | _labelled(options, count, TOP_BOXES)


def _chat(module: Path, manifest: Manifest, options: Options) -> Facts:
    tokenizer, words = words_of(module, manifest)
    turns = None if tokenizer.template is None else turns_of(tokenizer.chat_template())
    return {"words": words, "turns": turns, "tokens": options.tokens}


def _search(module: Path, manifest: Manifest, options: Options) -> Facts:
    check_encoder(manifest, module.name)
    return {"words": words_of(module, manifest)[1], "lines": LINES, "top": options.top or TOP}


_FACTS: dict[Kind, Callable[[Path, Manifest, Options], Facts]] = {
    Kind.CLASSES: _classifier,
    Kind.BOXES: _detector,
    Kind.CHAT: _chat,
    Kind.SEARCH: _search,
}


def _labelled(options: Options, count: int | None, top: int) -> Facts:
    if options.labels and count is not None and len(options.labels) != count:
        raise UsageError(f"labels: must be {count}, one a class, got {len(options.labels)}")
    return {"labels": options.labels, "top": options.top or top}


def _picture(manifest: Manifest) -> Facts:
    """Return how a page passes an image to the network, and which output holds the result."""
    inputs = [info for info in manifest.inputs if info.default is None]
    if len(inputs) != 1:
        raise UsageError(f"demo: the network must have one input, a picture, got {', '.join(i.name for i in inputs)}")
    (picture,) = inputs
    if picture.dtype.value not in ("u8", "f32", "f64"):
        raise UsageError(f"input '{picture.name}': must be u8, f32 or f64 for a page, got {picture}")
    facts = {"input": picture.name, "type": picture.dtype.value, "output": manifest.outputs[0].name}
    return facts | form_of(picture)._asdict()


def _classes(scores: TensorInfo) -> int | None:
    """Return the number of classes; None for an output of another form."""
    sizes = [size for size in scores.shape[1:] if size != 1]
    return sizes[0] if len(sizes) == 1 and isinstance(sizes[0], int) else None


def _form(boxes: TensorInfo) -> Facts:
    """Return how boxes lie in an output, as `boxes.js` reads them; nothing for an output of another form."""
    sizes = [size if isinstance(size, int) else 0 for size in boxes.shape]
    match sizes:
        case [0 | 1, 0 | 1, _, 7]:  # DetectionOutput of OpenVINO and Caffe
            return {"form": "detections", "columns": 7, "transposed": False}
        case [0 | 1, rows, 6] if rows <= MAX_BOXES:  # YOLO that chooses its boxes
            return {"form": "corners", "columns": 6, "transposed": False}
        case [0 | 1, columns, rows] if columns > 4 and (rows > columns or not rows):  # YOLO from its version 8 on
            return {"form": "centres", "columns": columns, "transposed": True}
        case [0 | 1, rows, columns] if columns > 5 and (rows > columns or not rows):  # and up to 7
            return {"form": "objects", "columns": columns, "transposed": False}
        case _:
            return {}
