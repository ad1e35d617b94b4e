"""Axes: counted from the end, and inference of Transpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.partial_infer.by_definition import infer_by_definition


def get_canonical_axis_index(shape: Any, axis: Any) -> Any:
    """Return an axis that may be counted from the end as one from the beginning."""
    return len(shape) + axis if axis < 0 else axis


def transpose_infer(node: Any) -> None:
    """Infer Transpose: by the order at input 1, or in reverse order where attribute `reverse_order` is set."""
    count = sum(not port.disconnected() for port in node.in_ports().values())
    reverse, name = node.has_and_set("reverse_order"), node.soft_get("name", node.id)
    wanted = 1 if reverse else 2
    assert count == wanted, f"{name}: Transpose has an order or reverse_order, {wanted} inputs in all, got {count}"
    if not reverse:
        infer_by_definition(node, ("Transpose", "opset1"))
        return
    value, shape = node.in_port(0).data.get_value(), node.in_port(0).data.get_shape()
    if value is not None:
        node.out_port(0).data.set_value(np.transpose(value))
    else:
        node.out_port(0).data.set_shape(shape[::-1])
