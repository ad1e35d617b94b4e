"""Reshape and Transpose that move channels: ShuffleChannels and DepthToSpace."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, chain, constant, name_of, nodes_of, producer, value_of
from aot.mo.utils.arrays import int64_array

TO_NHWC, TO_NCHW = [0, 2, 3, 1], [0, 3, 1, 2]


def _is_constant(node: Any) -> bool:
    """True if input 1 is a constant."""
    return producer(node, 1).soft_get("type") == "Const"


def _transposes(node: Any, order: list[int]) -> bool:
    return _is_constant(node) and np.array_equal(value_of(node, 1), order)


def _divides_last(short: Any, long: Any) -> bool:
    """True if two dimensions of `long` are the last one of `short`, and the others are equal."""
    same = len(long) == len(short) + 1 and np.array_equal(short[:-1], long[:-2])
    return same and short[-1] == long[-2] * long[-1]


def _set_constant(node: Any, value: list[Any]) -> None:
    """Give input 1 another constant; the node is inferred by it."""
    new_node = constant(node.graph, int64_array(value), f"{name_of(node)}/input_1")
    node.in_port(1).disconnect()
    new_node.out_port(0).connect(node.in_port(1))
    new_node["infer"](new_node)
    node["override_output_shape"] = True
    node["infer"](node)


@transformation("back.ShuffleChannelPatternOptimization")
class ShuffleChannelPatternOptimization:
    """Channels of NHWC that are shuffled between two changes of layout: shuffled in NCHW"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Transpose"):
            nodes = chain(node, "Transpose", "Reshape", "Transpose", "Reshape", "Transpose")
            if nodes and self._shuffles(*nodes):
                first, divide, swap, join, last = nodes
                source = first.in_port(0).get_source()
                consumers = last.out_port(0).get_connection()
                join.out_port(0).disconnect()
                consumers.set_source(join.out_port(0))
                first.in_port(0).disconnect()
                divide.in_port(0).disconnect()
                divide.in_port(0).connect(source)
                _set_constant(divide, np.take(value_of(divide, 1), [0, 3, 4, 1, 2]).tolist())
                _set_constant(swap, [0, 2, 1, 3, 4])
                _set_constant(join, np.take(value_of(join, 1), [0, 3, 1, 2]).tolist())

    @staticmethod
    def _shuffles(first: Any, divide: Any, swap: Any, join: Any, last: Any) -> bool:
        if not (_transposes(first, TO_NHWC) and _transposes(swap, [0, 1, 2, 4, 3]) and _transposes(last, TO_NCHW)):
            return False
        targets = [value_of(node, 1) if _is_constant(node) else None for node in (divide, join)]
        if not all(t is not None and t.size == n and t[0] == -1 for t, n in zip(targets, (5, 4), strict=True)):
            return False
        shapes = [[port.data.get_shape() for port in (n.in_port(0), n.out_port(0))] for n in (divide, join)]
        return _divides_last(*shapes[0]) and _divides_last(*reversed(shapes[1]))


def _regrouped(node: Any, order: list[int]) -> tuple[Any, Any, Any, Any] | None:
    """Return the source, its shape, the shape between and the last shape of Reshape, Transpose by `order`, Reshape.

    None for other operations, and for shapes that are no constants above 0.
    """
    nodes = chain(node, "Reshape", "Transpose", "Reshape")
    if not nodes or not _transposes(nodes[1], order) or not (_is_constant(nodes[0]) and _is_constant(nodes[2])):
        return None
    between, last = value_of(nodes[0], 1), value_of(nodes[2], 1)
    if between.size != len(order) or last.size != 4 or np.any(between <= 0) or np.any(last <= 0):
        return None
    return nodes[0].in_port(0).get_source(), nodes[0].in_port(0).data.get_shape(), between, last


@transformation("back.ShuffleChannelPatternOptimization")
class ShuffleChannelFusion:
    """Reshape, Transpose and Reshape that shuffle channels: ShuffleChannels"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Reshape"):
            nodes = _regrouped(node, [0, 2, 1, 3, 4])
            if nodes is None:
                continue
            source, shape, between, last = nodes
            if np.array_equal(shape, last) and np.array_equal(between[[0, 3, 4]], np.take(shape, [0, 2, 3])):
                attrs = {"name": name_of(node), "group": between[1]}
                new_node = add(graph, "shufflechannel.ShuffleChannels", source, **attrs)
                node.out_port(0).get_connection().set_source(new_node.out_port(0))


@transformation("back.ShuffleChannelPatternOptimization")
class DepthToSpaceFusion:
    """Reshape, Transpose and Reshape that put blocks of channels side by side: DepthToSpace, depth first"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Reshape"):
            nodes = _regrouped(node, [0, 1, 4, 2, 5, 3])
            if nodes is None:
                continue
            source, shape, between, last = nodes
            block = between[2]
            is_block = np.array_equal(between[[0, 4, 5]], np.take(shape, [0, 2, 3])) and between[1] == block
            output_shape = [shape[0], shape[1] // (block * block), shape[2] * block, shape[3] * block]
            if is_block and np.array_equal(output_shape, last):
                attrs = {"name": name_of(node), "block_size": block, "mode": "depth_first"}
                new_node = add(graph, "depth_to_space.DepthToSpaceOp", source, **attrs)
                node.out_port(0).get_connection().set_source(new_node.out_port(0))
