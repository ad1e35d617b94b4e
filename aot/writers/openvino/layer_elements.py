"""Layers and edges of a network, and of the bodies in it, as elements of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
from lxml import etree

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.frontends.openvino.attributes import shape_text, texts
from aot.frontends.openvino.regions import BODIES
from aot.frontends.openvino.xml import ROUNDED, SIZES, Element, join_names
from aot.ir.graph import Graph, InPort, Node, OutPort
from aot.ir.op import Op, RegionOp
from aot.ir.registry import definition_of
from aot.ir.types import Array, TensorType
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.elementwise.conversion import Convert, Rounded
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError
from aot.writers.openvino.bin_file import WeightsFile, fits_half
from aot.writers.openvino.forms import form, precision
from aot.writers.openvino.names import layer_names
from aot.writers.openvino.regions import add_port_maps

# Characters that XML cannot hold.
ILLEGAL_CHARS = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
TENSOR_INFORMATION = frozenset({"layout"})  # information that OpenVINO stores at ports
DECOMPRESSION = {"decompression": {"version": "0"}}
ROUNDING = {ROUNDED: {"version": "0"}}  # OpenVINO skips information that it does not know

Info = Mapping[str, Mapping[str, str]]
Port = tuple[TensorType, tuple[str, ...]]  # type and names of the tensor
Place = tuple[int, int]  # ids of a layer and of a port


@dataclass(slots=True)
class _Network:
    """A `<net>` or body that layers are added to; `places`: the ports of outputs."""

    layers: Element
    edges: Element
    names: dict[int, str]
    is_body: bool
    ids: dict[int, int] = field(default_factory=dict[int, int])
    places: dict[OutPort, Place] = field(default_factory=dict[OutPort, Place])
    links: list[tuple[Place, Place]] = field(default_factory=list[tuple[Place, Place]])  # target, source
    count: int = 0

    def layer(self, name: str, op: Op, data: Mapping[str, str], info: Info) -> Element:
        """Add a layer with the next id; its ports are added later."""
        type_, version, _ = op.own_layer or (op.xml_type, definition_of(op) or "", None)
        facts = {"id": str(self.count), "name": legal(name), "type": type_, "version": version}
        self.count += 1
        element = etree.SubElement(self.layers, "layer", facts)
        if data:
            etree.SubElement(element, "data", {key: legal(value) for key, value in data.items()})
        _add_info(element, {key: value for key, value in info.items() if key not in TENSOR_INFORMATION})
        return element

    def add_edges(self) -> None:
        """Add all links, in the order of their targets."""
        for target, source in sorted(self.links):
            ends = {"from-layer": source[0], "from-port": source[1], "to-layer": target[0], "to-port": target[1]}
            etree.SubElement(self.edges, "edge", {key: str(id) for key, id in ends.items()})


@dataclass(frozen=True, slots=True)
class Layers:
    """Adds networks to a file; their constants share one `.bin`. `half`: f32 constants become f16 if it holds them."""

    weights: WeightsFile
    half: bool

    def add(self, root: Element, graph: Graph) -> dict[int, int]:
        """Add layers and edges of a graph to `root`; return the ids of its layers by ids of nodes."""
        names = layer_names(graph)
        ends = etree.SubElement(root, "layers"), etree.SubElement(root, "edges")
        network = _Network(*ends, names, is_body=root.tag != "net")
        for node in _order(graph):
            if isinstance(node.op, Constant):
                self._constant(network, node, node.op)
            else:
                self._operation(network, node)
            network.ids[node.id] = network.count - 1
        for node in _order(graph):
            for port, source in _connected(node):
                network.links.append(((network.ids[node.id], port.idx), network.places[source]))
        network.add_edges()
        return network.ids

    def _operation(self, network: _Network, node: Node) -> None:
        op = form(node)
        more = ROUNDING if isinstance(node.op, Rounded) else {} if network.is_body else _sizes(op)
        info = {**node.rt_info, **more}
        own = op.own_layer
        data = own[2] if own is not None else {} if isinstance(op, RegionOp) else texts(op, definition_of(op) or "")
        element = network.layer(network.names[node.id], op, data, info)
        bodies = self._bodies(node)
        if isinstance(op, RegionOp):
            add_port_maps(element, node, {name: ids for name, (_, ids) in bodies.items()})
        inputs = [source.type for _, source in _connected(node)]
        if isinstance(op, Result):
            _add_ports(element, "input", 0, [(type, ()) for type in inputs], node.rt_info)
            if names := _output_names(node):
                element.set("output_names", legal(join_names(names)))
            return
        _add_ports(element, "input", 0, [(type, ()) for type in inputs], {})
        outputs = [(port.type, _tensor_names(port)) for port in node.out_ports().values()]
        _add_ports(element, "output", len(inputs), outputs, node.rt_info)
        for idx, port in node.out_ports().items():
            network.places[port] = network.count - 1, len(inputs) + idx
        for body, _ in bodies.values():
            element.append(body)

    def _bodies(self, node: Node) -> dict[str, tuple[Element, dict[int, int]]]:
        """Return the element of each region, and the ids of its layers."""
        bodies: dict[str, tuple[Element, dict[int, int]]] = {}
        for prefix in BODIES[type(node.op)] if isinstance(node.op, RegionOp) else ():
            body = etree.Element(f"{prefix}_body" if prefix else "body")
            name = prefix or "body"
            bodies[name] = body, self.add(body, node.regions[name])
        return bodies

    def _constant(self, network: _Network, node: Node, op: Constant) -> None:
        """Add a constant; one that is stored as f16 is followed by its conversion to f32."""
        values, out = node.data, node.out_port(0)
        if values is None:
            raise InternalError(f"{node.name}: a Constant has data, got none")
        name, names = network.names[node.id], _tensor_names(out)
        if not (self.half and op.element_type is DType.F32 and fits_half(values)):
            self._stored(network, name, op, values, names, node.rt_info, _is_lowest_first(out))
            network.places[out] = network.count - 1, 0
            return
        stored = Constant(DType.F16)
        self._stored(network, f"{name}_compressed", stored, values.astype(np.float16), (), node.rt_info)
        widen = Convert(destination_type=op.element_type)
        element = network.layer(name, widen, texts(widen, "opset1"), DECOMPRESSION)
        _add_ports(element, "input", 0, [(TensorType(DType.F16, values.shape), ())], {})
        _add_ports(element, "output", 1, [(out.type, names)], {})
        network.links.append(((network.count - 1, 0), (network.count - 2, 0)))
        network.places[out] = network.count - 1, 1

    def _stored(
        self,
        network: _Network,
        name: str,
        op: Constant,
        values: Array,
        names: tuple[str, ...],
        info: Info,
        lowest_first: bool = False,
    ) -> None:
        """Add a constant, and its data to the `.bin` file."""
        offset, size = self.weights.add(op.element_type, values, lowest_first)
        stored_at = {"shape": shape_text(values.shape), "offset": str(offset), "size": str(size)}
        element = network.layer(name, op, texts(op, "opset1") | stored_at, info)
        _add_ports(element, "output", 0, [(TensorType(op.element_type, values.shape), names)], info)


def legal(text: str) -> str:
    r"""Return a text that XML can hold: other characters are written as `\x01`."""
    return ILLEGAL_CHARS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _order(graph: Graph) -> list[Node]:
    """Return the nodes, producers before consumers, with inputs and outputs of the network in their order."""
    ends = {node.id for node in (*graph.parameters, *graph.results)}
    return [*graph.parameters, *(n for n in graph.order() if n.id not in ends), *graph.results]


def _connected(node: Node) -> list[tuple[InPort, OutPort]]:
    return [(port, port.source) for port in node.in_ports().values() if port.source is not None]


def _tensor_names(port: OutPort) -> tuple[str, ...]:
    """Return the names of a tensor, and of the network's outputs that are this tensor."""
    result_names = [p.node.out_port(0).names for p in port.destinations if isinstance(p.node.op, Result)]
    return tuple(dict.fromkeys(name for names in (port.names, *result_names) for name in names))


def _output_names(node: Node) -> tuple[str, ...]:
    """Return the names of an output of the network, its own ones first."""
    return tuple(dict.fromkeys((*node.out_port(0).names, *_tensor_names(node.source(0)))))


def _sizes(op: Op) -> Info:
    """Return the names of the dynamic dimensions of an input, which shapes in files do not have."""
    dims = op.shape or () if isinstance(op, Parameter) else ()
    names = [dim.name if isinstance(dim, Var) else "" for dim in dims]
    return {SIZES: {"version": "0", "value": ",".join(names)}} if any(names) else {}


def _is_lowest_first(port: OutPort) -> bool:
    """True if a BinaryConvolution reads a constant; its bits are in the reverse order of all other constants."""
    return port.type.dtype is DType.U1 and any(p.node.type == "BinaryConvolution" for p in port.destinations)


def _add_ports(element: Element, kind: str, first: int, ports: Sequence[Port], info: Info) -> None:
    """Add inputs or outputs, numbered from `first`; the first one gets the information about the tensor."""
    if not ports:
        return
    parent = etree.SubElement(element, kind)
    for idx, (type, names) in enumerate(ports):
        port = etree.SubElement(parent, "port", {"id": str(first + idx), "precision": precision(type.dtype)})
        if names:
            port.set("names", legal(join_names(names)))
        for dim in type.dims or ():
            etree.SubElement(port, "dim").text = str(dim) if isinstance(dim, int) else "-1"
        if not idx:
            _add_info(port, {key: value for key, value in info.items() if key in TENSOR_INFORMATION})


def _add_info(element: Element, info: Info) -> None:
    if info:
        parent = etree.SubElement(element, "rt_info")
        for name, facts in info.items():
            etree.SubElement(parent, "attribute", {"name": legal(name)} | {k: legal(v) for k, v in facts.items()})
