"""Sparse weights: a tree of axes. Each axis lists all of its elements, or those that are there."""

from __future__ import annotations

import numpy as np

from aot.frontends.tflite.schema import Table, enumeration
from aot.ir.types import Array
from aot.ir.values.estimate import check_table
from aot.runtime.errors import CorruptError, UnsupportedError

DENSE, CSR = 0, 1


def dense(sparsity: Table, raw: Array, dtype: np.dtype[np.generic], shape: tuple[int, ...], name: str) -> Array:
    """Return the tensor with its zeros.

    Axes are walked in the order of `TraversalOrder`; those from the tensor's rank on are axes within blocks, and
    `BlockMap` says which axis each of them divides.
    """
    order, blocks = sparsity.numbers("TraversalOrder"), sparsity.numbers("BlockMap")
    rank, metadata = len(shape), sparsity.tables("DimMetadata")
    if sorted(order) != list(range(rank + len(blocks))) or len(metadata) != len(order):
        raise CorruptError(f"{name}: each axis of sparse data must be walked once, got the order {order}")
    if any(not 0 <= b < rank for b in blocks) or len(set(blocks)) != len(blocks):
        raise CorruptError(f"{name}: a block must divide each axis once, got {blocks}")
    if dtype.itemsize < 1 or dtype.kind == "O":
        raise UnsupportedError(f"sparse data of type {dtype} is not supported")
    check_table(name, *shape, itemsize=dtype.itemsize)
    sizes, positions, values = _walked(metadata, order, raw.size // dtype.itemsize, name)
    extents = list(shape)
    for k, axis in enumerate(blocks):
        inner = sizes[rank + k]
        if inner < 1 or extents[axis] % inner:
            raise CorruptError(f"{name}: blocks must divide an axis of {shape[axis]}, got blocks of {inner}")
        extents[axis] //= inner
    if any(size and size != extents[a] for a, size in enumerate(sizes[:rank])):
        raise CorruptError(f"{name}: sparse data must have the shape of its tensor, got sizes {sizes}")
    index = [positions[a] for a in range(rank)]
    for k, axis in enumerate(blocks):
        index[axis] = index[axis] * sizes[rank + k] + positions[rank + k]
    if any(((i < 0) | (i >= n)).any() for i, n in zip(index, shape, strict=True)):
        raise CorruptError(f"{name}: indices of sparse data must lie in {shape}, got others")
    out = np.zeros(shape, dtype)
    data = np.frombuffer(raw[: values * dtype.itemsize], dtype)
    out[tuple(index)] = data
    return out


def _walked(
    metadata: list[Table], order: tuple[int, ...], stored: int, name: str
) -> tuple[list[int], list[Array], int]:
    """Return the size of each axis (0: unknown), the place of each element along it, and the number of elements."""
    sizes, positions = [0] * len(order), [np.zeros(1, np.int64) for _ in order]
    count, walked = 1, list[int]()
    for axis, table in zip(order, metadata, strict=True):
        if table.number("Format") == DENSE:
            size = int(table.number("DenseSize"))
            if size < 1 or count * size > stored:
                raise CorruptError(f"{name}: sparse data must have {stored} elements, got {count} times {size}")
            sizes[axis] = size
            repeats, own = np.full(count, size), np.tile(np.arange(size), count)
        else:
            bounds, own = (_vector(table, field) for field in ("ArraySegments", "ArrayIndices"))
            repeats = np.diff(bounds)
            fits = bounds.size == count + 1 and bounds[0] == 0 and bounds[-1] == own.size and own.size <= stored
            if not fits or (repeats < 0).any():
                raise CorruptError(f"{name}: segments of sparse data must be {count + 1} rising numbers, got others")
        for other in walked:
            positions[other] = np.repeat(positions[other], repeats)
        positions[axis], count = own.astype(np.int64), own.size
        walked.append(axis)
    if count != stored:
        raise CorruptError(f"{name}: sparse data must have {count} elements, got {stored}")
    return sizes, positions, count


def _vector(table: Table, field: str) -> Array:
    """Numbers of 8, 16 or 32 bits."""
    indices = table.union(field, table.number(f"{field}Type"), enumeration("SparseIndexVector"))
    return np.empty(0, np.int64) if indices is None else indices[1].array("Values").astype(np.int64)
