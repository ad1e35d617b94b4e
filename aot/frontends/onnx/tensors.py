"""TensorProto and SparseTensorProto to arrays."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import SparseTensorProto, TensorProto, numpy_helper

from aot.frontends.onnx.element_types import element_type
from aot.frontends.onnx.external import ExternalData
from aot.ir.inference import MAX_ELEMENTS
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.estimate import check_table
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError


def array(tensor: TensorProto, external: ExternalData) -> Array:
    """Return the data of a tensor, read-only if mapped from its file. CorruptError if data and shape do not fit."""
    dtype, shape, name = element_type(tensor.data_type), tuple(tensor.dims), tensor.name
    if any(d < 0 for d in shape) or prod(shape) > MAX_ELEMENTS:
        raise CorruptError(
            f"tensor {name!r}: a shape must have no negative dimension and at most 2^48 elements, got {shape}"
        )
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, dtype, shape, external)
    try:
        value = numpy_helper.to_array(tensor)
    except Exception as error:
        raise CorruptError(f"tensor {name!r}: data does not fit {dtype.value}{list(shape)}: {error}") from error
    if dtype is DType.STRING:
        return np.array([_text(s) for s in value.reshape(-1)], dtype=object).reshape(shape)
    return value


def _external(tensor: TensorProto, dtype: DType, shape: tuple[int, ...], external: ExternalData) -> Array:
    facts = {e.key: e.value for e in tensor.external_data}
    try:
        offset, length = int(facts.get("offset", "0")), int(facts["length"]) if "length" in facts else None
    except ValueError:
        raise CorruptError(f"tensor {tensor.name!r}: offset and length must be integers, got {facts}") from None
    if dtype is DType.STRING:
        raise CorruptError(f"tensor {tensor.name!r}: strings must not be in external data")
    needed = -(-prod(shape) * dtype.bits // 8)
    data = external.read(tensor.name, facts.get("location", ""), offset, needed if length is None else length)
    if len(data) != needed:
        shown = f"{dtype.value}{list(shape)}"
        raise CorruptError(f"tensor {tensor.name!r}: {shown} must have {needed} bytes, got length {len(data)}")
    if dtype.bits >= 8:
        return np.frombuffer(data, numpy_dtype(dtype)).reshape(shape)
    packed = TensorProto(data_type=tensor.data_type, dims=shape, raw_data=bytes(data))
    return numpy_helper.to_array(packed)


def dense(tensor: SparseTensorProto, external: ExternalData) -> Array:
    """Return a sparse tensor as a dense array."""
    values, indices = array(tensor.values, external), array(tensor.indices, external)
    shape = tuple(tensor.dims)
    if any(d < 0 for d in shape) or prod(shape) > MAX_ELEMENTS >> 16:
        raise CorruptError(f"tensor {tensor.values.name!r}: the shape of a sparse tensor is wrong, got {shape}")
    check_table(f"tensor {tensor.values.name!r}", *shape, itemsize=values.dtype.itemsize)
    out = np.zeros(shape, values.dtype)
    flat = indices if indices.ndim == 1 else indices @ np.cumprod([1, *shape[:0:-1]])[::-1].astype(np.int64)
    if flat.size and not (flat.min() >= 0 and flat.max() < out.size):
        raise CorruptError(f"tensor {tensor.values.name!r}: indices must be inside of {shape}")
    out.reshape(-1)[flat] = values
    return out


def _text(raw: object) -> str:
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)
