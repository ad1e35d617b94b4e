"""Inference of conversions to types with several elements in a byte, and of operands' common types."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.partial_infer.by_definition import Known, infer_by_definition, infer_types_by_definition
from aot.mo.utils.error import InferenceError
from aot.mo.utils.type_utils import override_data_type_of_constant
from aot.mo.utils.types import PACKED

NIBBLES = {PACKED["u4"]: (0, 15), PACKED["i4"]: (-8, 7)}  # smallest and largest number


def cast_infer(node: Any, otherwise: Known = (None, None)) -> None:
    """Infer Convert. A value of four-bit numbers is packed, the first of two in the lower half of a byte.

    Its data node says type and shape of the elements: attributes `force_type` and `force_shape`.
    """
    kind = node.soft_get("dst_type", None)
    value = node.in_port(0).data.get_value()
    if kind not in NIBBLES or value is None:
        infer_by_definition(node, otherwise)
        return
    low, high = NIBBLES[kind]
    whole = np.asarray(value)
    if np.any((whole < low) | (whole > high)):
        raise InferenceError("{}: numbers lie in [{}, {}], got {}", node.soft_get("name", node.id), low, high, whole)
    flat = whole.reshape(-1).astype(np.int64) & 15
    flat = np.pad(flat, (0, len(flat) % 2))
    data = node.out_node(0)
    data["force_shape"], data["force_type"] = np.asarray(whole.shape), "U4" if low == 0 else "I4"
    node.out_port(0).data.set_value((flat[::2] | flat[1::2] << 4).astype(np.uint8))


def elementwise_type_infer(node: Any, otherwise: Known = (None, None)) -> None:
    """Give a constant operand and the output the element type of the other operand."""
    ports = node.in_ports()
    if all(i in ports and ports[i].is_data_type_defined() for i in (0, 1)):
        override_data_type_of_constant(node)
    infer_types_by_definition(node, otherwise)
