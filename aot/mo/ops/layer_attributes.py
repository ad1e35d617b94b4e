"""Attributes of operations as files hold them: names from the definitions, texts from the attributes of nodes."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, get_type_hints

import numpy as np

from aot.ir.op import Op as Definition
from aot.ir.registry import attributes, find
from aot.ir.types import dtype_of
from aot.mo.utils.arrays import is_a, unmask_shape
from aot.mo.utils.types import PACKED
from aot.runtime.abi import DType
from aot.runtime.errors import AotError

_INTEGERS = re.compile(r"\bint\b")
OTHER_NAMES = {  # attributes of nodes that are not called as in files
    "destination_type": "dst_type",
    "convert_type": "dst_type",
    "activations_alpha": "activation_alpha",
    "activations_beta": "activation_beta",
    "pad_mode": "mode",
}
OTHER_TYPES = {"Deconvolution": "ConvolutionBackpropData"}  # names of types before the operation sets
INVERTED = {
    "StridedSlice": ("begin_mask", "end_mask")
}  # masks where 1 in a node, but 0 in a file, means that the bound counts
WINDOWS = {"strides": "stride", "dilations": "dilation", "kernel": "window", "output_padding": "output_padding"}


def definition(type: str | None, version: str | None) -> type[Definition] | None:
    """Return the operation that a set has for a type; the first one if the set has none yet."""
    if not type:
        return None
    type = OTHER_TYPES.get(type, type)
    matched = re.fullmatch(r"opset(\d{1,3})", version or "")
    number = int(matched[1]) if matched else 0
    result = find(type, number)
    if result is None and matched:
        result = next((cls for later in range(number, 18) if (cls := find(type, later)) is not None), None)
    return result


def file_attributes(type: str | None, version: str | None) -> list[Any]:
    """Return pairs of a name in files and a function that gives the text for a node; none for an unknown type."""
    cls = definition(type, version)
    return [] if cls is None else [(xml, _getter(cls.type, xml, hint)) for xml, hint in _names(cls)]


@cache
def _names(cls: type[Definition]) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(cls)
    return tuple((str(f.metadata.get("xml", f.name)), hints[f.name]) for f in attributes(cls))


def _getter(kind: str, xml: str, hint: Any) -> Callable[[Any], str | None]:
    def text(node: Any) -> str | None:
        value = attribute(node, xml)
        if hint is bool and is_a(value, (int, np.integer)):
            value = bool(value)
        if xml in INVERTED.get(kind, ()) and value is not None:
            value = inverted(value)
        return text_of(_whole(value) if _INTEGERS.search(str(hint)) else value)

    return text


def inverted(mask: Any) -> Any:
    """Return a mask with 0 for 1 and 1 for 0."""
    return 1 - np.asarray(mask, np.int64).reshape(-1)


def _whole(value: Any) -> Any:
    """Return an array of numbers without fractions as one of integers."""
    if not is_a(value, np.ndarray) or value.dtype.kind != "f":
        return value
    whole: Any = value.astype(np.int64)
    return whole if np.array_equal(value, whole) else value


def attribute(node: Any, xml: str) -> Any:
    """Return the attribute of a node that files call `xml`; None without one."""
    if xml in ("pads_begin", "pads_end") and node.has_valid("pad") and node.has_valid("spatial_dims"):
        explicit = node.soft_get("auto_pad", "explicit") == "explicit"
        pads = np.asarray(node.pad)[np.asarray(node.spatial_dims)][:, 0 if xml == "pads_begin" else 1]
        return pads if explicit else np.zeros_like(pads)
    windowed = WINDOWS.get(xml)
    if windowed is not None and node.has_valid(windowed) and node.has_valid("spatial_dims"):
        return np.asarray(node[windowed])[np.asarray(node.spatial_dims)]
    for name in (xml, xml.replace("-", "_"), OTHER_NAMES.get(xml, xml)):
        if node.has_valid(name):
            return node[name]
    return None


def text_of(value: Any) -> str | None:
    """Return a value as files hold it; None for one that they cannot hold."""
    if is_a(value, np.ndarray):
        value = unmask_shape(value)
        value = value.tolist() if is_a(value, np.ndarray) and value.dtype.kind in "iub" else value
        if is_a(value, np.ndarray) and value.ndim == 0:
            value = value[()]
    if value is None or _is_function(value):
        return None
    if is_a(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if is_a(value, (list, tuple, np.ndarray)):
        parts: list[Any] = list(value)
        return ",".join(text_of(part) or "" for part in parts)
    if is_a(value, Enum):
        return str(value.value)
    if is_a(value, (type, np.dtype)):
        return element_type_text(value)
    return str(value)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def element_type_text(dtype: Any) -> str:
    """Return the name in files of a NumPy type."""
    if dtype in PACKED.values():
        return next(text for text, cls in PACKED.items() if cls is dtype)
    try:
        return element_type(dtype).value
    except (AotError, TypeError):
        return str(dtype)


def element_type(dtype: Any) -> DType:
    """Return the element type of a NumPy type; UnsupportedError for one that no operation has."""
    return dtype_of(np.empty(0, np.dtype(dtype)))


def layer_texts(node: Any, type: str | None = None, version: str | None = None) -> dict[str, str]:
    """Return the attributes of a node's layer: attributes that its class lists, else its definition's.

    `type`, `version`: the definition's; without them the node's own.
    """
    listed = _listed(node)
    if listed is None:
        listed = file_attributes(type or node.soft_get("type", None), version or node.soft_get("version", None))
    texts: dict[str, str | None] = {}
    for record in listed:
        if is_a(record, str):
            texts[record] = text_of(node.soft_get(record, None))
        elif is_a(record, tuple):
            name, source = record
            value: Any = source(node) if callable(source) else node.soft_get(source, None)
            texts[name] = text_of(value)
    return {name: text for name, text in texts.items() if text is not None}


def _listed(node: Any) -> list[Any] | None:
    """Return the records of `backend_attrs` that the node's class has left in attribute `IE`."""
    for _, _, children in node.soft_get("IE", []):
        for child in children:
            if is_a(child, tuple) and child[0] == "data":
                return list(child[1])
    return None
