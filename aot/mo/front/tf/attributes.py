"""Attributes of nodes of TensorFlow files, from the messages in `node.pb`.

The messages are read by the names of their fields, so that any protobuf of TensorFlow will do. The numbers of element
types are those of `types.proto`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from aot.mo.partial_infer.slicing import concat_infer
from aot.mo.utils.arrays import dynamic_dimension_value as unknown
from aot.mo.utils.arrays import int64_array, mo_array, shape_array
from aot.mo.utils.error import Error

_LOG = logging.getLogger(__name__)

_TYPES: dict[int, tuple[Any, str]] = {  # NumPy's type, field of TensorProto with the elements
    1: (np.float32, "float_val"),
    2: (np.double, "double_val"),
    3: (np.int32, "int_val"),
    4: (np.uint8, "int_val"),
    5: (np.int16, "int_val"),
    6: (np.int8, "int_val"),
    7: (str, "string_val"),
    9: (np.int64, "int64_val"),
    10: (bool, "bool_val"),
    17: (np.uint16, "int_val"),
    19: (np.float16, "half_val"),
    22: (np.uint32, "uint32_val"),
    23: (np.uint64, "uint64_val"),
}


def tf_tensor_shape(pb: Any) -> Any:
    """Return a shape; dimensions that are not known are masked."""
    return shape_array([dim.size if dim.size >= 0 else unknown for dim in pb.dim])


def tf_int_list(pb: Any) -> Any:
    return int64_array(pb.i)


def tf_dtype_extractor(pb_dtype: int, default: Any = None) -> Any:
    """Return NumPy's type for a number of TensorFlow's; `default` for another one."""
    return _TYPES[pb_dtype][0] if pb_dtype in _TYPES else default


def tf_data_format_spatial(pb: Any) -> list[int]:
    """Return the positions of the spatial dimensions in a layout, NHWC for instance."""
    return [pb.s.index(c) for c in (b"DHW" if b"DHW" in pb.s else b"HW")]


def tf_data_format_channel(pb: Any) -> list[int]:
    return [pb.s.index(b"C")]


def tf_data_format_batch(pb: Any) -> list[int]:
    return [pb.s.index(b"N")]


def get_tf_node_port(tensor: str) -> tuple[str, int]:
    """Return the node and the output of a tensor's name, `node:1` or `node`."""
    name, colon, port = tensor.rpartition(":")
    return (name, int(port)) if colon else (tensor, 0)


def tf_tensor_content(tf_dtype: int, shape: Any, pb_tensor: Any) -> Any:
    """Return the value of a TensorProto as an array of `shape`; the last element given fills what is left out."""
    if tf_dtype not in _TYPES:
        raise Error("TensorFlow element type: one of {}, got {}", ", ".join(map(str, sorted(_TYPES))), tf_dtype)
    dtype, field = _TYPES[tf_dtype]
    value: Any = _elements(dtype, field, pb_tensor)
    size = int(np.prod(np.asarray(shape, np.int64)))
    if len(shape) <= 1 and size == 0:
        return value
    if len(shape) == 0 and len(value) > 1:
        return value
    if len(value) == size:
        return value[0] if len(shape) == 0 else value.reshape(shape)
    if len(value) > size:
        raise Error("TensorFlow constant: at most {} elements for shape {}, got {}", size, list(shape), len(value))
    if len(value) > 1:
        _LOG.warning("TensorFlow constant: %d elements for %d; the last one is repeated", len(value), size)
    last = value[-1] if len(value) else ("" if dtype is str else 0)
    filled = np.concatenate([value, np.full(size - len(value), last, dtype=value.dtype)])
    return mo_array(filled[0]) if len(shape) == 0 else filled.reshape(shape)


def _elements(dtype: Any, field: str, pb_tensor: Any) -> Any:
    if pb_tensor.tensor_content:
        return mo_array(np.frombuffer(pb_tensor.tensor_content, dtype))
    value = _reader(dtype, field)(pb_tensor)
    if dtype is not str:
        return np.array(list(value), dtype=dtype)
    try:
        return np.array([item.decode() if isinstance(item, bytes) else item for item in value], dtype=str)
    except UnicodeDecodeError:
        _LOG.error("TensorFlow constant: texts that are not UTF-8 stay bytes")
        return np.array(list(value))


def bool_cast(x: Any) -> Any:
    """Return a truth value, also of `true`, `false`, `1` and `0`; the text `unknown_boolean_cast` for another text."""
    if not isinstance(x, str):
        return bool(x)
    return {"true": True, "1": True, "false": False, "0": False}.get(x.lower(), "unknown_boolean_cast")


def check_attr_type(a: Any) -> str | None:
    """Return the field that an attribute, or a list of one, has set; None if all are zero, false or empty."""
    pairs = ((field, getattr(a, field, None)) for field in ("s", "i", "f", "b", "type", "shape", "list"))
    return next((field for field, v in pairs if (getattr(v, "dim", v) if field == "shape" else v)), None)


def collect_tf_attrs(attrs: Any) -> dict[str, Any]:
    """Return the values of attributes by name; None for what is zero, false or empty."""
    return {name: _attribute(attrs[name]) for name in attrs}


def _attribute(a: Any) -> Any:
    field = check_attr_type(a)
    value: Any = None if field is None else getattr(a, field)
    if field == "list":
        return _attribute(value)
    convert = {"type": tf_dtype_extractor, "shape": tf_tensor_shape}.get(field or "")
    if convert is None:
        return value
    return convert(value) if isinstance(value, int) or hasattr(value, "dim") else [convert(v) for v in value]


def tf_concat_ext(pb: Any) -> dict[str, Any]:
    """Return the attributes of a Concat."""
    return {"type": "Concat", "N": pb.attr["N"].i, "infer": concat_infer}


def _reader(dtype: Any, field: str) -> Callable[[Any], Any]:
    """Return the function that gives the elements of a TensorProto."""

    def read(pb: Any) -> Any:
        value = getattr(pb, field)
        return np.asarray(value, np.uint16).view(np.float16) if dtype is np.float16 else value

    return read


tf_data_type_decode = {number: (dtype, _reader(dtype, field)) for number, (dtype, field) in _TYPES.items()}
tf_data_type_cast = {dtype: bool_cast if dtype is bool else dtype for dtype, _ in _TYPES.values()}
