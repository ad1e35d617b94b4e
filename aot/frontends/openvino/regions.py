"""Bodies of If, Loop and TensorIterator: which elements hold them, and their port maps as attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aot.frontends.openvino.xml import Element, Layer, integer
from aot.ir.graph import Graph, Node
from aot.ir.op import Op, RegionOp
from aot.opset.control_flow import If, Loop, TensorIterator
from aot.opset.port_maps import BackEdge, InputMap, OutputMap
from runtime.errors import CorruptError, InternalError

MAX_DEPTH = 32  # bodies within bodies

BODIES: dict[type[RegionOp], tuple[str, ...]] = {If: ("then", "else"), Loop: ("",), TensorIterator: ("",)}


@dataclass(frozen=True, slots=True)
class Region:
    """A body's graph, and its nodes by layer id."""

    graph: Graph
    nodes: Mapping[int, Node]


def bodies(cls: type[Op], layer: Layer) -> dict[str, Element]:
    """Name of each region and its element; CorruptError where one is missing."""
    if not issubclass(cls, RegionOp):
        return {}
    found: dict[str, Element] = {}
    for prefix in BODIES[cls]:
        tag = f"{prefix}_body" if prefix else "body"
        element = layer.element.find(tag)
        if element is None:
            raise CorruptError(f"layer {layer.name!r}: {cls.type} needs <{tag}>, got none")
        found[prefix or "body"] = element
    return found


def region_op(cls: type[Op], layer: Layer, regions: Mapping[str, Region]) -> RegionOp:
    """The operation with its port maps: port and layer ids of the file become positions."""
    if cls is If:
        then = _Maps(layer, "then_port_map", regions["then"]).read()
        return If(*then, *_Maps(layer, "else_port_map", regions["else"]).read())
    maps = _Maps(layer, "port_map", regions["body"])
    inputs, outputs = maps.read()
    edges = maps.back_edges()
    if cls is Loop:
        return Loop(inputs, outputs, edges, maps.purpose("input"), maps.purpose("output"))
    if cls is TensorIterator:
        return TensorIterator(inputs, outputs, edges)
    raise InternalError(f"{cls.type}: no port maps known for it")


class _Maps:
    def __init__(self, layer: Layer, tag: str, region: Region) -> None:
        self.layer, self.region = layer, region
        self.where = f"layer {layer.name!r}: {tag}"
        self.elements = [e for parent in layer.element.iterchildren(tag) for e in parent]

    def read(self) -> tuple[tuple[InputMap, ...], tuple[OutputMap, ...]]:
        inputs = tuple(
            InputMap(self._position(e, self.layer.inputs), self._parameter(self._inner(e)), *self._slice(e))
            for e in self._plain("input")
        )
        ports = tuple(p.id for p in self.layer.outputs)
        outputs = tuple(
            OutputMap(self._position(e, ports), self._result(self._inner(e)), *self._slice(e))
            for e in self._plain("output")
        )
        return inputs, outputs

    def back_edges(self) -> tuple[BackEdge, ...]:
        found = [e for parent in self.layer.element.iterchildren("back_edges") for e in parent.iterchildren("edge")]
        pairs = [(integer(e, "from-layer", self.where), integer(e, "to-layer", self.where)) for e in found]
        return tuple(BackEdge(self._result(a), self._parameter(b)) for a, b in pairs)

    def purpose(self, tag: str) -> int:
        """Position of the parameter that counts iterations, or of the result that is the condition; -1 without one."""
        wanted = "current_iteration" if tag == "input" else "execution_condition"
        for e in self.elements:
            if e.tag == tag and e.get("purpose") == wanted:
                return self._parameter(self._inner(e)) if tag == "input" else self._result(self._inner(e))
        return -1

    def _inner(self, e: Element) -> int:
        return integer(e, "internal_layer_id", self.where)

    def _plain(self, tag: str) -> list[Element]:
        return [e for e in self.elements if e.tag == tag and integer(e, "external_port_id", self.where) != -1]

    def _slice(self, e: Element) -> tuple[int | None, int, int, int, int]:
        axis = integer(e, "axis", self.where, -(1 << 40))
        if axis == -(1 << 40):
            return None, 0, -1, 1, 1
        start, end = integer(e, "start", self.where, 0), integer(e, "end", self.where, -1)
        return axis, start, end, integer(e, "stride", self.where, 1), integer(e, "part_size", self.where, 1)

    def _position(self, e: Element, ports: tuple[int, ...]) -> int:
        id = integer(e, "external_port_id", self.where)
        if id not in ports:
            raise CorruptError(f"{self.where}: external_port_id must be one of {list(ports)}, got {id}")
        return ports.index(id)

    def _parameter(self, id: int) -> int:
        return self._internal(id, self.region.graph.parameters, "Parameter")

    def _result(self, id: int) -> int:
        return self._internal(id, self.region.graph.results, "Result")

    def _internal(self, id: int, nodes: list[Node], kind: str) -> int:
        node = self.region.nodes.get(id)
        if node is None or node not in nodes:
            got = "none" if node is None else node.type
            raise CorruptError(f"{self.where}: layer {id} of the body must be a {kind}, got {got}")
        return nodes.index(node)
