"""Requests of several clients as one batch: their rows are put together, inferred once, and taken apart.

x[2,8]  x[1,8]  x[3,8]   ->   x[6,8]   ->   y[6,4]   ->   y[2,4]  y[1,4]  y[3,4]

Shapes tell where rows may lie, but not that they are independent: a softmax over rows keeps all shapes. So batches are
asked for by a setting, and `depends_on_other_rows` looks for a row that changes beside others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aot.runtime.abi import DType
from aot.runtime.arrays.tensors import Array, numpy_dtype
from aot.runtime.loading.manifest import Dim, Manifest, TensorInfo
from aot.runtime.model import CompiledModel

Named = dict[str, Array]
Key = tuple[tuple[int, ...], ...]

_PROBED_ROWS = 5
_SMALL_SIZE = 4  # size of other varying dimensions in the probe


def batch_limit(manifest: Manifest, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> int | None:
    """Return the most rows of one inference; 0 without a limit, None if inputs and outputs have no rows in common.

    Rows lie along the first dimension of all inputs and outputs, one symbol, which occurs nowhere else.
    """
    tensors = [*inputs, *outputs]
    if not inputs or manifest.variables or manifest.late or any(not t.shape for t in tensors):
        return None
    rows = inputs[0].shape[0]
    if not isinstance(rows, Dim) or rows.text not in manifest.symbols or rows.low > 1:
        return None
    others = [str(dim) for t in tensors for dim in t.shape[1:]]
    if any(str(t.shape[0]) != rows.text for t in tensors) or any(rows.text in text for text in others):
        return None
    return 0 if rows.high is None else rows.high


def key_of(arrays: Mapping[str, Array]) -> Key:
    """Return the sizes that requests of one batch share: all but the rows."""
    return tuple(array.shape[1:] for array in arrays.values())


def join(requests: Sequence[Named]) -> Named:
    """Return the inputs of a batch."""
    if len(requests) == 1:
        return requests[0]
    return {name: np.concatenate([request[name] for request in requests]) for name in requests[0]}


def split(results: Named, rows: Sequence[int]) -> list[Named]:
    """Return the results of each request, views of the batch's."""
    ends = np.cumsum(rows).tolist()
    return [{k: a[end - n : end] for k, a in results.items()} for n, end in zip(rows, ends, strict=True)]


def depends_on_other_rows(model: CompiledModel, most: int) -> bool:
    """True if a row of noise has other bits in a batch than alone: its batches would mix up clients' results."""
    generator = np.random.default_rng(0)
    rows = min(_PROBED_ROWS, most)
    batch = {t.name: _noise(t, rows, generator) for t in model.inputs}
    together = model(batch)
    for row in range(rows):
        alone = model({name: array[row : row + 1] for name, array in batch.items()})
        for index in range(len(model.outputs)):
            if together[index][row : row + 1].tobytes() != alone[index].tobytes():
                return True
    return False


def _noise(info: TensorInfo, rows: int, generator: np.random.Generator) -> Array:
    shape = [rows, *(d if isinstance(d, int) else _size(d) for d in info.shape[1:])]
    dtype = numpy_dtype(info)
    if info.dtype in (DType.F16, DType.F32, DType.F64):
        return generator.standard_normal(shape).astype(dtype)
    if info.dtype is DType.BF16:
        return (generator.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def _size(dim: Dim) -> int:
    return max(dim.low, min(_SMALL_SIZE, _SMALL_SIZE if dim.high is None else dim.high))
