"""Reads a language model in a folder of Hugging Face: a graph with the tokenizer in its information.

That of a decoder has state, that of an encoder has none.
"""

from __future__ import annotations

from pathlib import Path

from aot.frontends.huggingface import encoder_decoders, encoders, vits
from aot.frontends.huggingface.config import FILE, network_of
from aot.frontends.huggingface.container import read_json, read_tensors
from aot.frontends.huggingface.encoder_decoders import KINDS
from aot.frontends.huggingface.encoders import ENCODERS
from aot.frontends.huggingface.texts import texts_of
from aot.frontends.huggingface.weights import FolderWeights
from aot.frontends.language.decoder import Decoder
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.runtime.errors import UnsupportedError
from aot.text.library_texts import FOLDER

SHOWN = 5  # names in an error


def read(path: Path) -> Graph:
    """Return the network in a folder.

    CorruptError for files that are damaged, UnsupportedError for architectures and types without a graph.
    """
    config = read_json(path / FILE)
    kind = str(config.get("model_type"))
    if kind in ENCODERS:
        return encoders.read(path, config)
    if kind in KINDS:
        return encoder_decoders.read(path, config)
    if kind == vits.TYPE:
        return vits.read(path, config)
    network = network_of(path, config)
    name = path.absolute().name
    graph = Graph(name=name, file=name)
    weights = FolderWeights(read_tensors(path), network, Builder(graph), name)
    Decoder(graph, network.config, weights, network.most).build(network.vocab_size)
    if weights.unread:
        names = ", ".join(map(repr, weights.unread[:SHOWN]))
        rule = "all tensors belong to the network"
        raise UnsupportedError(f"{name}: {rule}, got {len(weights.unread)} others: {names}")
    graph.rt_info[FOLDER] = texts_of(path, config, network.positions)
    return graph
