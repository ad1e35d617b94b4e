"""Tensors of a file: their facts, and the data of constants, dense or sparse, checked against the shape."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.tflite.element_types import DTYPES, type_name
from aot.frontends.tflite.schema import Quota, Table
from aot.frontends.tflite.sparse import dense
from aot.ir.inference import MAX_ELEMENTS
from aot.ir.types import Array, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

MAX_AXES = 32
PACKED = (DType.I4, DType.I2, DType.U4)  # several elements in a byte
COMPUTED = {DType.I4: DType.I8, DType.I2: DType.I8, DType.U4: DType.U8}  # types of such data at run time
_OUTSIDE = 1  # offsets up to this mean that the data lies in the buffer itself


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """A scale, and a zero point if there are any, for each `size` elements of an axis."""

    size: int
    scales: Array
    zeros: Array | None


@dataclass(frozen=True, slots=True)
class Quantization:
    """number = (stored - zero) scale; scales for the tensor, for each slice of `axis`, or for blocks along it."""

    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int = 0
    blocks: Blocks | None = None

    @property
    def is_by_axis(self) -> bool:
        return len(self.scales) > 1


@dataclass(frozen=True, slots=True)
class Tensor:
    """Facts of a tensor of a file; `shape` has -1 for sizes that vary."""

    name: str
    type: str
    shape: tuple[int, ...]
    quantization: Quantization | None
    variable: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a file: its facts, and its data if it is a constant."""

    facts: Tensor
    code: int
    size: tuple[int, ...]  # the shape of the data
    raw: Array | None  # bytes
    sparsity: Table | None
    file: str
    quota: Quota

    def data(self) -> Array:
        """Return the data of a constant. CorruptError if the shape does not fit; UnsupportedError for other types."""
        assert self.raw is not None
        name = f"{self.file}: tensor {self.facts.name!r}"
        if self.code not in DTYPES:
            raise UnsupportedError(f"element type {type_name(self.code)} is not supported")
        dtype, count = DTYPES[self.code], prod(self.size)
        if dtype is DType.STRING:
            return strings(self.raw, self.size, name)
        if self.sparsity is not None:
            return dense(self.sparsity, self.raw, numpy_dtype(dtype), self.size, name)
        needed = -(-count * dtype.bits // 8)
        if self.raw.size != needed:
            raise CorruptError(f"{name}: {dtype.value}{list(self.size)} must have {needed} bytes, got {self.raw.size}")
        if dtype in PACKED:
            return unpacked(self.raw, count, dtype).reshape(self.size)
        if dtype is DType.BOOL:
            return (self.raw != 0).reshape(self.size)
        return np.frombuffer(self.raw, numpy_dtype(dtype)).reshape(self.size)

    def complex_parts(self) -> tuple[Array, Array]:
        """Return real and imaginary parts of a constant of complex numbers. CorruptError if the shape does not fit."""
        dtype = np.dtype(np.float32 if self.facts.type == "complex64" else np.float64)
        stored_bytes = 0 if self.raw is None else self.raw.size
        if self.raw is None or stored_bytes != 2 * prod(self.size) * dtype.itemsize:
            name = f"{self.file}: tensor {self.facts.name!r}"
            raise CorruptError(
                f"{name}: {self.facts.type}{list(self.size)} must have two numbers an element, got {stored_bytes} bytes"
            )
        pairs = np.frombuffer(self.raw, dtype).reshape(*self.size, 2)
        return pairs[..., 0].copy(), pairs[..., 1].copy()


def unpacked(raw: Array, count: int, dtype: DType) -> Array:
    """Return numbers of 2 or 4 bits, the lowest ones of each byte first."""
    bits = dtype.bits
    parts = [raw >> k & (1 << bits) - 1 for k in range(0, 8, bits)]
    codes = np.stack(parts, axis=-1).reshape(-1)[:count].astype(np.int8)
    half = 1 << bits - 1 if dtype.is_signed else 0
    return ((codes ^ half) - half).astype(numpy_dtype(dtype))


def strings(raw: Array, shape: tuple[int, ...], name: str) -> Array:
    """Strings: their number, where each one and the end lie, then the characters."""
    count = prod(shape)
    words = raw[: raw.size // 4 * 4].view(np.dtype("<i4"))
    if words.size < 1 or words[0] != count or words.size < count + 2:
        raise CorruptError(f"{name}: a tensor of {count} strings must have their places in front, got {raw.size} bytes")
    offsets = words[1 : count + 2].tolist()
    if offsets != sorted(offsets) or offsets[0] < 0 or offsets[-1] > raw.size:
        raise CorruptError(f"{name}: strings must lie in the buffer one after the other, got other places")
    data = raw.tobytes()
    texts = [data[a:b].decode("utf-8", "surrogateescape") for a, b in pairwise(offsets)]
    return np.array(texts, dtype=object).reshape(shape)


def read_tensor(table: Table, buffers: list[Table], data: Any) -> Stored:
    """Return a tensor of a sub-graph. `buffers`: of the model; `data`: the file."""
    quota, name = table.quota, table.text("Name")
    size, signature = table.numbers("Shape"), table.numbers("ShapeSignature")
    file = quota.file
    if len(size) > MAX_AXES or any(d < 0 for d in size) or prod(size) > MAX_ELEMENTS:
        rule = f"a shape has at most {MAX_AXES} sizes, no negative one, and at most 2^48 elements"
        raise CorruptError(f"{file}: tensor {name!r}: {rule}, got {list(size)[:MAX_AXES]}")
    number, code = int(table.number("Buffer")), int(table.number("Type"))
    if number >= max(len(buffers), 1):
        raise CorruptError(f"{file}: tensor {name!r}: its buffer must be one of {len(buffers)}, got {number}")
    raw = contents(buffers[number], data, f"{file}: tensor {name!r}") if number < len(buffers) and number else None
    shape = signature if len(signature) == len(size) else size
    facts = Tensor(name, type_name(code), shape, quantization(table, size, name), bool(table.number("IsVariable")))
    return Stored(facts, code, size, raw, table.table("Sparsity"), file, quota)


def contents(buffer: Table, data: Any, name: str) -> Array | None:
    """Return the bytes of a buffer, in it or after the tables; None if it is empty."""
    offset, size = int(buffer.number("Offset")), int(buffer.number("Size"))
    if offset > _OUTSIDE:
        if offset + size > len(data):
            raise CorruptError(f"{name}: its data must lie in the file, got bytes {offset} to {offset + size}")
        return np.frombuffer(data, np.uint8, size, offset)
    stored = buffer.array("Data")
    return stored if stored.size else None


def quantization(table: Table, size: tuple[int, ...], name: str) -> Quantization | None:
    """Scales and zero points; None without scales."""
    quantization_table = table.table("Quantization")
    if quantization_table is None:
        return None
    scales, zeros = quantization_table.numbers("Scale"), quantization_table.numbers("ZeroPoint")
    if not scales:
        return None
    file, axis = table.quota.file, int(quantization_table.number("QuantizedDimension"))
    zeros = zeros or (0,)
    if len(zeros) == 1:
        zeros *= len(scales)
    known = 0 <= axis < len(size) and (not len(scales) - 1 or size[axis] == len(scales))
    if len(zeros) != len(scales) or (len(scales) > 1 and not known):
        rule = "one scale and zero point, or as many as an axis has elements"
        raise CorruptError(f"{file}: tensor {name!r}: {rule}, got {len(scales)} and {len(zeros)} of axis {axis}")
    if not all(np.isfinite(s) and s >= 0 for s in scales) or any(abs(z) > 1 << 31 for z in zeros):
        raise CorruptError(f"{file}: tensor {name!r}: scales must be finite and not negative, got others")
    return Quantization(scales, zeros, axis)
