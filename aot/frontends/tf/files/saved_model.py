"""The folder of a SavedModel: `saved_model.pb` with its graph, `variables/` with a checkpoint, `assets/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aot.frontends.tf.files.messages import SavedModel, parsed, parsed_text
from aot.runtime.errors import CorruptError, UnsupportedError

SERVE = "serve"


def meta_graph(folder: Path) -> Any:
    """Return the graph for inference: that with the tag `serve`, or the only one."""
    binary, text = folder / "saved_model.pb", folder / "saved_model.pbtxt"
    if binary.is_file():
        saved = parsed(SavedModel, binary.read_bytes(), binary.name)
    elif text.is_file():
        saved = parsed_text(SavedModel, text)
    else:
        raise CorruptError(f"{folder.name}: the folder of a SavedModel must have saved_model.pb, got none")
    if saved.saved_model_schema_version > 1:
        raise UnsupportedError(
            f"{folder.name}: SavedModels of schema 1 can be read, got {saved.saved_model_schema_version}"
        )
    graphs = list(saved.meta_graphs)
    served = [g for g in graphs if SERVE in g.meta_info_def.tags] or graphs
    if len(served) != 1:
        tags = [list(g.meta_info_def.tags) for g in graphs]
        raise UnsupportedError(f"{folder.name}: one graph must have the tag {SERVE!r} or is the only one, got {tags}")
    if not served[0].graph_def.node:
        raise CorruptError(f"{folder.name}: a graph must have nodes, got none")
    return served[0]
