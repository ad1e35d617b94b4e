"""Operands of convolutions and pools as their definitions have them: channels first, weights in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from aot.ir.op import Op as Definition
from aot.ir.operand import Operand
from aot.ir.types import TensorType
from aot.mo.bridge.windows import (
    GROUPED,
    PLANE,
    WINDOWED,
    channel_tensors,
    grouped_shape,
    is_channels_last,
    to_first,
    to_last,
)
from aot.passes.permutation import Order


def with_channels_first(
    node: Any, op: Definition, inputs: list[Operand | None]
) -> tuple[Definition, list[Operand | None]]:
    """Return the operation and its operands in the layout of the operation sets, weights in groups."""
    operands = list(inputs)

    def transpose(idx: int, order: Order) -> None:
        operand = operands[idx] if idx < len(operands) else None
        if operand is not None:
            operands[idx] = _transposed(operand, order)

    for idx in channel_tensors(node)[0]:
        transpose(idx, to_first(PLANE))
    if not operands or node.soft_get("type") not in WINDOWED or not node.has_valid("spatial_dims"):
        return op, operands
    if is_channels_last(node):
        transpose(0, to_first(len(node.spatial_dims)))
        if node.has_valid("get_weights_permute"):
            transpose(1, tuple(map(int, node.get_weights_permute.perm)))
    weights = operands[1] if len(operands) > 1 else None
    if weights is None or weights.type.dims is None or len(weights.type.dims) != len(node.spatial_dims) + 2:
        return op, operands
    group = int(node.group) if node.has_valid("group") else 1
    if group > 1 and type(op) in GROUPED:
        op = GROUPED[type(op)](**{f.name: getattr(op, f.name) for f in fields(op)})
    if type(op) in GROUPED.values():
        operands[1] = _split(node, weights, group)
    return op, operands


def with_channels_last(node: Any, outputs: Sequence[Operand]) -> tuple[Operand, ...]:
    """Return the results in the layout of the node."""
    order = to_last(len(node.spatial_dims) if is_channels_last(node) else PLANE)
    turned = range(len(outputs)) if is_channels_last(node) else channel_tensors(node)[1]
    return tuple(_transposed(output, order) if i in turned else output for i, output in enumerate(outputs))


def _transposed(operand: Operand, order: Order) -> Operand:
    """Return an operand in another order; itself if it is of another rank."""
    if operand.type.dims is None or len(operand.type.dims) != len(order):
        return operand
    dims = tuple(operand.type.dims[d] for d in order)
    value = None if operand.value is None else operand.value.transpose(order)
    return Operand(TensorType(operand.type.dtype, dims), value)


def _split(node: Any, weights: Operand, group: int) -> Operand:
    """Return weights in groups, if their shape is known."""
    dims = weights.type.dims
    if dims is None or not all(isinstance(d, int) for d in dims):
        return weights
    shape = grouped_shape(node, [d for d in dims if isinstance(d, int)], group)
    value = None if weights.value is None else weights.value.reshape(shape)
    return Operand(TensorType(weights.type.dtype, tuple(shape)), value)
