"""Bodies of If, Loop and TensorIterator: their elements, and their port maps as attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.openvino.xml import Element, Layer, integer
from aot.ir.graph import Graph, Node
from aot.ir.op import Op, RegionOp
from aot.opset.control.control_flow import If, Loop, TensorIterator
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.runtime.errors import CorruptError, InternalError

MAX_DEPTH = 32  # nesting depth of bodies

BODIES: dict[type[RegionOp], tuple[str, ...]] = {If: ("then", "else"), Loop: ("",), TensorIterator: ("",)}


@dataclass(frozen=True, slots=True)
class Region:
    """A body's graph, and its nodes by layer id."""

    graph: Graph
    nodes: Mapping[int, Node]


def bodies(cls: type[Op], layer: Layer) -> dict[str, Element]:
    """Return the element of each region by the region's name; CorruptError if one is missing."""
    if not issubclass(cls, RegionOp):
        return {}
    elements: dict[str, Element] = {}
    for prefix in BODIES[cls]:
        tag = f"{prefix}_body" if prefix else "body"
        element = layer.element.find(tag)
        if element is None:
            raise CorruptError(f"layer {layer.name!r}: {cls.type} needs <{tag}>, got none")
        elements[prefix or "body"] = element
    return elements


def region_op(cls: type[Op], layer: Layer, regions: Mapping[str, Region]) -> RegionOp:
    """Return the operation with its port maps: port and layer ids of the file become positions."""
    if cls is If:
        sides = [_Maps(layer, f"{name}_port_map", regions[name]) for name in ("then", "else")]
        port_maps = [side.read() for side in sides]
        for side, (inputs, outputs) in zip(sides, port_maps, strict=True):
            side.check(inputs, outputs, (), -1)
        (then_in, then_out), (else_in, else_out) = port_maps
        return If(then_in, then_out, else_in, else_out)
    maps = _Maps(layer, "port_map", regions["body"])
    inputs, outputs = maps.read()
    edges = maps.back_edges()
    counter = maps.purpose("input") if cls is Loop else -1
    maps.check(inputs, outputs, edges, counter)
    if cls is Loop:
        return Loop(inputs, outputs, edges, counter, maps.purpose("output"))
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
        edges = [e for parent in self.layer.element.iterchildren("back_edges") for e in parent.iterchildren("edge")]
        pairs = [(integer(e, "from-layer", self.where), integer(e, "to-layer", self.where)) for e in edges]
        return tuple(BackEdge(self._result(a), self._parameter(b)) for a, b in pairs)

    def purpose(self, tag: str) -> int:
        """Return the position of the parameter that counts iterations, or of the condition's result; -1 without one."""
        purpose = "current_iteration" if tag == "input" else "execution_condition"
        for e in self.elements:
            if e.tag == tag and e.get("purpose") == purpose:
                return self._parameter(self._inner(e)) if tag == "input" else self._result(self._inner(e))
        return -1

    def check(
        self, inputs: Sequence[InputMap], outputs: Sequence[OutputMap], edges: Sequence[BackEdge], counter: int
    ) -> None:
        """Raise CorruptError unless each Parameter that the body reads, and each output port, has one map."""
        parameters = self.region.graph.parameters
        input_counts = Counter(m.parameter for m in inputs)
        carried = Counter(e.parameter for e in edges)
        for i, node in enumerate(parameters):
            read = bool(node.out_port(0).destinations) or i in carried
            if (
                input_counts[i] > 1
                or carried[i] > 1
                or (read and not input_counts[i] and (i != counter or i in carried))
            ):
                raise CorruptError(
                    f"{self.where}: one input for each Parameter of the body, and one back edge at most, "
                    f"got {input_counts[i]} and {carried[i]} for {node.name!r}"
                )
        output_counts = Counter(m.external for m in outputs)
        for i, port in enumerate(self.layer.outputs):
            if output_counts[i] != 1:
                rule = "there must be one result for each output port"
                raise CorruptError(f"{self.where}: {rule}, got {output_counts[i]} for port {port.id}")

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
