"""TensorProto and SparseTensorProto to arrays."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import SparseTensorProto, TensorProto, numpy_helper

from aot.frontends.onnx.external import ExternalData
from aot.ir.types import Array, numpy_dtype
from runtime.abi import DType
from runtime.errors import CorruptError, UnsupportedError

MAX_ELEMENTS = 1 << 48

DTYPES: dict[int, DType] = {
    TensorProto.FLOAT: DType.F32,
    TensorProto.UINT8: DType.U8,
    TensorProto.INT8: DType.I8,
    TensorProto.UINT16: DType.U16,
    TensorProto.INT16: DType.I16,
    TensorProto.INT32: DType.I32,
    TensorProto.INT64: DType.I64,
    TensorProto.STRING: DType.STRING,
    TensorProto.BOOL: DType.BOOL,
    TensorProto.FLOAT16: DType.F16,
    TensorProto.DOUBLE: DType.F64,
    TensorProto.UINT32: DType.U32,
    TensorProto.UINT64: DType.U64,
    TensorProto.BFLOAT16: DType.BF16,
    TensorProto.FLOAT8E4M3FN: DType.F8E4M3,
    TensorProto.FLOAT8E5M2: DType.F8E5M2,
    TensorProto.UINT4: DType.U4,
    TensorProto.INT4: DType.I4,
    TensorProto.FLOAT4E2M1: DType.F4E2M1,
    TensorProto.FLOAT8E8M0: DType.F8E8M0,
    TensorProto.UINT2: DType.U2,
    TensorProto.INT2: DType.I2,
    TensorProto.FLOAT8E4M3FNUZ: DType.F8E4M3FNUZ,
    TensorProto.FLOAT8E5M2FNUZ: DType.F8E5M2FNUZ,
}


def dtype_named(code: int) -> DType:
    """The element type that ONNX numbers `code`; UnsupportedError if we have none."""
    if code in DTYPES:
        return DTYPES[code]
    known = code in TensorProto.DataType.values()
    raise UnsupportedError(f"element type {TensorProto.DataType.Name(code) if known else code} is not supported")


def array(tensor: TensorProto, external: ExternalData) -> Array:
    """The data of a tensor, read-only where it can stay in its file. CorruptError if data and shape do not fit."""
    dtype, shape, name = dtype_named(tensor.data_type), tuple(tensor.dims), tensor.name
    if any(d < 0 for d in shape) or prod(shape) > MAX_ELEMENTS:
        raise CorruptError(f"tensor {name!r}: a shape has no negative dimension and at most 2^48 elements, got {shape}")
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, dtype, shape, external)
    try:
        found = numpy_helper.to_array(tensor)
    except Exception as error:
        raise CorruptError(f"tensor {name!r}: data does not fit {dtype.value}{list(shape)}: {error}") from error
    if dtype is DType.STRING:
        return np.array([_text(s) for s in found.reshape(-1)], dtype=object).reshape(shape)
    return found


def _external(tensor: TensorProto, dtype: DType, shape: tuple[int, ...], external: ExternalData) -> Array:
    facts = {e.key: e.value for e in tensor.external_data}
    try:
        offset, length = int(facts.get("offset", "0")), int(facts["length"]) if "length" in facts else None
    except ValueError:
        raise CorruptError(f"tensor {tensor.name!r}: offset and length must be integers, got {facts}") from None
    if dtype is DType.STRING:
        raise CorruptError(f"tensor {tensor.name!r}: strings must not lie in external data")
    needed = -(-prod(shape) * dtype.bits // 8)
    data = external.read(tensor.name, facts.get("location", ""), offset, needed if length is None else length)
    if len(data) != needed:
        shown = f"{dtype.value}{list(shape)}"
        raise CorruptError(f"tensor {tensor.name!r}: {shown} has {needed} bytes, got length {len(data)}")
    if dtype.bits >= 8:
        return np.frombuffer(data, numpy_dtype(dtype)).reshape(shape)
    packed = TensorProto(data_type=tensor.data_type, dims=shape, raw_data=bytes(data))
    return numpy_helper.to_array(packed)


def dense(tensor: SparseTensorProto, external: ExternalData) -> Array:
    """A sparse tensor with its zeros."""
    values, indices = array(tensor.values, external), array(tensor.indices, external)
    shape = tuple(tensor.dims)
    if any(d < 0 for d in shape) or prod(shape) > MAX_ELEMENTS >> 16:
        raise CorruptError(f"tensor {tensor.values.name!r}: the shape of a sparse tensor is wrong, got {shape}")
    out = np.zeros(shape, values.dtype)
    flat = indices if indices.ndim == 1 else indices @ np.cumprod([1, *shape[:0:-1]])[::-1].astype(np.int64)
    if flat.size and not (flat.min() >= 0 and flat.max() < out.size):
        raise CorruptError(f"tensor {tensor.values.name!r}: indices must lie inside of {shape}")
    out.reshape(-1)[flat] = values
    return out


def _text(raw: object) -> str:
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)
