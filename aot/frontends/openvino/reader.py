"""Reads OpenVINO IR, versions 10 and 11.

.xml -> records (xml) -> every type known? -> nodes (attributes, constants, regions) -> edges -> Graph
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.frontends.openvino.attributes import Symbols, build, element_type, partial_shape, static_shape
from aot.frontends.openvino.constants import Weights
from aot.frontends.openvino.interface import apply_version_10
from aot.frontends.openvino.regions import MAX_DEPTH, Region, bodies, region_op
from aot.frontends.openvino.xml import ROUNDED, SIZES, Edge, Element, Layer, Network, network, parse, rt_info
from aot.frontends.unsupported import Problem, UnconvertedError, listing
from aot.ir.graph import Graph, InPort, Node, Origin, OutPort
from aot.ir.op import Op, RegionOp
from aot.ir.registry import find
from aot.ir.types import Dim
from aot.opset.control.infrastructure import Constant, Parameter
from aot.opset.elementwise.conversion import Convert, Rounded
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, CorruptError, UnsupportedError

LATEST_OPSET = 17
TOKENIZER_TYPES = frozenset(  # operations of the package openvino_tokenizers
    "BPETokenizer BytesToChars CaseFold CharsMapNormalization CharsToBytes CombineSegments EqualStr FuzeRagged "
    "NormalizeUnicode RaggedTensorPack RaggedToDense RaggedToRagged RaggedToSparse RegexNormalization RegexSplit "
    "SentencepieceDetokenizer SentencepieceStreamDetokenizer SentencepieceTokenizer SpecialTokensSplit "
    "StringTensorPack StringTensorUnpack StringToHash TrieTokenizer Truncate UTF8Validate "
    "UnigramTokenizer VocabDecoder VocabEncoder WordpieceTokenizer".split()
)
TOKENIZER_ADVICE = (
    "run the tokenizer outside, by openvino_tokenizers or transformers; the network takes the numbers it gives"
)
SHOWN_LAYERS = 10  # layer names per type that an error lists

P = TypeVar("P")
Ports = dict[int, dict[int, P]]  # by layer id and port id


@dataclass(frozen=True, slots=True)
class _Body:
    """A network whose operations all have classes."""

    name: str
    network: Network
    classes: dict[int, type[Op]]
    bodies: dict[int, dict[str, _Body]]
    binary: frozenset[int]  # ids of layers whose output a BinaryConvolution reads


def read(path: Path, weights: Path | None = None) -> Graph:
    """Return the network of an IR file; `weights`: the `.bin` file, by default the one beside it."""
    root = parse(path)
    if root.tag != "net":
        raise CorruptError(f"{path.name}: an IR file must begin with <net>, got <{str(root.tag)[:40]}>")
    version = root.get("version", "")
    if version not in ("10", "11"):
        raise UnsupportedError(f"{path.name}: IR versions 10 and 11 can be read, got {version[:20] or 'none'}")
    reader = _Reader(path.name, Weights(weights if weights is not None else path.with_suffix(".bin")))
    body = reader.survey(root, root.get("name", ""), 0)
    reader.refuse_unsupported()
    graph = reader.region(body).graph
    _name_sizes(graph)
    for element in root:
        if element.tag == "rt_info":
            graph.rt_info.update(rt_info(element))
        elif element.tag not in ("layers", "edges"):
            graph.rt_info[str(element.tag)] = rt_info(element)
    if version == "10":
        apply_version_10(graph)
    return graph


def _name_sizes(graph: Graph) -> None:
    """Give dynamic dimensions of inputs the names that `aot` has written; equal names with other ranges stay apart."""
    parameters = [(node, node.op, node.rt_info.pop(SIZES, {})) for node in graph.parameters]
    named: dict[str, Var] = {}
    for node, op, info in parameters:
        if not isinstance(op, Parameter):
            continue
        shape, names = op.shape, info.get("value", "").split(",")
        if shape is None or len(names) != len(shape) or not any(names):
            continue
        sizes: list[Dim] = []
        for dim, name in zip(shape, names, strict=True):
            if isinstance(dim, Var) and re.fullmatch(r"[A-Za-z_][\w.]*", name):
                new = replace(dim, name=name)
                sizes.append(new if named.setdefault(name, new) == new else dim)
            else:
                sizes.append(dim)
        node.op = replace(op, shape=tuple(sizes))


class _Reader:
    def __init__(self, file: str, weights: Weights) -> None:
        self.file, self.weights = file, weights
        self.symbols = Symbols()
        self.unsupported: list[Layer] = []

    def survey(self, element: Element, name: str, depth: int) -> _Body:
        """Return the records of a network and of its bodies, with the class of each layer."""
        if depth > MAX_DEPTH:
            raise CorruptError(f"{self.file}: bodies can have at most {MAX_DEPTH} levels, got more in {name!r}")
        records = network(element, self.file if not depth else f"{self.file}: {name!r}")
        classes: dict[int, type[Op]] = {}
        below: dict[int, dict[str, _Body]] = {}
        for layer in records.layers:
            cls = _definition(layer)
            if cls is None:
                self.unsupported.append(layer)
                continue
            classes[layer.id] = cls
            inner = bodies(cls, layer)
            if inner:
                below[layer.id] = {k: self.survey(e, f"{layer.name}.{k}", depth + 1) for k, e in inner.items()}
        products = {id for id, cls in classes.items() if cls.type == "BinaryConvolution"}
        binary = frozenset(e.from_layer for e in records.edges if e.to_layer in products)
        return _Body(name, records, classes, below, binary)

    def refuse_unsupported(self) -> None:
        if self.unsupported:
            layers: dict[str, list[str]] = defaultdict(list)
            for layer in self.unsupported:
                layers[f"{layer.type} ({layer.version or 'no version'})"].append(layer.name)
            lines = [f"{kind} in {_names(named)}" for kind, named in sorted(layers.items())]
            text = listing(f"{self.file}: operations are not supported", lines)
            advice = TOKENIZER_ADVICE if any(layer.type in TOKENIZER_TYPES for layer in self.unsupported) else ""
            raise UnconvertedError(text, [_problem(layer) for layer in self.unsupported], advice)

    def region(self, body: _Body) -> Region:
        """Return the graph of a network, with its nodes by layer id."""
        graph = Graph(name=body.name, file=self.file)
        nodes: dict[int, Node] = {}
        inputs: Ports[InPort] = {}
        outputs: Ports[OutPort] = {}
        for layer in body.network.layers:
            try:
                node = self._node(graph, layer, body)
            except AotError as error:
                error.add_note(f"in layer {layer.name!r} (id {layer.id}) of {self.file}")
                raise
            nodes[layer.id] = node
            inputs[layer.id] = dict(zip(layer.inputs, node.in_ports().values(), strict=True))
            outputs[layer.id] = {p.id: node.out_port(i) for i, p in enumerate(layer.outputs)}
        self._connect(body, nodes, inputs, outputs)
        graph.order()  # raises ModelError for a cycle
        for node in graph.results:
            node.out_port(0).add_tensor_names(node.source(0).names)
        return Region(graph, nodes)

    def _node(self, graph: Graph, layer: Layer, body: _Body) -> Node:
        cls = body.classes[layer.id]
        regions = {name: self.region(b) for name, b in body.bodies.get(layer.id, {}).items()}
        data = None
        if cls is Constant:
            shape = static_shape(layer.data.get("shape", ""), layer.name)
            dtype = _constant_type(layer)
            offset, size = _number(layer, "offset"), _number(layer, "size")
            try:
                data = self.weights.constant(dtype, shape, offset, size, _is_lowest_first(body, layer))
            except CorruptError as error:
                raise CorruptError(f"layer {layer.name!r}: {error}") from error
        if cls in (Constant, Parameter) and (layer.inputs or len(layer.outputs) != 1):
            got = f"{len(layer.inputs)} and {len(layer.outputs)}"
            raise CorruptError(f"layer {layer.name!r}: a {cls.type} must have no inputs and one output, got {got}")
        op = self._op(cls, layer, regions)
        if isinstance(op, Convert) and layer.rt_info.pop(ROUNDED, None) is not None:
            op = Rounded()
        # A Result has no output port in files; in graphs it has one, with the names of the network's output.
        count = len(layer.outputs) or (1 if cls.type in ("Result", "Assign") else 0)
        origin, unconnected = Origin((layer.name,), self.file), [None] * len(layer.inputs)
        node = graph.add(op, *unconnected, name=layer.name, origin=origin, outputs=count, data=data)
        node.rt_info = layer.rt_info
        node.regions = {name: region.graph for name, region in regions.items()}
        for i, port in enumerate(layer.outputs):
            node.out_port(i).names = port.names
        if layer.output_names:
            node.out_port(0).names = layer.output_names
        return node

    def _op(self, cls: type[Op], layer: Layer, regions: dict[str, Region]) -> Op:
        if issubclass(cls, RegionOp):
            return region_op(cls, layer, regions)
        return build(cls, layer.data, lambda text: partial_shape(text, layer.name, self.symbols))

    def _connect(self, body: _Body, nodes: dict[int, Node], inputs: Ports[InPort], outputs: Ports[OutPort]) -> None:
        for edge in body.network.edges:
            for id in (edge.from_layer, edge.to_layer):
                if id not in nodes:
                    raise CorruptError(f"{self.file}: edge {_text(edge)}: there is no layer {id} in {body.name!r}")
            source = outputs[edge.from_layer].get(edge.from_port)
            target = inputs[edge.to_layer].get(edge.to_port)
            if source is None:
                name = nodes[edge.from_layer].name
                raise CorruptError(f"layer {name!r}: no output port {edge.from_port}, but an edge from it")
            if target is None:
                name = nodes[edge.to_layer].name
                raise CorruptError(f"layer {name!r}: no input port {edge.to_port}, but an edge to it")
            if source.node.type == "Result":
                raise CorruptError(f"layer {source.node.name!r}: a Result has no outputs, but an edge from it")
            if target.source is not None:
                raise CorruptError(
                    f"layer {target.node.name!r}: there must be one edge into input port {edge.to_port}, got two"
                )
            target.connect(source)
        for ports in inputs.values():
            for id, port in ports.items():
                if port.source is None:
                    raise CorruptError(f"layer {port.node.name!r}: input port {id} must be connected, got no edge")


def _definition(layer: Layer) -> type[Op] | None:
    """Return the class of a layer's type in its operation set; None if there is none."""
    number = _opset(layer)
    if number == 0:
        return find(layer.type, layer.version.strip())
    return find(layer.type, number) if number <= LATEST_OPSET else None


def _opset(layer: Layer) -> int:
    """Return the number of a layer's operation set; 0 for a set that is not OpenVINO's."""
    matched = re.fullmatch(r"opset(\d{1,3})", layer.version.strip().lower())
    return int(matched.group(1)) if matched else 0


def _problem(layer: Layer) -> Problem:
    number = _opset(layer)
    reason = f"there is no such operation in {layer.version or 'a set without a name'}"
    return Problem(layer.name, layer.type, "" if number else layer.version, number, reason)


def _is_lowest_first(body: _Body, layer: Layer) -> bool:
    """True for bits that a BinaryConvolution reads: they are packed in the reverse order of all other constants."""
    return layer.id in body.binary


def _constant_type(layer: Layer) -> DType:
    text = layer.data.get("element_type", "")
    try:
        return element_type(text)
    except ValueError:
        rule = "element_type must be an element type"
        raise CorruptError(f"layer {layer.name!r}: {rule}, got {text[:40]!r}") from None


def _number(layer: Layer, key: str) -> int:
    text = layer.data.get(key, "")
    if not re.fullmatch(r"-?\d{1,19}", text.strip()):
        raise CorruptError(f"layer {layer.name!r}: {key} must be an integer, got {text[:40]!r}")
    return int(text)


def _names(layers: list[str]) -> str:
    more = len(layers) - SHOWN_LAYERS
    return ", ".join(layers[:SHOWN_LAYERS]) + (f" and {more} more" if more > 0 else "")


def _text(edge: Edge) -> str:
    return f"{edge.from_layer}.{edge.from_port} -> {edge.to_layer}.{edge.to_port}"
