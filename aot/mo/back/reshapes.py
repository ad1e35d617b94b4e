"""Reshapes whose output gets another shape."""

from __future__ import annotations

from typing import Any

from aot.mo.graph.graph import Node


def set_reshape_new_output_shape(reshape_node: Node, new_output_shape: Any) -> None:
    """Set the shape of the output, and the input that says it, if there is one."""
    reshape_node.out_port(0).data.set_shape(new_output_shape)
    if sum(not port.disconnected() for port in reshape_node.in_ports().values()) == 2:
        reshape_node.in_port(1).data.set_value(new_output_shape)
