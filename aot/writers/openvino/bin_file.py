"""The `.bin` file: constants one after another, equal ones once, each at a multiple of 64 bytes."""

from __future__ import annotations

from hashlib import sha256
from typing import BinaryIO

import numpy as np

from aot.frontends.openvino.constants import pack
from aot.ir.types import Array
from aot.runtime.abi import DType

ALIGNMENT = 64
HALF_MAX = float(np.finfo(np.float16).max)
MAX_ZEROED = 0.75  # fraction of a constant's elements that f16 may round to zero, as in OpenVINO
CHUNK_ELEMENTS = 1 << 22  # elements that are checked at a time


class WeightsFile:
    """Writes constants to a stream one at a time; only one is in memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._end = stream, 0
        self._places: dict[bytes, int] = {}

    def add(self, dtype: DType, values: Array, lowest_first: bool = False) -> tuple[int, int]:
        """Return offset and size of a constant's bytes, which are written unless the file has them.

        `lowest_first`: as for `pack`.
        """
        raw = pack(dtype, values, lowest_first)
        if not raw.size:
            raw = np.zeros(1, np.uint8)  # OpenVINO refuses a constant of no bytes
        digest = sha256(raw.data).digest()
        if digest not in self._places:
            gap = -self._end % ALIGNMENT
            self._stream.write(bytes(gap))
            self._places[digest] = self._end + gap
            self._stream.write(raw.data)
            self._end += gap + raw.size
        return self._places[digest], raw.size


def fits_half(values: Array) -> bool:
    """True if f16 holds a constant of f32: no number becomes infinite, and at most `MAX_ZEROED` of them zero."""
    flat, lost = values.reshape(-1), 0
    for start in range(0, flat.size, CHUNK_ELEMENTS):
        part = flat[start : start + CHUNK_ELEMENTS]
        finite = part[np.isfinite(part)]
        if (np.abs(finite) > HALF_MAX).any():
            return False
        lost += int(((finite != 0) & (finite.astype(np.float16) == 0)).sum())
    return flat.size > 0 and lost < MAX_ZEROED * flat.size
