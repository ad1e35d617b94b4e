"""Copies of ONNX models for runtimes that show only a model's outputs: with more of them, all of them tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, ValueInfoProto

from aot.runtime.errors import CorruptError


def with_outputs(path: Path, names: Sequence[str]) -> bytes:
    """Return an ONNX file's bytes with more tensors as outputs; weights in other files stay there.

    A ZipMap, whose result is a sequence of maps, becomes an Identity: its result is the tensor of scores, as in
    `aot.frontends.onnx.tabular.ml_features.zip_map`. CorruptError for a file that is damaged.
    """
    model = ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise CorruptError(f"{path.name}: not an ONNX model: {error}") from error
    known = {one.name for one in model.graph.output}
    model.graph.output.extend(ValueInfoProto(name=name) for name in names if name not in known)
    for graph in _graphs(model.graph):
        _without_maps(graph)
    return model.SerializeToString()


def _without_maps(graph: GraphProto) -> None:
    """Replace each ZipMap, and forget the types of all that is no tensor in the file and is one now."""
    nodes = [node for node in graph.node if node.op_type == "ZipMap" and node.domain == "ai.onnx.ml"]
    for node in nodes:
        node.op_type, node.domain = "Identity", ""
        del node.attribute[:]
    for info in (*graph.output, *graph.value_info) if nodes else ():
        if info.type.sequence_type.elem_type.HasField("map_type"):
            info.ClearField("type")


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from _graphs(inner)
