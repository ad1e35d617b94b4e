"""Conversion of numbers to element types, and of constants to the types of the inputs beside them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from aot.mo.graph.graph import Node
from aot.mo.utils.error import Error
from aot.mo.utils.types import convert_blob

log = logging.getLogger(__name__)

_NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
_KINDS: tuple[Any, ...] = (*(np.dtype(name).type for name in _NUMBERS.split()), str)
_BOOLEANS = {"false": False, "0": False, "true": True, "1": True}


def bool_cast(x: Any) -> Any:
    """Return a text or a number as a boolean; `unknown_boolean_cast` for another text."""
    return _BOOLEANS.get(x.lower(), "unknown_boolean_cast") if isinstance(x, str) else bool(x)


np_map_cast: dict[Any, Any] = {bool: bool_cast, **{kind: kind for kind in _KINDS}}


def convert_const_node_value_type(const_node: Node, np_data_type: Any) -> None:
    """Give a Const another element type; Error for integers that would be rounded."""
    assert const_node.op == "Const", f"{const_node.id}: a Const, got {const_node.op}"
    blob, infinite, zero = convert_blob(const_node.value, np_data_type)
    for count, what in ((infinite, "infinite"), (zero, "zero")):
        if count:
            log.warning("%s: %d elements became %s", const_node.soft_get("name"), count, what)
    const_node.value = blob
    const_node["data_type"] = np.dtype(np_data_type).type
    const_node["type_infer"](const_node)
    if const_node.graph.stage in ("middle", "back") and const_node.out_nodes():
        const_node["infer"](const_node)


def override_data_type_of_constant(node: Node, lhs_idx: int = 0, rhs_idx: int = 1) -> None:
    """Give the constant of two inputs the element type of the other input; Error if neither is constant."""
    types = [node.in_port(idx).get_data_type() for idx in (lhs_idx, rhs_idx)]
    if types[0] == types[1]:
        return
    sources: list[Any] = [node.in_port(idx).get_source() for idx in (0, 1)]
    constant = next((i for i, source in enumerate(sources) if source.node.op == "Const"), None)
    if constant is None:
        rule = "{} operation '{}' has inputs of different data types: '{}' and '{}' that cannot be aligned"
        raise Error(rule, node.soft_get("op"), node.soft_get("name"), *types)
    convert_const_node_value_type(sources[constant].node, types[1 - constant])
