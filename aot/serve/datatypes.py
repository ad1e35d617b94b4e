"""Element types of the Open Inference Protocol: names, raw bytes, numbers of JSON.

FP32[2,3]   raw: 24 bytes, little-endian      JSON: nested lists, or one flat list
BYTES[2]    raw: length (u32), bytes, length, bytes
"""

from __future__ import annotations

import math
import struct
from typing import cast

import numpy as np

from aot.runtime.abi import DType
from aot.runtime.arrays.strings import ENCODING
from aot.runtime.arrays.tensors import Array, Shape, from_numbers, numpy_dtype
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import TensorInfo
from aot.serve.json_texts import fragment

_NAMES = {
    DType.BOOL: "BOOL",
    DType.F16: "FP16",
    DType.F32: "FP32",
    DType.F64: "FP64",
    DType.BF16: "BF16",
    DType.STRING: "BYTES",
}
_LENGTH = struct.Struct("<I")


def datatype_of(info: TensorInfo) -> str:
    """Return the protocol's name of a tensor's type; a type that it lacks gets the name of its bytes' type."""
    return _NAMES.get(info.dtype) or {"i": "INT", "u": "UINT"}[numpy_dtype(info).kind] + str(
        numpy_dtype(info).itemsize * 8
    )


def metadata_of(info: TensorInfo) -> dict[str, object]:
    """Return a tensor as the protocol describes it: -1 is a size that varies."""
    shape = [dim if isinstance(dim, int) else -1 for dim in info.shape]
    return {"name": info.name, "datatype": datatype_of(info), "shape": shape}


def checked_shape(name: str, shape: object) -> Shape:
    """Return the shape of a request's tensor; UsageError unless it is a list of sizes."""
    sizes = cast(list[object], shape) if isinstance(shape, list) else [None]
    if len(sizes) > 64 or not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 40 for n in sizes):
        raise UsageError(f"input '{name}': shape must be a list of sizes, got {str(sizes)[:60]}")
    return tuple(cast(list[int], sizes))


def check_datatype(info: TensorInfo, datatype: object) -> None:
    """Raise UsageError if a request's tensor has another type than the model's."""
    if datatype != datatype_of(info):
        raise UsageError(f"input '{info.name}': datatype must be {datatype_of(info)}, got {str(datatype)[:20]}")


def from_raw(info: TensorInfo, shape: Shape, data: bytes | memoryview) -> Array:
    """Return an array that reads `data` in place; strings are copied. UsageError for another number of bytes."""
    count = math.prod(shape)
    if info.dtype is DType.STRING:
        return _strings(info.name, shape, count, bytes(data))
    dtype = numpy_dtype(info)
    if len(data) != count * dtype.itemsize:
        expected = f"{count * dtype.itemsize} bytes for {datatype_of(info)}{list(shape)}"
        raise UsageError(f"input '{info.name}': must have {expected}, got {len(data)}")
    return np.frombuffer(data, dtype).reshape(shape)


def to_raw(info: TensorInfo, array: Array) -> bytes:
    """Return the bytes of an output."""
    if info.dtype is not DType.STRING:
        return array.tobytes()
    texts = [str(text).encode(*ENCODING) for text in array.reshape(-1).tolist()]
    return b"".join(part for text in texts for part in (_LENGTH.pack(len(text)), text))


def from_json(info: TensorInfo, shape: Shape, data: object) -> Array:
    """Return the array of a list, flat or nested, of numbers or texts, or of an array; UsageError for a wrong one."""
    if not isinstance(data, (list, np.ndarray)):
        raise UsageError(f"input '{info.name}': data must be a list, got {type(data).__name__}")
    try:
        if info.dtype is DType.STRING:
            array = np.array(cast(list[object], data), object)
            if not all(isinstance(text, str) for text in array.flat):
                raise UsageError(f"input '{info.name}': data must be texts, got other elements")
        else:
            array = from_numbers(info.dtype, cast(list[object], data), numpy_dtype(info))
        if array.size != math.prod(shape):
            raise ValueError(f"{array.size} elements")
        return array.reshape(shape)
    except (TypeError, ValueError, OverflowError) as error:
        expected = f"{datatype_of(info)}{list(shape)}"
        raise UsageError(f"input '{info.name}': data must be {expected}, got {error}") from None


def to_json(info: TensorInfo, array: Array) -> object:
    """Return an output's elements as a flat list for `json_texts.written`."""
    if info.dtype is DType.BF16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    flat = np.ascontiguousarray(array.reshape(-1))
    if info.dtype is DType.STRING or (flat.dtype.kind == "f" and not np.isfinite(flat).all()):
        return fragment(flat.tolist())
    return flat


def _strings(name: str, shape: Shape, count: int, data: bytes) -> Array:
    texts: list[str] = []
    at = 0
    while at + _LENGTH.size <= len(data) and len(texts) <= count:
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + length
        texts.append(data[at - length : at].decode(*ENCODING))
    if at != len(data) or len(texts) != count:
        raise UsageError(f"input '{name}': must have {count} texts, each after its length, got other bytes")
    array = np.empty(count, object)
    array[:] = texts
    return array.reshape(shape)
