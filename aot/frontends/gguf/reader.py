"""Reads language models in GGUF: a stateful graph, with the tokenizer and the chat template in its information."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from aot.frontends.gguf.config import architecture_of, config_of
from aot.frontends.gguf.container import Container, read_container
from aot.frontends.gguf.weights import Weights
from aot.frontends.language.decoder import Decoder
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.runtime.errors import CorruptError, UnsupportedError

SHOWN = 5  # names in an error
FACTORS = "rope_freqs.weight"  # tensor of divisors for the rotations' frequencies


def read(path: Path) -> Graph:
    """Return the network of a file.

    CorruptError for a file that is damaged, UnsupportedError for architectures and formats without a graph.
    """
    container = read_container(path)
    config = config_of(container)
    for part, name in architecture_of(container).names.items():
        container = replace(container, tensors={k.replace(part, name): t for k, t in container.tensors.items()})
    graph = Graph(name=path.stem, file=path.name)
    weights = Weights(container, Builder(graph))
    if weights.has(FACTORS):
        config = replace(config, divisors=tuple(weights.floats(FACTORS, config.rotated // 2).tolist()))
    vocab_size = _rows(container, "token_embd.weight", config.width)
    max_positions = _rows(container, "position_embd.weight", config.width) if config.family.learned else None
    Decoder(graph, config, weights, max_positions).build(vocab_size)
    if weights.unread:
        names = ", ".join(map(repr, weights.unread[:SHOWN]))
        rule = "all tensors belong to the network"
        raise UnsupportedError(f"{path.name}: GGUF: {rule}, got {len(weights.unread)} others: {names}")
    graph.rt_info["gguf"] = _information(container)
    return graph


def _rows(container: Container, name: str, width: int) -> int:
    """Return the number of rows of a table, which the file alone says."""
    table = container.tensors.get(name)
    if table is None or len(table.shape) != 2 or table.shape[1] != width:
        got = None if table is None else list(table.shape)
        raise CorruptError(f"{container.file}: GGUF: {name!r} must have rows of {width}, got {got}")
    return table.shape[0]


def _information(container: Container) -> dict[str, object]:
    """Metadata as texts; numbers and lists as JSON."""
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in container.metadata.items()}
