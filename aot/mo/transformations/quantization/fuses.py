"""Operations beside FakeQuantize that its limits take over."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.middle.searches import get_tensor_in_port, get_value_in_port
from aot.mo.transformations.nodes import constant, name_of, nodes_of, value_of

LIMITS = (1, 2)  # inputs of FakeQuantize: the input range


def resolve_shared_inputs(node: Any, port_ids_to_duplicate: Any) -> None:
    """Give the other consumers of a node's constant inputs constants of their own."""
    for idx in port_ids_to_duplicate:
        value, source = value_of(node, idx), node.in_port(idx).get_source()
        others: dict[str, list[Any]] = {}
        for port in source.get_destinations():
            if port.node.id != node.id:
                others.setdefault(port.node.id, []).append(port)
        for ports in others.values():
            copy = constant(node.graph, np.array(value), f"{name_of(ports[0].node)}/duplicated")
            for port in ports:
                port.disconnect()
                copy.out_port(0).connect(port)
            copy["infer"](copy)


def _pass_over(node: Any) -> None:
    """Connect input 0 to the source of the operation before it."""
    before = node.in_port(0).get_source().node.in_port(0).get_connection()
    node.in_port(0).disconnect()
    before.add_destination(node.in_port(0))


def _is_binary(node: Any) -> bool:
    """True if the input range of a FakeQuantize is one threshold; then it has two levels."""
    same = node.in_node(1).id == node.in_node(2).id
    assert same == (node.levels == 2), f"{name_of(node)}: two levels have one threshold, got {node.levels} levels"
    return same


@transformation("middle.MulFakeQuantizeFuse")
class MulFakeQuantizeFuse:
    """FakeQuantize(x * c, low, high): FakeQuantize(x, low / c, high / c), where c is a constant above 0"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="FakeQuantize"):
            before = node.in_port(0).get_source().node
            if before.soft_get("op") != "Mul" or not before.has_and_set("can_be_fused"):
                continue
            value = get_value_in_port(before)
            factor = None if value is None or get_tensor_in_port(before) is None else value.data.get_value()
            if factor is None or np.any(factor <= 0):
                continue
            resolve_shared_inputs(node, LIMITS)
            for idx in LIMITS[: 1 if node.in_node(1).id == node.in_node(2).id else 2]:
                node.in_port(idx).data.set_value(value_of(node, idx) / factor)
            _pass_over(node)


def _mark(node: Any, is_absorbed: bool) -> None:
    """Count a consumer that makes a node useless; the node may be left out if all of its consumers do."""
    count = node.soft_get("quantized_to_fuse_count", 0) + is_absorbed
    node["quantized_to_fuse_count"] = count
    node["removable_before_quantize"] = count == len(node.out_port(0).get_destinations())


@transformation("middle.ReluQuantizeFuse")
class ReluFakeQuantizeMark:
    """ReLU before FakeQuantize gets `removable_before_quantize`: True if all consumers' input ranges begin at 0"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="FakeQuantize"):
            before, low = node.in_port(0).get_source().node, value_of(node, 1)
            if before.soft_get("op") == "ReLU":
                binary = _is_binary(node)
                if low is not None:
                    _mark(before, binary or bool(np.all(low >= 0)))


@transformation("middle.ReluQuantizeFuse")
class ClampQuantizeMark:
    """Clamp before FakeQuantize gets `removable_before_quantize`: True if it cuts off nothing of any input range"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="FakeQuantize"):
            before = node.in_port(0).get_source().node
            if before.soft_get("op") != "Clamp":
                continue
            binary = _is_binary(node)
            least, largest, low, high = value_of(before, 1), value_of(before, 2), value_of(node, 1), value_of(node, 2)
            if all(value is not None for value in (least, largest, low, high)):
                _mark(before, not binary and bool(np.all(low >= least) and np.all(high <= largest)))


@transformation("middle.ReluQuantizeFuse")
class ReluQuantizeFuse:
    """FakeQuantize(ReLU(x)): FakeQuantize(x), if `removable_before_quantize` is set"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="FakeQuantize"):
            if not node.in_port(0).get_source().node.has_and_set("removable_before_quantize"):
                continue
            if node.levels == 2:  # all elements are above a threshold below 0
                resolve_shared_inputs(node, (1,))
                threshold = value_of(node, 1)
                node.in_port(1).data.set_value(np.where(threshold < 0, -np.inf, threshold).astype(threshold.dtype))
            _pass_over(node)


@transformation("middle.quantize_fuses")
class FakeQuantizeFuse:
    """f(FakeQuantize(x, ..)): f before those inputs of FakeQuantize that its `fuse_up_to_quantize_ports` numbers"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="FakeQuantize"):
            while (port := _only(node.out_port(0))) is not None and port.node.has_valid("fuse_up_to_quantize_ports"):
                self._move_before(node, port)

    @staticmethod
    def _move_before(node: Any, port: Any) -> None:
        operation, idx = port.node, port.idx
        operation.out_port(0).get_connection().set_source(node.out_port(0))
        operation.in_port(idx).disconnect()
        for i, target in enumerate(operation["fuse_up_to_quantize_ports"]):
            copy = operation
            if i:
                counts = {"in_ports_count": len(operation.in_ports()), "out_ports_count": len(operation.out_ports())}
                copy = operation.copy_node(counts)
                for other in operation.in_ports():
                    if other != idx:
                        operation.in_port(other).get_source().connect(copy.in_port(other))
            node.in_port(target).get_connection().set_destination(copy.in_port(idx))
            copy.out_port(0).connect(node.in_port(target))
            copy["infer"](copy)


def _only(port: Any) -> Any:
    """Return the one consumer of an output; None if there are none or several."""
    destinations = port.get_destinations()
    return destinations[0] if len(destinations) == 1 else None
