"""Scales in blocks (BlockwiseQuantization): a tensor of the sub-graph has the scales.

    number[.., i] = (stored[.., i] - zeros[.., i / size]) scales[.., i / size]

The union and its tables came after the schema package, so fields are read by their numbers in the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from aot.frontends.tflite.schema import Table
from aot.frontends.tflite.tensors import Blocks, Quantization, Stored
from aot.ir.types import Array, dtype_of
from aot.runtime.errors import CorruptError, UnsupportedError

# Numbers of members of the union QuantizationDetails, of its field, and of fields of BlockwiseQuantization
BLOCKWISE, SEVERAL_AXES = 2, 3
_DETAILS = 5
_SCALES, _ZEROS, _SIZE = range(3)
KINDS = ("f16", "f32", "bf16")  # element types of scales


def with_blocks(stored: Stored, table: Table, tensors: Sequence[Stored]) -> Stored:
    """Return a tensor with the scales in blocks that its table names, if it does; `tensors`: of the sub-graph."""
    parameters = table.table("Quantization")
    kind = 0 if parameters is None else int(parameters.number("DetailsType"))
    if parameters is None or kind not in (BLOCKWISE, SEVERAL_AXES):
        return stored
    name = f"{stored.file}: tensor {stored.facts.name!r}"
    if kind == SEVERAL_AXES:
        raise UnsupportedError(f"{name}: scales of several axes (MultiAxisQuantization) are not supported")
    details_field = parameters.number("Details")
    if details_field is None:
        raise CorruptError(f"{name}: BlockwiseQuantization must have a table, got none")
    details = Table(SimpleNamespace(_tab=details_field), parameters.quota)
    size, zeros = details.stored(_SIZE), details.stored(_ZEROS)
    scales = _numbers(tensors, details.stored(_SCALES), f"{name}: scales")
    if scales is None or dtype_of(scales).value not in KINDS or not np.isfinite(scales).all():
        raise CorruptError(f"{name}: scales in blocks must be finite constants of {', '.join(KINDS)}, got others")
    axis = _axis(stored.size, scales.shape, size, name)
    points = None if zeros < 0 else _numbers(tensors, zeros, f"{name}: zero points")
    fits = zeros < 1 if points is None else points.shape == scales.shape and points.dtype != object
    if not fits:
        raise CorruptError(f"{name}: zero points in blocks must be a constant of the shape of scales, got another")
    quantization = Quantization((), (0,), axis, Blocks(size, scales, points))
    return replace(stored, facts=replace(stored.facts, quantization=quantization))


def _numbers(tensors: Sequence[Stored], number: int, name: str) -> Array | None:
    """Return the data of a constant, None if the tensor is none."""
    if not 0 <= number < len(tensors):
        raise CorruptError(f"{name} are one of {len(tensors)} tensors, got number {number}")
    scale_tensor = tensors[number]
    return None if scale_tensor.raw is None or scale_tensor.sparsity is not None else scale_tensor.data()


def _axis(shape: Sequence[int], scales: Sequence[int], size: int, name: str) -> int:
    """Return the axis along which a block has `size` elements."""
    for axis in reversed(range(len(shape))):
        blocked = [n // size if a == axis and size > 0 and n % size == 0 else n for a, n in enumerate(shape)]
        if size > 0 and shape[axis] % size == 0 and list(scales) == blocked:
            return axis
    rule = f"one for each {size} elements of an axis of {list(shape)}"
    raise CorruptError(f"{name}: scales in blocks must be {rule}, got {list(scales)}")
