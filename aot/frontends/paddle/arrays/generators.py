"""Tensors that are made of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.conversion.node_context import Value
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.estimate import check_table
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

VALUES = ("values", "fp32_values", "int32_values", "int64_values", "bool_values")  # attributes of several versions


@paddle("full")
def full(node: PaddleNode, value: OutPort | None = None, sizes: Value = None, *, shape: Sequence[int] = ()) -> OutPort:
    """Fill a tensor with a number, which is an attribute or a tensor, as its sizes are."""
    dtype = node.dtype()
    if value is None:
        text = node.attrs.get("str_value") or ""
        number = float(text) if text and not text.lstrip("-").isdecimal() else int(text) if text else None
        value = _number(node, node.attrs.get("value", 0) if number is None else number, dtype)
    target_shape = node.list(shape) if sizes is None else node.vector(sizes)
    if sizes is None and not shape:
        return value
    return node.build.Broadcast(node.single(node.cast(value, dtype)), target_shape)


def _number(node: PaddleNode, value: float, dtype: DType) -> OutPort:
    try:
        data = np.asarray(value).astype(numpy_dtype(dtype))
    except (ValueError, OverflowError) as error:
        raise ModelError(f"{node.kind}: a number of {dtype.value}, got {value!r}") from error
    return node.build.const(data, dtype)


@paddle("full_int_array")
def full_int_array(node: PaddleNode, *, value: Sequence[int]) -> OutPort:
    return node.list(value)


@paddle("full_like")
def full_like(node: PaddleNode, x: OutPort, value: OutPort | None = None) -> OutPort:
    dtype = node.dtype(default=x.type.dtype)
    number = node.build.const(0, dtype) if value is None else node.single(node.cast(value, dtype))
    return node.build.Broadcast(number, node.build.ShapeOf(x))


@paddle("full_with_tensor")
def full_with_tensor(node: PaddleNode, value: OutPort, sizes: Value) -> OutPort:
    return node.build.Broadcast(node.single(node.cast(value, node.dtype())), node.vector(sizes))


@paddle("full_batch_size_like")
def full_batch_size_like(
    node: PaddleNode,
    like: OutPort,
    *,
    shape: Sequence[int],
    value: float = 0.0,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
) -> OutPort:
    """Fill a tensor of a shape; one of its sizes is a size of another tensor."""
    at = node.axis(output_dim_idx, len(shape))
    parts = [node.dims(like, [input_dim_idx]) if a == at else node.list([n]) for a, n in enumerate(shape)]
    sizes = parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=0)
    return node.build.Broadcast(_number(node, value, node.dtype()), sizes)


@paddle("assign_value")
def assign_value(node: PaddleNode, output: OutPort | None = None, *, shape: Sequence[int]) -> OutPort:
    """Make a tensor of the numbers in the file."""
    del output
    dtype = node.dtype()
    values = next((node.attrs[name] for name in VALUES if node.attrs.get(name)), ())
    data: Array = np.array(values)
    check_table(node.kind, *shape)
    if data.size != int(np.prod(shape, dtype=object)):
        raise ModelError(f"{node.kind}: a tensor of {list(shape)} must have as many numbers, got {data.size}")
    return node.build.const(data.reshape(shape), dtype)


@paddle("arange")
def arange(node: PaddleNode, start: OutPort, end: OutPort, step: OutPort) -> OutPort:
    dtype = node.dtype(default=start.type.dtype)
    first, last, by = (node.single(v) for v in (start, end, step))
    return node.build.Range(first, last, by, output_type=dtype)


@paddle("linspace")
def linspace(node: PaddleNode, start: OutPort, stop: OutPort, number: OutPort) -> OutPort:
    """Make numbers at equal distances, both ends among them."""
    build, count = node.build, int(node.one(number, "the number of elements"))
    low, high = (node.cast(node.single(v), DType.F32) for v in (start, stop))
    check_table(node.kind, count)
    at = build.const(np.linspace(0, 1, count), DType.F32)
    return node.cast(build.Add(low, build.Multiply(at, build.Subtract(high, low))), node.dtype())


@paddle("eye")
def eye(node: PaddleNode, rows: OutPort, columns: OutPort) -> OutPort:
    """Make a matrix with ones on its diagonal."""
    height, width = (int(node.one(v, "sizes")) for v in (rows, columns))
    width = height if width < 0 else width
    check_table(node.kind, height, width)
    return node.build.const(np.eye(height, width), node.dtype())


@paddle("one_hot")
def one_hot(node: PaddleNode, x: OutPort, depth: OutPort) -> OutPort:
    count = int(node.one(depth, "the number of classes"))
    return node.build.OneHot(x, node.scalar(count), node.build.const(1, DType.F32), node.build.const(0, DType.F32))


@paddle("tril", "triu", "tril_triu")
def triangle(node: PaddleNode, x: OutPort, *, diagonal: int = 0, lower: bool = True) -> OutPort:
    """Keep the elements below or above a diagonal."""
    upper = node.kind.startswith("triu") or (node.kind == "tril_triu" and not lower)
    return node.onnx("Trilu", x, node.scalar(diagonal), upper=int(upper))
