"""Marks of inputs and outputs with data in the right layout, whatever the layout of the graph is."""

from __future__ import annotations

from aot.mo.graph.graph import Node

_MARKS = {"in": "correct_in_data_layout", "out": "correct_out_data_layout"}


def _marked(node: Node, side: str) -> set[int]:
    assert node.soft_get("kind") == "op", f"{node.id}: an operation has marks of layouts, got {node.soft_get('kind')}"
    return node.attrs().get(_MARKS[side], set())


def _mark(node: Node, side: str, port: int) -> None:
    node[_MARKS[side]] = _marked(node, side) | {port}


def is_input_data_in_correct_layout(node: Node, port_ind: int) -> bool:
    return port_ind in _marked(node, "in")


def is_output_data_in_correct_layout(node: Node, port_ind: int) -> bool:
    return port_ind in _marked(node, "out")


def mark_input_as_in_correct_layout(node: Node, port_ind: int) -> None:
    _mark(node, "in", port_ind)


def mark_output_as_in_correct_layout(node: Node, port_ind: int) -> None:
    _mark(node, "out", port_ind)


def mark_as_correct_data_layout(node: Node) -> None:
    """Mark all inputs and outputs of an operation."""
    for port in node.in_ports():
        _mark(node, "in", int(port))
    for port in node.out_ports():
        _mark(node, "out", int(port))
