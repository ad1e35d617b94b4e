"""Linear branches of one tensor that a network adds up become one: blocks that were trained with several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.types import Array
from aot.opset.elementwise.binary import Add, Multiply
from aot.opset.elementwise.conversion import Convert
from aot.opset.elementwise.quantization import FakeQuantize
from aot.opset.products.convolution import Convolution, GroupConvolution
from aot.opset.products.matmul import MatMul
from aot.opset.products.pool_windows import AutoPad, entries
from aot.passes.match import (
    broadcasts,
    can_broadcast_to,
    channel_vector,
    constant,
    has_one_consumer,
    has_same_dims,
    is_constant,
    with_constant,
)
from aot.passes.rewrite import rule
from aot.runtime.abi import DType

MERGED_TYPES = (DType.F32, DType.F64)  # shorter floats would round twice


@rule(Add)
def merge_branches(node: Node, op: Add, build: Builder) -> OutPort | None:
    """f(x, v) + .. + f(x, w) -> f(x, v + w) + ..; f(x, w) + .. + x * c -> f(x, w + c at its middle) + ..

    For convolutions, also where one's windows lie inside of the other's, and products, with constant weights.
    """
    out = node.out_port(0)
    if out.type.dtype not in MERGED_TYPES or _is_inside_sum(out):
        return None
    terms = list(_terms(out))
    branches = defaultdict[int, list[_Branch]](list)
    for term in terms:
        if (branch := _branch(term)) is not None:
            branches[id(branch.x)].append(branch)
    for alike in branches.values():
        for pair in combinations(alike, 2):
            merged = _merged(*pair, build)
            if merged is not None:
                others = [term for term in terms if term not in (pair[0].out, pair[1].out)]
                for term in sorted(others, key=lambda port: constant(port) is not None):  # a bias is the last
                    merged = build.Add(merged, term)
                return merged
    return None


@dataclass(frozen=True, slots=True)
class _Branch:
    """A term of a sum that is linear in x: a convolution or product; a scale of channels, which is neither."""

    x: OutPort
    out: OutPort
    factor: OutPort  # a constant

    @property
    def weights(self) -> Array:
        """Elements of the factor. Read only for pairs, since compressed weights are decompressed for it."""
        result = constant(self.factor)
        assert result is not None
        return result

    @property
    def op(self) -> object:
        return self.out.node.op


def _is_inside_sum(port: OutPort) -> bool:
    """True if the only consumer is an addition of the same sum, which merges the branches of all of it."""
    outer = port.destinations[0].node if has_one_consumer(port) else None
    return outer is not None and _is_addition(outer, port)


def _is_addition(node: Node, term: OutPort) -> bool:
    return isinstance(node.op, Add) and broadcasts(node.op) and has_same_dims(node.out_port(0).shape, term.shape)


def _terms(total: OutPort) -> Iterator[OutPort]:
    """Yield the terms of a sum in order, through additions that have one consumer."""
    stack = [total]
    while stack:
        port = stack.pop()
        node = port.node
        inner = port is total or has_one_consumer(port)
        shapes = [p.shape for p in (node.source(0), node.source(1))] if isinstance(node.op, Add) else []
        if (
            inner
            and isinstance(node.op, Add)
            and broadcasts(node.op)
            and all(can_broadcast_to(s, port.shape) for s in shapes)
        ):
            stack += [node.source(1), node.source(0)]
        else:
            yield port


def _branch(term: OutPort) -> _Branch | None:
    """Return a term as a branch; None if it is no branch or has other consumers."""
    node = term.node
    if not has_one_consumer(term):
        return None
    if isinstance(node.op, Multiply):
        operands = with_constant(node)
        if operands is None or not has_same_dims(operands[0].shape, term.shape):
            return None
        return _Branch(operands[0], term, operands[1])
    is_linear = isinstance(node.op, Convolution | GroupConvolution | MatMul) and is_constant(node.source(1))
    return _Branch(node.source(0), term, node.source(1)) if is_linear and not _is_quantized(node.source(0)) else None


def _is_quantized(x: OutPort) -> bool:
    """True for whole numbers times a scale: with weights of one branch they may be multiplied as whole numbers."""
    node = x.node
    while isinstance(node.op, Multiply | Add) and (operands := with_constant(node)) is not None:
        node = operands[0].node
    return isinstance(node.op, FakeQuantize) or (
        isinstance(node.op, Convert) and not node.source(0).type.dtype.is_float
    )


def _merged(a: _Branch, b: _Branch, build: Builder) -> OutPort | None:
    """Return the sum of two branches as one; None if they do not fit together."""
    for wide, narrow in ((a, b), (b, a)):
        if isinstance(wide.op, MatMul):
            weights = narrow.weights if wide.op == narrow.op and a.weights.shape == b.weights.shape else None
        elif isinstance(wide.op, Convolution | GroupConvolution):
            weights = _inside(wide, wide.op, narrow)
        else:
            continue
        if weights is not None:
            total = wide.weights + weights  # infinite or NaN where one of both is
            port = build.const(total, wide.x.type.dtype, is_new=True) if np.isfinite(total).all() else None
            return None if port is None else build(wide.out.node.op, wide.x, port)
    return None


def _inside(wide: _Branch, op: Convolution | GroupConvolution, narrow: _Branch) -> Array | None:
    """Return weights of the narrow branch in the windows of the wide one, zeros around them; None if they reach out."""
    if isinstance(narrow.op, Convolution | GroupConvolution):
        other, weights = narrow.op, narrow.weights
    else:
        other, weights = replace(op, pads_begin=(), pads_end=(), strides=(), dilations=()), _diagonal(wide, narrow)
    if weights is None or type(other) is not type(op) or weights.ndim != wide.weights.ndim:
        return None
    rank = wide.x.type.rank - 2
    channels = wide.weights.ndim - rank
    if weights.shape[:channels] != wide.weights.shape[:channels]:
        return None
    outer, inner = _geometry(op, rank), _geometry(other, rank)
    if outer is None or inner is None:
        return None
    around = [(0, 0)] * channels
    for axis, size in enumerate(weights.shape[channels:]):
        (stride, step, begin, end), (stride_in, step_in, begin_in, end_in) = outer[axis], inner[axis]
        before, after = begin - begin_in, end - end_in
        if stride != stride_in or (size > 1 and step != step_in) or before % step or after % step:
            return None
        zeros = before // step, after // step
        if min(zeros) < 0 or size + sum(zeros) != wide.weights.shape[channels + axis]:
            return None
        around.append(zeros)
    return np.pad(weights, around)


def _geometry(op: Convolution | GroupConvolution, rank: int) -> list[tuple[int, int, int, int]] | None:
    """Return stride, dilation and padding at both ends of each axis; None if padding depends on sizes."""
    if op.auto_pad not in (AutoPad.EXPLICIT, AutoPad.NOTSET, AutoPad.VALID):
        return None
    pads = ((), ()) if op.auto_pad is AutoPad.VALID else (op.pads_begin, op.pads_end)
    fields = ((op.strides, 1), (op.dilations, 1), (pads[0], 0), (pads[1], 0))
    return list(zip(*(entries(op.type, "numbers", values, rank, default) for values, default in fields), strict=True))


def _diagonal(wide: _Branch, scale: _Branch) -> Array | None:
    """Return a scale of channels as weights of one element for a convolution; None if it is another scale."""
    x = wide.x.type
    vector = channel_vector(scale.weights, x.rank, 1, x.shape[1])
    ones = (1,) * (x.rank - 2)
    groups = wide.weights.shape[0] if isinstance(wide.op, GroupConvolution) else 1
    inputs = wide.weights.shape[wide.weights.ndim - x.rank + 1]
    if vector is None or not has_same_dims(x.shape, wide.out.shape) or len(vector) != groups * inputs:
        return None
    blocks = vector.reshape(groups, inputs, 1) * np.eye(inputs, dtype=vector.dtype)
    return blocks.reshape(*((groups,) if isinstance(wide.op, GroupConvolution) else ()), inputs, inputs, *ones)


RULES = (merge_branches,)
