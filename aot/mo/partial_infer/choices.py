"""Inference of Select and FakeQuantize: their operands may be of several types."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.partial_infer.by_definition import infer_by_definition
from aot.mo.utils.arrays import clarify_partial_shape, is_fully_defined, masked_arrays, shape_array
from aot.mo.utils.broadcasting import bi_directional_broadcasting, bi_directional_shape_broadcasting
from aot.mo.utils.error import Error
from aot.runtime.abi import DType


def fake_quantize_infer(node: Any) -> None:
    """Infer FakeQuantize in f32, whatever the types of its five inputs are."""
    infer_by_definition(node, ("FakeQuantize", "opset1"), DType.F32)


def select_infer(node: Any) -> None:
    """Set the broadcast shape, and the value if the condition chooses elements that are known.

    The condition of TensorFlow's operation (`format` is tf) may have one dimension, the first of the output.
    """
    name, rule = node.soft_get("name", node.id), node.soft_get("auto_broadcast", "numpy")
    count = sum(not port.disconnected() for port in node.in_ports().values())
    assert count == 3, f"{name}: Select has a condition and two tensors, got {count} inputs"
    data = [node.in_port(i).data for i in range(3)]
    shapes = [d.get_shape() for d in data]
    if rule == "pdpd":
        raise Error("{}: Select broadcasts by numpy or none, got pdpd", name)
    shape = _broadcast(node, shapes, name) if rule == "numpy" else _equal(shapes, name)
    node.out_port(0).data.set_shape(shape)
    condition, *values = (d.get_value() for d in data)
    if condition is None:
        return
    if is_fully_defined(condition) and np.size(condition) and np.all(condition == condition.flat[0]):
        selected = values[0 if condition.flat[0] else 1]
        if selected is not None and is_fully_defined(shape):
            whole = bi_directional_broadcasting(selected, shape) if rule == "numpy" else selected
            node.out_port(0).data.set_value(whole)
    elif all(value is not None for value in values):
        node.out_port(0).data.set_value(masked_arrays.where(condition, *values))


def _broadcast(node: Any, shapes: list[Any], name: str) -> Any:
    condition, *branches = shapes
    shape = bi_directional_shape_broadcasting(*branches)
    if shape is not None and node.soft_get("format", None) == "tf" and len(condition) == 1:
        rule = f"{name}: a condition of one dimension has the size of the first one of {shape}, got {condition}"
        known = len(shape) and is_fully_defined(condition[0]) and is_fully_defined(shape[0])
        assert not known or condition[0] == shape[0], rule
        condition = shape_array([*condition, *[1] * max(len(shape) - 1, 0)])
    shape = None if shape is None else bi_directional_shape_broadcasting(shape, condition)
    assert shape is not None, f"{name}: shapes of Select must be broadcastable, got {', '.join(map(str, shapes))}"
    return shape


def _equal(shapes: list[Any], name: str) -> Any:
    try:
        return clarify_partial_shape(shapes)
    except AssertionError as error:
        raise AssertionError(f"{name}: shapes of Select are equal, got {', '.join(map(str, shapes))}") from error
