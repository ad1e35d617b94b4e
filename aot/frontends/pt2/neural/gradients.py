"""Gradients of layers, for programs that return them: the core operations that are not made of others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort


@aten("embedding_dense_backward.default")
def embedding_gradient(
    node: AtenNode, grad: OutPort, indices: OutPort, num_weights: Size, padding_idx: Size, scale_grad_by_freq: bool
) -> OutPort:
    """Rows of gradients, added where an index chose a row of the table; padding rows count for nothing."""
    node.refuse(scale_grad_by_freq, "gradients that are divided by the count of an index are not supported")
    build, last = node.build, grad.type.rank - 1
    zeros = build.Broadcast(
        node.like(0, grad), build.Concat(node.vector([num_weights]), node.dims(grad, [last]), axis=0)
    )
    positions = build.Unsqueeze(indices, node.list([last]))
    kept = build.NotEqual(positions, node.same(node.port(padding_idx), positions))
    return node.onnx("ScatterND", zeros, positions, build.Select(kept, grad, node.like(0, grad)), reduction="add")


def _gradients(
    node: AtenNode,
    grad: OutPort,
    x: OutPort,
    mean: OutPort,
    scale: OutPort,
    weight: OutPort | None,
    axes: Sequence[int],
) -> tuple[OutPort, OutPort]:
    """Return the gradient of (x - mean) scale weight, normalised over `axes`, and (x - mean) scale."""
    build, over = node.build, node.list(axes)
    y = build.Multiply(build.Subtract(x, mean), scale)
    own = grad if weight is None else build.Multiply(grad, weight)
    along = build.Multiply(y, build.ReduceMean(build.Multiply(own, y), over, keep_dims=True))
    centred = build.Subtract(own, build.ReduceMean(own, over, keep_dims=True))
    return build.Multiply(scale, build.Subtract(centred, along)), y


@aten("native_layer_norm_backward.default")
def layer_norm_gradient(
    node: AtenNode,
    grad: OutPort,
    input: OutPort,
    normalized_shape: Sequence[Size],
    mean: OutPort,
    rstd: OutPort,
    weight: OutPort | None,
    bias: OutPort | None,
    output_mask: Sequence[bool],
) -> tuple[OutPort, ...]:
    """Gradients of data, weight and bias; one that is not requested has no consumers."""
    build, first = node.build, input.type.rank - len(normalized_shape)
    port, y = _gradients(node, grad, input, mean, rstd, weight, range(first, input.type.rank))
    outer = node.list(range(first))
    return port, build.ReduceSum(build.Multiply(grad, y), outer), build.ReduceSum(grad, outer)


@aten("native_group_norm_backward.default")
def group_norm_gradient(
    node: AtenNode,
    grad: OutPort,
    input: OutPort,
    mean: OutPort,
    rstd: OutPort,
    weight: OutPort | None,
    n: Size,
    c: Size,
    hxw: Size,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[OutPort, ...]:
    """Gradients of data, weight and bias, as of layer_norm, over the channels of a group and the axes after them."""
    build = node.build
    sizes = build.Concat(node.vector([n]), node.list([group, -1]), node.vector([hxw]), axis=0)
    rows, own = build.Reshape(input, sizes), build.Reshape(grad, sizes)
    mean, rstd = (build.Unsqueeze(v, node.list([2, 3])) for v in (mean, rstd))
    factors = None if weight is None else build.Reshape(weight, node.list([1, group, -1, 1]))
    gradient, y = _gradients(node, own, rows, mean, rstd, factors, [2, 3])
    sums = [build.ReduceSum(v, node.list([0, 3])) for v in (build.Multiply(own, y), own)]
    return build.Reshape(gradient, build.ShapeOf(input)), *(build.Reshape(v, node.list([-1])) for v in sums)


@aten("_adaptive_avg_pool2d_backward.default")
def adaptive_pool_gradient(node: AtenNode, grad: OutPort, self: OutPort) -> OutPort:
    """Each element gets the gradients of the means that it is part of, divided by their counts."""
    rank = self.type.rank
    for axis in (rank - 2, rank - 1):
        size, parts = node.extent(self, axis, "sizes of images"), node.extent(grad, axis, "sizes of images")
        share = np.zeros((size, parts))
        for part in range(parts):
            begin, end = part * size // parts, -(-(part + 1) * size // parts)
            share[begin:end, part] = 1 / (end - begin)
        matrix = node.build.const(share if axis == rank - 2 else share.T, grad.type.dtype)
        grad = node.build.MatMul(*((matrix, grad) if axis == rank - 2 else (grad, matrix)))
    return grad


@aten("max_pool2d_with_indices_backward.default")
def max_pool_gradient(
    node: AtenNode,
    grad: OutPort,
    self: OutPort,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: OutPort,
) -> OutPort:
    """Gradients, added at the places of the maxima in their image."""
    build, outer = node.build, node.dims(self, range(self.type.rank - 2))
    flat = build.Concat(outer, node.list([-1]), axis=0)
    zeros, rows, positions = (build.Reshape(v, flat) for v in (self, grad, indices))
    zeros = build.Broadcast(node.like(0, zeros), build.ShapeOf(zeros))
    sums = node.onnx("ScatterElements", zeros, positions, rows, axis=self.type.rank - 2, reduction="add")
    return build.Reshape(sums, build.ShapeOf(self))
