"""Tensors of strings: arrays of str for the user, three tensors of numbers for compiled code.

["héllo", ""]   ->   begins [0, 6]   ends [6, 6]   symbols 68 C3 A9 6C 6C 6F      (UTF-8, i32 places)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from aot.runtime.abi import DType
from aot.runtime.arrays.tensors import Array, fits
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import TensorInfo

PARTS = ("begins", "ends", "symbols")  # consecutive inputs or outputs of a model, in this order
MAX_TEXT_BYTES = (1 << 31) - 1  # bytes that i32 places can tell
# Vocabularies contain pieces of characters: bytes that are not UTF-8 are read and written as lone surrogates.
ENCODING = ("utf-8", "surrogateescape")


def encode(array: Array) -> tuple[Array, Array, Array]:
    """Return the three tensors of an array of str or bytes; UsageError for others and more than 2 GiB."""
    encoded = [_bytes(text) for text in array.astype(object).reshape(-1).tolist()]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64).reshape(array.shape)
    if ends.max(initial=0) > MAX_TEXT_BYTES:
        raise UsageError(f"strings: a tensor must have at most {MAX_TEXT_BYTES} bytes of text, got {ends.max()}")
    lengths = np.array([len(text) for text in encoded], np.int32).reshape(array.shape)
    last = ends.astype(np.int32)
    return last - lengths, last, np.frombuffer(b"".join(encoded), np.uint8)


def texts(begins: Array, ends: Array, symbols: Array) -> Array:
    """Return the array of str, with dtype object: strings keep trailing zeros, and differ in length."""
    data = symbols.tobytes()
    strings = np.empty(begins.shape, object)
    pairs = zip(begins.reshape(-1).tolist(), ends.reshape(-1).tolist(), strict=True)
    strings.reshape(-1)[:] = [data[low:high].decode(*ENCODING) for low, high in pairs]
    return strings


def as_texts(kind: str, info: TensorInfo, value: object) -> Array:
    """Return `value` as an array of the tensor's shape; `encode` checks its elements."""
    try:
        array = np.asarray(value, object)
    except ValueError as error:
        raise UsageError(f"{kind} '{info.name}': expected {info}, got {type(value).__name__}: {error}") from None
    dtype = cast(Array, value).dtype if isinstance(value, np.ndarray) else array.dtype
    target = "string" if dtype.kind in "USOT" else dtype
    if target != "string" or not fits(info, array.shape):
        raise UsageError(f"{kind} '{info.name}': expected {info}, got {target}[{','.join(map(str, array.shape))}]")
    return array


def joined(infos: Sequence[TensorInfo]) -> tuple[TensorInfo, ...]:
    """Return inputs or outputs as users see them: three parts of a tensor of strings are one tensor."""
    return tuple(info for _, info in numbered(infos))


def numbered(infos: Sequence[TensorInfo]) -> Iterator[tuple[int, TensorInfo]]:
    """Yield tensors, as `joined` returns them, each with the index of its first, or only, part."""
    at = 0
    while at < len(infos):
        info = infos[at]
        if info.string:
            names = tuple(n.removesuffix(f".{PARTS[0]}") for n in info.names)
            yield at, info._replace(name=info.string, names=names, dtype=DType.STRING, string="")
        else:
            yield at, info
        at += len(PARTS) if info.string else 1


def _bytes(text: object) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise UsageError(f"strings: elements must be str or bytes, got {type(text).__name__}")
    try:
        return text.encode(*ENCODING)
    except UnicodeEncodeError as error:
        raise UsageError(f"strings: elements must be texts, got half of a surrogate pair at {error.start}") from None
