"""Shapes and sizes."""

from __future__ import annotations

from math import prod

import numpy as np

from aot.frontends.onnx.arrays.axes import squeezed_at, unsqueezed_at
from aot.frontends.onnx.registry import OnnxNode, Outputs, Value, onnx
from aot.ir.graph import Graph, OutPort
from aot.ir.one_rank import can_be_one, which_are_one
from aot.ir.op import Foreign
from aot.ir.types import dtype_of
from aot.opset.control.control_flow import If
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import InputMap
from aot.opset.elementwise.broadcasting import BroadcastMode

MAX_FORKED_DIMS = 2  # dimensions of a tensor that may be 1: each doubles the forms of all consumers


@onnx("Identity")
def identity(node: OnnxNode, x: Value) -> Outputs:
    return Outputs([x])


@onnx("Shape")
def shape(node: OnnxNode, x: OutPort) -> OutPort:
    rank = x.type.rank
    bounds = (node.integer("start", 0), node.integer("end", rank))
    start, end = (min(max(v + rank if v < 0 else v, 0), rank) for v in bounds)
    dims = node.build.ShapeOf(x)
    if (start, end) == (0, rank):
        return dims
    return node.build.Slice(dims, *(node.list([v]) for v in (start, max(start, end), 1, 0)))


@onnx("Size")
def size(node: OnnxNode, x: OutPort) -> OutPort:
    if x.type.is_static:
        return node.scalar(prod(x.type.static_shape))
    return node.build.ReduceProd(node.build.ShapeOf(x), node.list([0]))


@onnx("Reshape")
def reshape(node: OnnxNode, x: OutPort, target: OutPort, *, allowzero: bool = False) -> OutPort:
    """Convert to Reshape; 0 keeps a dimension unless `allowzero` is set."""
    return node.build.Reshape(x, target, special_zero=not allowzero)


@onnx("Flatten")
def flatten(node: OnnxNode, x: OutPort, *, axis: int = 1) -> OutPort:
    axis = axis + x.type.rank if axis < 0 else axis
    build, one, along = node.build, node.list([1]), node.list([0])
    parts = [node.dims(x, axes) for axes in (range(axis), range(axis, x.type.rank))]
    sizes = [build.ReduceProd(build.Concat(one, p, axis=0), along, keep_dims=True) for p in parts]
    constant_indices = [i for i, p in enumerate(sizes) if p.value is not None and p.value.dtype != object]
    if constant_indices:  # the other dimension is the remaining size
        sizes[1 - constant_indices[0]] = (
            sizes[1 - constant_indices[0]] if len(constant_indices) == 2 else node.list([-1])
        )
    return build.Reshape(x, build.Concat(*sizes, axis=0))


@onnx("Squeeze")
def squeeze(node: OnnxNode, x: OutPort, axes: OutPort | None = None) -> Value:
    if axes is None and node.has("axes"):
        axes = node.list(node.integers("axes"))
    if axes is not None and axes.value is None:
        return squeezed_at(node, x, axes)
    return _without_ones(node, x) if axes is None else node.build.Squeeze(x, axes)


def _without_ones(node: OnnxNode, x: OutPort) -> Value:
    """Drop all dimensions of size 1, with a fork for each that may be 1. `kept`: dimensions not 1 in this branch."""
    known = node.integers("kept", ())
    may_be = [k for k, n in enumerate(x.shape) if k not in known and can_be_one(n)]
    if not may_be:
        ones = [k for k, n in enumerate(x.shape) if n == 1]
        return node.build.Squeeze(x) if not known else node.build.Squeeze(x, node.list(ones)) if ones else x
    node.refuse(len(may_be) > MAX_FORKED_DIMS, which_are_one(x.type))
    position, build = may_be[0], node.build
    is_one = build.Equal(node.size(x, position), node.scalar(1))
    fork = build.node(If((InputMap(1, 0),), (), (InputMap(1, 0),), ()), is_one, x, outputs=0)
    gone, stays = Graph(f"{fork.name}.then"), Graph(f"{fork.name}.else")
    one = _foreign(gone, node, gone.add(Parameter(x.type.dtype, None)).out_port(0), axes=(position,))
    _result(gone, _foreign(gone, node, one, kept=tuple(k - (k > position) for k in known)))
    _result(stays, _foreign(stays, node, stays.add(Parameter(x.type.dtype, None)).out_port(0), kept=(*known, position)))
    return node.bodies.branch_outputs(node, fork, [(gone, [x]), (stays, [x])], x.shape[position])[0]


def _foreign(graph: Graph, node: OnnxNode, x: OutPort, **attrs: tuple[int, ...]) -> OutPort:
    """Return a Squeeze of opset 11, with its axes as an attribute."""
    op = Foreign("onnx", "Squeeze", (("domain", ""), ("opset", 11), *attrs.items()))
    return graph.add(op, x, name=node.node.name, origin=node.node.origin).out_port(0)


def _result(graph: Graph, port: OutPort) -> None:
    graph.add(Result(), port)


@onnx("Unsqueeze")
def unsqueeze(node: OnnxNode, x: OutPort, axes: OutPort | None = None) -> OutPort:
    if axes is not None and axes.value is None:
        return unsqueezed_at(node, x, axes)
    dims = node.integers("axes") if axes is None else node.ints(axes, "axes")
    rank = x.type.rank + len(dims)
    return node.build.Unsqueeze(x, node.list(sorted(node.axis(a, rank) for a in dims)))


@onnx("Expand")
def expand(node: OnnxNode, x: OutPort, target: OutPort) -> OutPort:
    return node.build.Broadcast(x, target, mode=BroadcastMode.BIDIRECTIONAL)


@onnx("ConstantOfShape")
def constant_of_shape(node: OnnxNode, target: OutPort) -> OutPort:
    value = node.tensor("value").reshape(-1)[0] if node.has("value") else np.float32(0)
    return node.build.Broadcast(node.build.const(value, dtype_of(np.asarray(value))), target)
