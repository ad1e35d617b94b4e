"""Values of attributes: the compiler's in Model Optimizer's form, and changed ones back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from enum import Enum
from typing import Any, get_type_hints

import numpy as np

from aot.codegen.ir.loops import Expr
from aot.frontends.openvino.attributes import Symbols, convert, partial_shape
from aot.ir.op import Op as Definition
from aot.ir.types import Dim, Shape, numpy_dtype
from aot.mo.ops.layer_attributes import INVERTED, OTHER_NAMES, element_type, inverted, text_of
from aot.mo.utils.arrays import dynamic_dimension, is_a, shape_array
from aot.mo.utils.error import Error
from aot.runtime.abi import DType


def shape_of(dims: Shape | None) -> Any:
    """Return a shape as an array, masked where a size is not a number; None without one."""
    return None if dims is None else shape_array([dynamic_dimension if isinstance(d, Expr) else d for d in dims])


def value_of(value: Any) -> Any:
    """Return an attribute of an operation in Model Optimizer's form."""
    if isinstance(value, DType):
        return numpy_dtype(value).type
    if isinstance(value, Enum):
        return value.value
    if is_a(value, tuple):
        parts: tuple[Any, ...] = value
        are_integers = all(is_a(p, (int, np.integer)) and not is_a(p, bool) for p in parts)
        if are_integers or any(isinstance(p, Expr) for p in parts):
            return shape_of(parts) if any(isinstance(p, Expr) for p in parts) else np.array(parts, np.int64)
        return np.array(parts, np.float32) if all(is_a(p, float) for p in parts) else list(parts)
    return value


def attributes_of(op: Definition) -> dict[str, Any]:
    """Return the attributes of an operation by their names in Model Optimizer's graph, in its form."""
    masks = INVERTED.get(op.type, ())
    attributes = {_name(f): value_of(getattr(op, f.name)) for f in fields(op)}
    return {name: inverted(value) if name in masks else value for name, value in attributes.items()}


def _name(field: Any) -> str:
    """Return the name of an attribute in Model Optimizer's graph."""
    name = str(field.metadata.get("xml", field.name)).replace("-", "_")
    return OTHER_NAMES.get(name, name)


def plain(value: Any) -> Any:
    """Return an attribute of a foreign operation as its reader gives it: numbers, texts, and tuples of them."""
    if is_a(value, np.ndarray):
        value = value.tolist()
    if is_a(value, (list, tuple)):
        return tuple(plain(part) for part in value)
    return value.item() if is_a(value, np.generic) else value


def with_attributes(op: Definition, changed: dict[str, Any], layer: str) -> Definition:
    """Return an operation with changed attributes; None for the default. Error for a value that does not fit."""
    hints = get_type_hints(type(op))
    attributes: dict[str, Any] = {}
    for f in fields(op):
        if _name(f) not in changed:
            continue
        value = changed[_name(f)]
        if value is None and f.default is not MISSING:
            attributes[f.name] = f.default
            continue
        text = text_of(inverted(value) if _name(f) in INVERTED.get(op.type, ()) else value) or ""
        try:
            attributes[f.name] = convert(hints[f.name], text, _shapes(layer))
        except (ValueError, KeyError):
            raise Error("{} ({}): attribute {} got {}", op.type, layer, _name(f), text) from None
    return replace(op, **attributes)


def _shapes(layer: str) -> Callable[[str], Shape | None]:
    symbols = Symbols()
    return lambda text: partial_shape(text, layer, symbols)


def dims_of(shape: Any, layer: str, before: Shape | None = None) -> Shape | None:
    """Return a shape with symbols for masked sizes: those that were there before, where the rank is the same."""
    if shape is None:
        return None
    symbols = Symbols()
    dims: list[Dim] = []
    for i, d in enumerate(shape):
        old = before[i] if before is not None and len(before) == len(shape) else None
        unknown = d is dynamic_dimension or int(d) < 0
        dims.append((old if isinstance(old, Expr) else symbols.make(layer, i, 0, None)) if unknown else int(d))
    return tuple(dims)


def dtype_from(kind: Any) -> DType:
    """Return the element type of a NumPy type; f32 without one."""
    return DType.F32 if kind is None else element_type(kind)
