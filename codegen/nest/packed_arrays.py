"""Arrays in the layout of packed operands. Loops are made without NumPy, so it has a module of its own."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from aot.codegen.ir.schedule import Pack

Number = TypeVar("Number", bound=np.generic)


def pack_array(array: NDArray[Number], packing: Pack) -> NDArray[Number]:
    """Arrange elements of any type in the layout of `pack_buffer`, padded with zeros."""
    size = packing.word_bytes // array.itemsize
    last = tuple(range(array.ndim - packing.words, array.ndim))
    tail = prod(array.shape[i] for i in last)
    if not packing.words or packing.order[-packing.words :] != last or tail % size or not array.flags.c_contiguous:
        packed = _in_blocks(array, packing)
        return _by_words(packed, packing) if packing.words else packed
    words = array.reshape(*array.shape[: last[0]], tail).view(
        f"<u{packing.word_bytes}"
    )  # which move as one element each
    packed = _in_blocks(words, replace(packing, order=(*packing.order[: -packing.words], last[0])))
    return packed.view(array.dtype).reshape(*packed.shape, size)


def _in_blocks(array: NDArray[Number], packing: Pack) -> NDArray[Number]:
    """Return the elements in the order of `packing`, with the lanes of a block as the innermost dimension."""
    others = tuple(i for i in packing.order if i != packing.axis)
    transposed = array.transpose(*others, *([] if packing.fused is None else [packing.fused]), packing.axis)
    transposed = transposed.reshape(*transposed.shape[: len(others)], -1)
    full_blocks, rest = divmod(transposed.shape[-1], packing.width)
    shape = [array.shape[i] for i in packing.order]
    shape[packing.place] = full_blocks + (rest > 0)
    packed = np.zeros((*shape, packing.width), array.dtype)
    to = np.moveaxis(packed, packing.place, 0)  # a view
    blocks = transposed[..., : full_blocks * packing.width].reshape(*transposed.shape[:-1], full_blocks, packing.width)
    to[:full_blocks] = np.moveaxis(blocks, -2, 0)
    if rest:
        to[full_blocks, ..., :rest] = transposed[..., full_blocks * packing.width :]
    return packed


def _by_words(packed: NDArray[Number], packing: Pack) -> NDArray[Number]:
    head, tail = packed.shape[: -packing.words - 1], prod(packed.shape[-packing.words - 1 : -1])
    size = packing.word_bytes // packed.itemsize
    terms = np.zeros((*head, -(-tail // size) * size, packing.width), packed.dtype)
    terms[..., :tail, :] = packed.reshape(*head, tail, packing.width)
    return np.ascontiguousarray(terms.reshape(*head, -1, size, packing.width).swapaxes(-1, -2))
