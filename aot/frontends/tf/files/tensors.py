"""TensorProto to arrays, and attributes of nodes to plain values."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from aot.frontends.tf.files.element_types import COMPLEX, element_type, type_name
from aot.ir.inference import MAX_ELEMENTS
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.estimate import check_table
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

Message = Any

# The fields of a TensorProto that hold elements of a type; others hold integers
_FIELDS = {
    DType.F32: "float_val",
    DType.F64: "double_val",
    DType.I64: "int64_val",
    DType.BOOL: "bool_val",
    DType.U32: "uint32_val",
    DType.U64: "uint64_val",
    DType.STRING: "string_val",
}


class TypeName(str):
    """An attribute that names an element type: another kind of attribute than a text."""

    __slots__ = ()


class FunctionName(str):
    """An attribute that names a function."""

    __slots__ = ()


class Sizes(tuple[int, ...]):
    """An attribute that is a shape, with -1 for unknown sizes: another kind of attribute than a list of integers."""

    __slots__ = ()


_HALVES = (DType.F16, DType.BF16)
_BYTES = (DType.F8E5M2, DType.F8E4M3, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ)


def shape_of(proto: Message, what: str) -> tuple[int, ...] | None:
    """Return the sizes of a TensorShapeProto, -1 where one is not known; None if the rank is not known."""
    if proto.unknown_rank:
        return None
    sizes = tuple(d.size for d in proto.dim)
    if any(d < -1 for d in sizes):
        raise CorruptError(f"{what}: sizes must be -1, for unknown, or 0 and more, got {list(sizes)}")
    return sizes


def array(proto: Message, what: str) -> Array:
    """Return the data of a TensorProto. CorruptError if data and shape do not fit each other.

    Fewer elements than the shape has stand for a tensor that ends with repetitions of the last one.
    """
    dtype, shape = element_type(proto.dtype), shape_of(proto.tensor_shape, what)
    if shape is None or any(d < 0 for d in shape) or prod(shape) > MAX_ELEMENTS:
        raise CorruptError(f"{what}: a tensor must have a shape with at most 2^48 elements, got {shape}")
    if proto.tensor_content:
        return from_bytes(proto.tensor_content, dtype, shape, what)
    values, count = _values(proto, dtype, what), prod(shape)
    if len(values) > count:
        raise CorruptError(f"{what}: a tensor of {list(shape)} must have {count} elements, got {len(values)}")
    if len(values) == count:
        return values.reshape(shape)
    check_table(what, *shape, itemsize=max(dtype.bits // 8, 1))
    out = np.full(count, values[-1] if len(values) else b"" if dtype is DType.STRING else 0, values.dtype)
    out[: len(values)] = values
    return out.reshape(shape)


def complex_parts(proto: Message, what: str) -> tuple[Array, Array]:
    """Return the real and the imaginary part of a TensorProto of complex numbers; CorruptError as `array`."""
    shape, single = shape_of(proto.tensor_shape, what), proto.dtype == COMPLEX[0]
    if shape is None or any(d < 0 for d in shape):
        raise CorruptError(f"{what}: a tensor must have a shape, got {shape}")
    check_table(what, *shape, itemsize=16)
    if proto.tensor_content:
        pairs = from_bytes(proto.tensor_content, DType.F32 if single else DType.F64, (*shape, 2), what)
        return np.ascontiguousarray(pairs[..., 0]), np.ascontiguousarray(pairs[..., 1])
    parts = np.array(proto.scomplex_val if single else proto.dcomplex_val, np.float32 if single else np.float64)
    count = prod(shape)
    if parts.size % 2 or parts.size > 2 * count:
        raise CorruptError(
            f"{what}: a tensor of {list(shape)} must have {count} pairs of numbers, got {parts.size} numbers"
        )
    pairs = parts.reshape(-1, 2) if parts.size else np.zeros((1, 2), parts.dtype)
    rows = np.minimum(np.arange(count), len(pairs) - 1)
    return pairs[rows, 0].reshape(shape), pairs[rows, 1].reshape(shape)


def from_bytes(data: bytes | memoryview, dtype: DType, shape: tuple[int, ...], what: str) -> Array:
    """Return the elements in bytes of a checkpoint or of `tensor_content`; CorruptError if there are more or fewer."""
    if dtype is DType.STRING:
        raise CorruptError(f"{what}: strings do not lie in memory as numbers do")
    kind = numpy_dtype(dtype)
    if len(data) != prod(shape) * kind.itemsize:
        raise CorruptError(
            f"{what}: {dtype.value}{list(shape)} must have {prod(shape) * kind.itemsize} bytes, got {len(data)}"
        )
    return np.frombuffer(data, kind).reshape(shape)


def _values(proto: Message, dtype: DType, what: str) -> Array:
    if dtype in _HALVES:
        return np.array(proto.half_val, np.uint16).view(numpy_dtype(dtype))
    if dtype in _BYTES:
        return np.frombuffer(proto.float8_val, np.uint8).view(numpy_dtype(dtype))
    elements = getattr(proto, _FIELDS.get(dtype, "int_val"))
    if dtype is DType.STRING:
        return np.array([s.decode("utf-8", "surrogateescape") for s in elements], object)
    try:
        return np.array(elements, np.int32 if dtype not in _FIELDS else numpy_dtype(dtype)).astype(numpy_dtype(dtype))
    except (OverflowError, ValueError) as error:
        raise CorruptError(f"{what}: elements do not fit {dtype.value}: {error}") from error


def attributes(attrs: Mapping[str, Message], what: str) -> dict[str, Any]:
    """Return the attributes of a node; those that begin with `_` are notes for TensorFlow's runtime.

    The one that cannot be read becomes the attribute `unsupported`, with its reason.
    """
    converted: dict[str, Any] = {}
    for name, value in sorted(attrs.items()):
        if name.startswith("_"):
            continue
        try:
            converted[name] = attribute(value, f"{what}, attribute {name}")
        except UnsupportedError as error:
            converted["unsupported"] = f"attribute {name}: {error}"
    return converted


def attribute(value: Message, what: str) -> Any:
    """Return the value of an AttrValue; None for a shape of unknown rank, the name of a function."""
    match value.WhichOneof("value"):
        case "i" | "f" | "b" as name:
            return getattr(value, name)
        case "s":
            return value.s.decode("utf-8", "surrogateescape")
        case "type":
            return TypeName(type_name(value.type))
        case "shape":
            sizes = shape_of(value.shape, what)
            return None if sizes is None else Sizes(sizes)
        case "tensor":
            return array(value.tensor, what)
        case "func":
            return FunctionName(value.func.name)
        case "list":
            return _list(value.list, what)
        case "placeholder":
            raise CorruptError(f"{what}: {value.placeholder!r} stands for an attribute of a function, outside of it")
        case _:
            return None


def _list(value: Message, what: str) -> tuple[Any, ...]:
    texts = [s.decode("utf-8", "surrogateescape") for s in value.s]
    shapes = [None if s.unknown_rank else Sizes(shape_of(s, what) or ()) for s in value.shape]
    tensors = [array(t, what) for t in value.tensor]
    names = [FunctionName(f.name) for f in value.func]
    types = [TypeName(type_name(t)) for t in value.type]
    return (*texts, *value.i, *value.f, *value.b, *types, *shapes, *tensors, *names)
