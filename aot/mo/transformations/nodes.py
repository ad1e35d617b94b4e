"""Operations that transformations put into a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph, Node, Port
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class


def add(graph: Graph, kind: str, *operands: Any, **attrs: Any) -> Any:
    """Add an operation of the library, `module.Class`, and return it.

    An operand is an output port, a node (its output 0), a value (a constant), or None for an input that stays free.
    """
    module, _, name = kind.partition(".")
    result = library_class(module, name)(graph, attrs).create_node()
    for idx, operand in enumerate(operands):
        if operand is not None:
            result.add_input_port(idx, skip_if_exist=True)
            _connect(result, idx, operand)
    return result


def _connect(node: Any, idx: int, operand: Any) -> None:
    if isinstance(operand, (Port, Node)):
        port = operand if isinstance(operand, Port) else operand.out_port(0)
        names = port.get_tensor_debug_info()
        port.connect(node.in_port(idx))
        if names:
            port.set_tensor_debug_info(names)  # in the front phase each edge has its own
        return
    constant_node = constant(node.graph, operand, f"{node.name}/input_{idx}")
    constant_node.out_port(0).connect(node.in_port(idx))
    if node.graph.stage != "front":
        constant_node["infer"](constant_node)


def constant(graph: Graph, value: Any, name: str) -> Any:
    """Add a constant and return it."""
    return Const(graph, {"name": name, "value": value}).create_node()


def name_of(node: Any) -> str:
    return node.soft_get("name", node.id)


def move(node: Any, idx: int, new_node: Any, to: int = 0) -> None:
    """Move the source of one operation's input to an input of another one."""
    node.in_port(idx).get_connection().set_destination(new_node.in_port(to))


def source_of(node: Any, idx: int) -> Any:
    """Return the output port that an input reads; None for a free input."""
    return node.in_port(idx).get_source() if node.is_in_port_connected(idx) else None


def value_of(node: Any, idx: int) -> Any:
    """Return the known value of an input; None for another one."""
    return node.in_port(idx).data.get_value() if node.is_in_port_connected(idx) else None


def producer(node: Any, idx: int = 0) -> Any:
    """Return the operation that makes an input; None for a free input."""
    source = source_of(node, idx)
    return None if source is None else source.node


def only_consumer(node: Any) -> Any:
    """Return the input that reads output 0; None if there are none or several."""
    destinations = node.out_port(0).get_destinations()
    return destinations[0] if len(destinations) == 1 else None


def chain(node: Any, *types: str) -> list[Any]:
    """Return operations of these types that end at `node`, each the only consumer of the one before, by input 0.

    Empty if they are not there.
    """
    nodes = [node]
    for kind in reversed(types):
        last = nodes[0]
        if last is None or last.soft_get("type") != kind or (last is not node and only_consumer(last) is None):
            return []
        nodes.insert(0, producer(last))
    return nodes[1:]


def nodes_of(graph: Graph, **attrs: Any) -> list[Any]:
    """Return the operations with these values of attributes."""
    nodes: list[Any] = graph.get_op_nodes(**attrs)
    return nodes


def is_single(graph: Graph) -> bool:
    """True if a graph's inputs and constants have no floats but f32, which constants of transformations are."""
    kinds = [node.soft_get("data_type", None) for node in nodes_of(graph, op="Parameter")]
    kinds += [np.asarray(node.value).dtype for node in nodes_of(graph, op="Const")]
    return not {np.dtype(kind).name for kind in kinds if kind is not None} & {"float16", "float64", "bfloat16"}
