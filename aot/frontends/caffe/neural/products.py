"""Products with weights."""

from __future__ import annotations

from aot.frontends.caffe.registry import CaffeNode, caffe
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@caffe("InnerProduct", "Inner_product", param="inner_product_param")
def inner_product(
    node: CaffeNode, x: OutPort, w: OutPort, b: OutPort | None = None, *, axis: int, num_output: int, transpose: bool
) -> OutPort:
    """Multiply axes from `axis` on, flattened, by weights [outputs, inputs], or [inputs, outputs] if `transpose`."""
    build, first = node.build, node.axis(axis, x.type.rank)
    rows, columns = (w.shape[-2], w.shape[-1]) if w.type.rank > 1 else (num_output, -1)
    if num_output not in (rows, columns):
        raise ModelError(f"{node.kind}: weights must have {num_output} outputs, got {list(w.shape)}")
    matrix = w if w.type.rank == 2 else node.reshape(w, (rows, columns))
    flat = x
    if first != x.type.rank - 1:
        flat = build.Reshape(x, node.list([*[0] * first, -1]), special_zero=True)
    y = build.MatMul(flat, matrix, transpose_b=not transpose)
    return y if b is None else build.Add(y, node.flat(b))


@caffe("Embed", param="embed_param")
def embed(node: CaffeNode, x: OutPort, w: OutPort, b: OutPort | None = None) -> OutPort:
    """Take rows of the weights, by numbers that are stored as floats."""
    y = node.build.Gather(w, node.cast(x, DType.I64), node.scalar(0))
    return y if b is None else node.build.Add(y, node.flat(b))


@caffe("Scale", param="scale_param")
def scale(
    node: CaffeNode, x: OutPort, *given: OutPort, axis: int, num_axes: int, bias_term: bool, bottoms: int
) -> OutPort:
    """Multiply by a second bottom or the first blob, aligned at `axis`; the next blob is added."""
    if len(given) != 1 + bias_term:
        raise ModelError(f"{node.kind}: there must be {1 + bias_term} tensors beside the data, got {len(given)}")
    is_blob = bottoms == 1
    factor = _fitting(node, given[0], num_axes if is_blob else 0)
    y = node.build.Multiply(x, node.along(factor, axis, x.type.rank))
    if not bias_term:
        return y
    return node.build.Add(y, node.along(_fitting(node, given[1], num_axes if is_blob else 0), axis, x.type.rank))


def _fitting(node: CaffeNode, value: OutPort, axes: int) -> OutPort:
    """Return a blob as a vector if it goes along one axis."""
    return node.flat(value) if axes == 1 else value


@caffe("Bias", param="bias_param")
def bias(node: CaffeNode, x: OutPort, b: OutPort, *, axis: int, num_axes: int, bottoms: int) -> OutPort:
    """Add a second bottom or the blob, aligned at `axis`."""
    shift = _fitting(node, b, num_axes if bottoms == 1 else 0)
    return node.build.Add(x, node.along(shift, axis, x.type.rank))


@caffe("Axpy")
def axpy(node: CaffeNode, a: OutPort, x: OutPort, y: OutPort) -> OutPort:
    """A x + y, with a number of `a` for each channel."""
    factors = node.build.Squeeze(a, node.list(range(2, a.type.rank))) if a.type.rank > 2 else a
    return node.build.Add(node.build.Multiply(node.along(factors, 0, x.type.rank), x), y)
