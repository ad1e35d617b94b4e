"""Operands of convolutions and pools with channels last, as their definitions have them: channels first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from aot.ir.op import Op as Definition
from aot.ir.operand import Operand
from aot.ir.types import TensorType
from aot.mo.bridge.windows import GROUPED, grouped_shape, has_last_channels, to_first, to_last
from aot.opset.products.convolution import GroupConvolution


def with_first_channels(
    node: Any, op: Definition, inputs: list[Operand | None]
) -> tuple[Definition, list[Operand | None]]:
    """Return the operation and its operands in the layout of the operation sets."""
    if not has_last_channels(node) or not inputs:
        return op, inputs
    found = [_turned(inputs[0], to_first(len(node.spatial_dims))), *inputs[1:]]
    weights = found[1] if len(found) > 1 else None
    if weights is None:
        return op, found
    if node.has_valid("get_weights_permute"):
        weights = _turned(weights, [int(d) for d in node.get_weights_permute.perm])
    group = int(node.group) if node.has_valid("group") else 1
    if group > 1 and type(op) in GROUPED:
        op = GROUPED[type(op)](**{f.name: getattr(op, f.name) for f in fields(op)})
    found[1] = _split(node, weights, group) if isinstance(op, GroupConvolution) else weights
    return op, found


def with_last_channels(node: Any, outputs: Sequence[Operand]) -> tuple[Operand, ...]:
    """Return the results in the layout of the node."""
    if not has_last_channels(node):
        return tuple(outputs)
    turned = (_turned(found, to_last(len(node.spatial_dims))) for found in outputs)
    return tuple(found for found in turned if found is not None)


def _turned(operand: Operand | None, order: list[int]) -> Operand | None:
    if operand is None or operand.type.dims is None or len(operand.type.dims) != len(order):
        return operand
    dims = tuple(operand.type.dims[d] for d in order)
    value = None if operand.value is None else operand.value.transpose(order)
    return Operand(TensorType(operand.type.dtype, dims), value)


def _split(node: Any, weights: Operand | None, group: int) -> Operand | None:
    """Return weights in groups, if their shape is known."""
    dims = None if weights is None else weights.type.dims
    if weights is None or dims is None or not all(isinstance(d, int) for d in dims):
        return weights
    shape = grouped_shape(node, [d for d in dims if isinstance(d, int)], group)
    value = None if weights.value is None else weights.value.reshape(shape)
    return Operand(TensorType(weights.type.dtype, tuple(shape)), value)
