"""Attention: softmax(query key^T scale + mask) value."""

from __future__ import annotations

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType, dim_text
from aot.opset.base.decomposition import narrowed, reshaped, softmax_with_sink, wide, widened
from aot.opset.base.families import broadcast
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@op("opset13")
class ScaledDotProductAttention(DecomposedOp):
    """softmax(q k^T scale + mask) v: q [.., L, E], k [.., S, E], v [.., S, V] give [.., L, V].

    Batch dimensions broadcast. `mask` is added; a boolean one excludes keys where it is false; the scalar 0 means no
    mask. `causal` excludes keys later than the query, and `mask` is then ignored. `scale` is 1 / sqrt(E) if absent.
    `sink` is one more score in the softmax, without a value.
    """

    elements = Elements.FLOAT

    causal: bool = False

    def infer(
        self,
        q: Operand,
        k: Operand,
        v: Operand,
        mask: Operand | None = None,
        scale: Operand | None = None,
        sink: Operand | None = None,
    ) -> TensorType:
        for name, x in (("query", q), ("key", k), ("value", v)):
            if x.rank < 2:
                raise ShapeError(f"{self.type}: {name} must have at least 2 axes, got {x.rank}")
        for what, a, b in (("query and key", q.shape[-1], k.shape[-1]), ("key and value", k.shape[-2], v.shape[-2])):
            if isinstance(a, int) and isinstance(b, int) and a != b:
                raise ShapeError(
                    f"{self.type}: dimensions of {what} must be equal, got {dim_text(a)} and {dim_text(b)}"
                )
        batch = [x.shape[:-2] for x in (q, k, v)]
        return TensorType(q.dtype, (*broadcast(*batch, what=self.type), q.shape[-2], v.shape[-1]))

    def decompose(
        self,
        build: Builder,
        q: OutPort,
        k: OutPort,
        v: OutPort,
        mask: OutPort | None = None,
        scale: OutPort | None = None,
        sink: OutPort | None = None,
    ) -> OutPort:
        query, key, value = (widened(build, p) for p in (q, k, v))
        scores = build.MatMul(query, key, transpose_b=True)
        scores = build.Multiply(scores, self._scale(build, query, scale))
        if self.causal:
            scores = build.Select(self._visible(build, query, key), scores, build.const(-np.inf, scores.type.dtype))
        elif mask is not None and mask.type.dtype is DType.BOOL:
            scores = build.Select(mask, scores, build.const(-np.inf, scores.type.dtype))
        elif mask is not None and mask.type.rank:
            scores = build.Add(scores, widened(build, mask))
        if sink is None:
            weights = build.Softmax(scores, axis=-1)
        else:
            weights = softmax_with_sink(build, scores, widened(build, sink))
        return narrowed(build, build.MatMul(weights, value), q.type.dtype)

    @staticmethod
    def _scale(build: Builder, q: OutPort, scale: OutPort | None) -> OutPort:
        if scale is not None:
            factor = widened(build, scale)
            return factor if factor.type.rank == 0 else reshaped(build, factor, ())
        depth = q.shape[-1]
        if isinstance(depth, int):
            return build.const(1 / np.sqrt(depth), q.type.dtype)
        size = build.Convert(_dimension(build, q, q.type.rank - 1), destination_type=q.type.dtype)
        return build.Divide(build.const(1.0, q.type.dtype), build.Sqrt(size))

    @staticmethod
    def _visible(build: Builder, q: OutPort, k: OutPort) -> OutPort:
        """Return [L, S], true where the key is not later than the query."""
        rows, columns = (_count(build, x) for x in (q, k))
        return build.GreaterEqual(reshaped(build, rows, (-1, 1)), columns)

    def reference(
        self,
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None = None,
        scale: Array | None = None,
        sink: Array | None = None,
    ) -> Array:
        factor = 1 / np.sqrt(q.shape[-1]) if scale is None else wide(scale).reshape(())
        scores = wide(q) @ wide(k).swapaxes(-1, -2) * factor
        if self.causal:
            scores = np.where(np.tril(np.ones(scores.shape[-2:], np.bool_)), scores, -np.inf)
        elif mask is not None and mask.dtype == np.bool_:
            scores = np.where(mask, scores, -np.inf)
        elif mask is not None:
            scores = scores + wide(mask)
        top = scores.max(-1, keepdims=True, initial=-np.inf)
        top = top if sink is None else np.maximum(top, wide(sink))
        powers = np.exp(scores - top)
        total = powers.sum(-1, keepdims=True) + (0 if sink is None else np.exp(wide(sink) - top))
        return (powers / total @ wide(v)).astype(q.dtype)


def _dimension(build: Builder, x: OutPort, axis: int) -> OutPort:
    return build.Gather(build.ShapeOf(x), build.const(axis, DType.I64), build.const(0, DType.I64))


def _count(build: Builder, x: OutPort) -> OutPort:
    """Return 0, 1, ..., one number for each row of `x`."""
    size = _dimension(build, x, x.type.rank - 2)
    zero, one = build.const(0, DType.I64), build.const(1, DType.I64)
    return build.Range(zero, size, one, output_type=DType.I64)
