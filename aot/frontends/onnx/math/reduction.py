"""Reductions over axes, and indices of extremes."""

from __future__ import annotations

from aot.frontends.conversion.table import renames
from aot.frontends.onnx.arrays.axes import count_of, reduced_at
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.reduction.sorting import Mode
from aot.runtime.abi import DType

SAME = renames("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2")
KINDS = (*SAME, "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")


@onnx(*KINDS)
def reduce(node: OnnxNode, x: OutPort, axes: OutPort | None = None) -> OutPort:
    """Convert a reduction; axes are an attribute before opset 18 (ReduceSum: 13). No axes: all axes, or none."""
    rank, keep = x.type.rank, node.flag("keepdims", True)
    if axes is None or axes.type.dims == (0,):
        attribute = node.integers("axes", ()) if axes is None else ()
        if not attribute and node.flag("noop_with_empty_axes"):
            return _elementwise(node, x)
        return reduced(node, x, node.list(attribute or range(rank)), keep)
    if axes.value is not None:
        return reduced(node, x, node.list(node.ints(axes, "axes")), keep)
    if count_of(node, axes) == rank:
        return reduced(node, x, node.list(range(rank)), keep)
    return reduced_at(node, x, axes, keep, lambda y, inner: reduced(node, y, inner, False))


def reduced(node: OnnxNode, x: OutPort, axes: OutPort, keep: bool) -> OutPort:
    build = node.build
    match node.kind:
        case "ReduceSumSquare":
            return build.ReduceSum(build.Multiply(x, x), axes, keep_dims=keep)
        case "ReduceLogSum":
            return build.Log(build.ReduceSum(x, axes, keep_dims=keep))
        case "ReduceLogSumExp":
            return _log_sum_exp(node, x, axes, keep)
        case "ReduceMax" | "ReduceMin" if x.type.dtype is DType.BOOL:
            logic = build.ReduceLogicalOr if node.kind == "ReduceMax" else build.ReduceLogicalAnd
            return logic(x, axes, keep_dims=keep)
        case _:
            return getattr(build, SAME[node.kind])(x, axes, keep_dims=keep)


def _log_sum_exp(node: OnnxNode, x: OutPort, axes: OutPort, keep: bool) -> OutPort:
    """Return top + log(sum(exp(x - top))), where an infinite top counts as 0."""
    build = node.build
    if not x.type.dtype.is_float:
        node.refuse(True, f"numbers must be floats, got {x.type.dtype.value}")
    top = build.ReduceMax(x, axes, keep_dims=True)
    top = build.Select(build.IsFinite(top), top, node.like(0, x))
    total = build.Log(build.ReduceSum(build.Exp(build.Subtract(x, top)), axes, keep_dims=True))
    result = build.Add(total, top)
    return result if keep else build.Squeeze(result, axes)


def _elementwise(node: OnnxNode, x: OutPort) -> OutPort:
    """Return the reduction over no axes: the result for each element alone."""
    build = node.build
    match node.kind:
        case "ReduceSumSquare":
            return build.Multiply(x, x)
        case "ReduceLogSum":
            return build.Log(x)
        case "ReduceL1" | "ReduceL2":
            return build.Abs(x)
        case _:
            return x


@onnx("ArgMax", "ArgMin")
def arg_extreme(
    node: OnnxNode, x: OutPort, *, axis: int = 0, select_last_index: bool = False, keepdims: bool = True
) -> OutPort:
    """Index of the first extreme, or of the last one: the first of the reversed tensor."""
    build, axis = node.build, node.axis(axis, x.type.rank)
    mode = Mode.MAX if node.kind == "ArgMax" else Mode.MIN
    along = node.list([axis])
    if select_last_index:
        x = build.Reverse(x, along)
    top = build.TopK(x, node.scalar(1), axis=axis, mode=mode, stable=True, index_element_type=DType.I64, outputs=2)
    index = top.node.out_port(1)
    if select_last_index:
        index = build.Subtract(build.Subtract(node.dims(x, [axis]), node.list([1])), index)
    return index if keepdims else build.Squeeze(index, along)
