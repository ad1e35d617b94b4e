"""Bytes of a sequence: its tokens with the states of variables, as an archive of NumPy's arrays that is not compressed.

Bytes may come from anywhere: types, sizes and places are compared with those of the model before an array is made.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from io import BytesIO
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from aot.runtime.arrays.tensors import Array, fits, numpy_dtype
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import VariableInfo

RULE = "restore: needs what save() of the same model returned"
HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|=\w]{1,8})', 'fortran_order': False, 'shape': \(([\d, ]{0,200})\), *\} *\n",
    re.DOTALL,
)
DAMAGED = (OSError, ValueError, TypeError, KeyError, EOFError, BadZipFile, RuntimeError, struct.error, OverflowError)


def packed(tokens: Sequence[int], states: Sequence[Array]) -> bytes:
    """Return the bytes of a sequence."""
    stream = BytesIO()
    named = {f"v{k}": state for k, state in enumerate(states)}
    np.savez(stream, allow_pickle=False, tokens=np.array(tokens, np.int64), **named)
    return stream.getvalue()


def unpacked(saved: bytes, infos: Sequence[VariableInfo], vocab_size: int | None) -> tuple[list[int], list[Array]]:
    """Return tokens and states; UsageError for bytes that are none of a sequence of a model with these variables.

    `vocab_size`: tokens are below it.
    """
    try:
        tokens, *states = _arrays(saved, ["tokens", *(f"v{k}" for k in range(len(infos)))])
    except DAMAGED as error:
        raise UsageError(f"{RULE}, got other bytes") from error
    if tokens.dtype != np.int64 or tokens.ndim != 1:
        raise UsageError(f"{RULE}, got {tokens.dtype} {list(tokens.shape)} as tokens")
    if len(tokens) and not (int(tokens.min()) >= 0 and (vocab_size is None or int(tokens.max()) < vocab_size)):
        raise UsageError(f"{RULE}, got tokens {tokens.min()} to {tokens.max()} for {vocab_size}")
    for info, state in zip(infos, states, strict=True):
        if state.dtype != numpy_dtype(info.tensor) or not _is_state(info, state.shape, len(tokens)):
            got = f"{state.dtype} {list(state.shape)}"
            raise UsageError(
                f"{RULE}, got sizes that disagree: {info.tensor.name!r} is {got} behind {len(tokens)} tokens"
            )
    return tokens.tolist(), states


def _is_state(info: VariableInfo, shape: tuple[int, ...], tokens: int) -> bool:
    """True if a variable has this shape after that many tokens: one row, and an element for each of them."""
    if not tokens:  # of a variable that is not set, dimensions that vary are 0
        return len(shape) == len(info.tensor.shape) and all(
            n in (0, m) for n, m in zip(shape, info.tensor.shape, strict=True)
        )
    axis = info.cache.axis if info.cache is not None else max(info.varying, default=-1)
    expected = [1 if k in info.varying else n for k, n in enumerate(info.tensor.shape)]
    if axis >= 0:
        expected[axis] = tokens
    return list(shape) == expected and fits(info.tensor, shape)


def _arrays(saved: bytes, names: Sequence[str]) -> list[Array]:
    """Return the arrays with these names, which are all that there are; one of DAMAGED for other bytes."""
    with ZipFile(BytesIO(saved)) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if len(archive.infolist()) != len(names) or entries.keys() != {f"{name}.npy" for name in names}:
            raise ValueError
        sizes = sum(entry.file_size for entry in entries.values())
        if sizes > len(saved) or any(entry.compress_type != ZIP_STORED for entry in entries.values()):
            raise ValueError
        return [_array(archive.read(entries[f"{name}.npy"])) for name in names]


def _array(raw: bytes) -> NDArray[np.generic]:
    header = HEADER.match(raw)
    if header is None:
        raise ValueError
    shape = tuple(int(n) for n in header[2].decode().replace(" ", "").split(",") if n)
    dtype = np.dtype(header[1].decode())
    return np.frombuffer(raw, dtype, offset=header.end()).reshape(shape)
