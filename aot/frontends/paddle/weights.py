"""The file of weights, `.pdiparams`: concatenated tensors in the order of their names.

u32 version  u64 lists of lengths, each u64 bytes and these  |  u32 version  i32 bytes of TensorDesc  TensorDesc  data
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from aot.frontends.paddle.program import TYPES
from aot.frontends.wire import parsed
from aot.ir.types import Array, numpy_dtype
from aot.runtime.errors import CorruptError
from aot.runtime.regular import read_file

DESCRIPTION = {"TensorDesc": {1: "type:int", 2: "dims:int*"}}


def read_weights(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Return the tensors of a file by their names. CorruptError unless it has one for each."""
    data, at, tensors = memoryview(read_file(path, "weights")), 0, dict[str, Array]()
    for name in sorted(set(names)):
        tensors[name], at = _tensor(data, at, f"{path.name}: {name}")
    if at != len(data):
        raise CorruptError(f"{path.name}: {len(tensors)} tensors fill the file, got {len(data) - at} bytes more")
    return tensors


def _tensor(data: memoryview, at: int, what: str) -> tuple[Array, int]:
    """Return the tensor at an offset, and the offset after it."""
    (version, lists), at = _numbers(data, at, "<IQ", what)
    if lists > len(data) // 8:
        raise CorruptError(f"{what}: lists of lengths must lie in the file, got {lists}")
    for _ in range(lists):
        (size,), at = _numbers(data, at, "<Q", what)
        at += size
    (inner, size), at = _numbers(data, at, "<Ii", what)
    if version or inner:
        raise CorruptError(f"{what}: version 0 of tensors can be read, got {version} and {inner}")
    if size < 0 or at + size > len(data):
        raise CorruptError(f"{what}: a description must lie in the file, got {size} bytes at {at}")
    described = parsed(data[at : at + size], "TensorDesc", DESCRIPTION, what)
    at, shape, code = at + size, tuple(described["dims"]), described.get("type")
    if code not in TYPES or any(n < 0 for n in shape):
        raise CorruptError(f"{what}: a tensor must have a type and sizes from 0 on, got {code} and {list(shape)}")
    kind = numpy_dtype(TYPES[code])
    end = at + prod(shape) * kind.itemsize
    if end > len(data):
        raise CorruptError(f"{what}: a tensor of {list(shape)} must lie in the file, got {len(data) - at} bytes")
    return np.frombuffer(data[at:end], kind).reshape(shape), end


def _numbers(data: memoryview, at: int, format: str, what: str) -> tuple[tuple[int, ...], int]:
    size = struct.calcsize(format)
    if at + size > len(data):
        raise CorruptError(f"{what}: the file must have a tensor, got its end at {len(data)}")
    return struct.unpack_from(format, data, at), at + size
