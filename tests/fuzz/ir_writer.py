"""Writes graphs of the opset as OpenVINO IR, bodies included: what the reader reads, written."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import RegionOp
from aot.ir.registry import opsets_of
from aot.ir.types import TensorType
from aot.opset.control.control_flow import If, Loop
from aot.opset.control.port_maps import InputMap, OutputMap
from tests.properties.oracle import fields, port


@dataclass
class _Weights:
    """The bytes of the .bin file; constants are aligned to 64 bytes."""

    data: bytearray = field(default_factory=bytearray)

    def add(self, raw: bytes) -> tuple[int, int]:
        """Offset and size."""
        self.data += b"\0" * (-len(self.data) % 64)
        offset = len(self.data)
        self.data += raw or b"\0"
        return offset, len(raw)


def written(graph: Graph) -> tuple[str, bytes]:
    """XML and weights."""
    weights = _Weights()
    body = _network(graph, weights)
    return f'<?xml version="1.0"?>\n<net name="{graph.name}" version="11">\n{body}\n</net>\n', bytes(weights.data)


def _network(graph: Graph, weights: _Weights) -> str:
    """`<layers>` and `<edges>`; parameters and results come in their order."""
    nodes = [n for n in graph.order() if n not in graph.parameters and n not in graph.results]
    nodes = [*graph.parameters, *nodes, *graph.results]
    layers = "\n".join(_layer(n, weights) for n in nodes)
    edges = [
        f'<edge from-layer="{p.node.id}" from-port="{_out(p)}" to-layer="{n.id}" to-port="{k}"/>'
        for n in nodes
        for k, p in enumerate(n.sources())
        if p is not None
    ]
    return f"<layers>\n{layers}\n</layers>\n<edges>{''.join(edges)}</edges>"


def _out(p: OutPort) -> int:
    """Ports of a layer are numbered inputs first."""
    return len(p.node.in_ports()) + p.idx


def _layer(node: Node, weights: _Weights) -> str:
    data = fields(node.op) if not isinstance(node.op, RegionOp) else {}
    if node.type == "Parameter":
        data["shape"] = ",".join(str(n) for n in _sizes(node.out_port(0).type)).replace("-1", "?")
    if node.data is not None:
        offset, size = weights.add(np.ascontiguousarray(node.data).tobytes())
        shape = ",".join(map(str, node.data.shape))
        data |= {"offset": str(offset), "size": str(size), "shape": shape}
    attributes = "".join(f' {k}="{v}"' for k, v in data.items())
    given = "".join(_port(k, p) for k, p in enumerate(node.sources()) if p is not None)
    made = "".join(_port(_out(p), p) for p in node.out_ports().values()) if node.type != "Result" else ""
    ports = (f"<input>{given}</input>" if given else "") + (f"<output>{made}</output>" if made else "")
    kind, opset = type(node.op).xml_type, opsets_of(type(node.op))[-1]
    head = f'<layer id="{node.id}" name="{node.name}" type="{kind}" version="opset{opset}">'
    return f"{head}<data{attributes}/>{ports}{_regions(node, weights)}</layer>"


def _port(id: int, p: OutPort) -> str:
    return port(id, p.type.dtype, _sizes(p.type))


def _sizes(type: TensorType) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else -1 for n in type.shape)


def _regions(node: Node, weights: _Weights) -> str:
    """Port maps and bodies."""
    op = node.op
    if not isinstance(op, RegionOp):
        return ""
    if isinstance(op, If):
        parts = list[str]()
        for name in ("then", "else"):
            inputs, outputs = op.maps(name)
            parts.append(f"<{name}_port_map>{_maps(node, node.regions[name], inputs, outputs)}</{name}_port_map>")
            parts.append(f"<{name}_body>{_network(node.regions[name], weights)}</{name}_body>")
        return "".join(parts)
    body = node.regions["body"]
    maps = _maps(node, body, op.input_maps, op.output_maps)
    if isinstance(op, Loop):
        maps += _purpose("input", "current_iteration", body.parameters, op.current_iteration)
        maps += _purpose("output", "execution_condition", body.results, op.execution_condition)
    edges = "".join(
        f'<edge from-layer="{body.results[e.result].id}" to-layer="{body.parameters[e.parameter].id}"/>'
        for e in op.back_edges
    )
    rest = f"<back_edges>{edges}</back_edges>" if edges else ""
    return f"<port_map>{maps}</port_map>{rest}<body>{_network(body, weights)}</body>"


def _maps(node: Node, body: Graph, inputs: tuple[InputMap, ...], outputs: tuple[OutputMap, ...]) -> str:
    made = [_map("input", m, m.external, body.parameters[m.parameter].id) for m in inputs]
    first = len(node.in_ports())
    made += [_map("output", m, first + m.external, body.results[m.result].id) for m in outputs]
    return "".join(made)


def _map(tag: str, m: InputMap | OutputMap, external: int, internal: int) -> str:
    parts = (
        ""
        if m.axis is None
        else (f' axis="{m.axis}" start="{m.start}" end="{m.end}" stride="{m.stride}" part_size="{m.part_size}"')
    )
    return f'<{tag} external_port_id="{external}" internal_layer_id="{internal}"{parts}/>'


def _purpose(tag: str, purpose: str, nodes: list[Node], position: int) -> str:
    if position < 0:
        return ""
    return f'<{tag} external_port_id="-1" internal_layer_id="{nodes[position].id}" purpose="{purpose}"/>'
