"""Layers that decoders and encoders of language models have in common: products, norms, rotations, attention."""

from __future__ import annotations

from math import log

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.frontends.language.config import GELU, RELU, TANH_GELU, Config
from aot.frontends.language.tensors import Tensors
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.opset.control.infrastructure import Parameter
from aot.opset.elementwise.activation import Approximation
from aot.runtime.abi import DType

LOWEST = float(np.finfo(np.float32).min)
TO_THE_END = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines of rotations [batch, 1, length, elements]."""

    cos: OutPort
    sin: OutPort


class Parts:
    """Adds inputs, and small parts of networks, to `graph`."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.b = graph, Builder(graph)

    def _parameter(self, name: str, dtype: DType, *shape: int | Var) -> OutPort:
        port = self.graph.add(Parameter(element_type=dtype, shape=shape), name=name).out_port(0)
        port.names = (name,)
        return port

    def _slice(self, x: OutPort, start: int, stop: int, axis: int = 3) -> OutPort:
        return self.b.Slice(x, *(self._integers(n) for n in (start, stop, 1, axis)))

    def _size(self, shape: OutPort, at: int) -> OutPort:
        return self.b.Gather(shape, self._integers(at), self._integer(0))

    def _integers(self, *values: int) -> OutPort:
        return self.b.const(np.array(values, np.int64), DType.I64)

    def _integer(self, value: int) -> OutPort:
        return self.b.const(np.int64(value), DType.I64)

    def _rows(self, table: OutPort, positions: OutPort) -> OutPort:
        return self.b.Gather(table, self.b.Convert(positions, destination_type=DType.I32), self._integer(0))


class Layers(Parts):
    """Builds layers of `config` in `graph` with the tensors of `weights`."""

    def __init__(self, graph: Graph, config: Config, weights: Tensors) -> None:
        super().__init__(graph)
        self.config, self.weights = config, weights

    def _mlp(self, at: str, x: OutPort, inner: int = 0, end: str = "") -> OutPort:
        """`inner`: elements between the products, where not those of the network; `end`: of the matrices' names."""
        b, c = self.b, self.config
        inner = inner or c.inner
        up = self._linear(x, f"{at}.ffn_up{end}", inner, c.width)
        gate = self._linear(x, f"{at}.ffn_gate{end}", inner, c.width) if c.family.gated else up
        gate = self._activated(gate, c.activation)
        return self._linear(b.Multiply(gate, up) if c.family.gated else gate, f"{at}.ffn_down{end}", c.width, inner)

    def _activated(self, x: OutPort, kind: str) -> OutPort:
        if kind in (TANH_GELU, GELU):
            return self.b.Gelu(x, approximation_mode=Approximation.TANH if kind == TANH_GELU else Approximation.ERF)
        return self.b.Relu(x) if kind == RELU else self.b.Swish(x)

    def _capped(self, x: OutPort, cap: float) -> OutPort:
        """Keep numbers below a cap: cap tanh(x / cap)."""
        return x if cap == 0 else self.b.Multiply(self.b.Tanh(self.b.Multiply(x, 1 / cap)), cap)

    def _mixed(
        self, q: OutPort, k: OutPort, v: OutPort, mask: OutPort | None, sinks: tuple[OutPort, ...] = ()
    ) -> OutPort:
        """Return the values, weighted by the softmax of scores; each head may have one more score."""
        b, c = self.b, self.config
        scale = c.scale or c.key**-0.5
        if c.score_cap == 0:
            return b.ScaledDotProductAttention(q, k, v, mask, b.const(scale, DType.F32), *sinks)
        scores = self._capped(b.MatMul(b.Multiply(q, scale), k, transpose_b=True), c.score_cap)
        return b.MatMul(b.Softmax(scores if mask is None else b.Add(scores, mask), axis=-1), v)

    def _projections(self, x: OutPort, at: str) -> tuple[OutPort, OutPort, OutPort]:
        """Queries, keys and values of all heads: of a product each, or of one for all."""
        c = self.config
        sizes = c.heads * c.key, c.key_heads * c.key, c.key_heads * c.value
        if self.weights.has(f"{at}.attn_qkv.weight"):
            whole = self._linear(x, f"{at}.attn_qkv", sum(sizes), c.width)
            q, k, v = (self._slice(whole, sum(sizes[:n]), sum(sizes[: n + 1]), axis=2) for n in range(3))
            return q, k, v
        turned = c.rotated if c.family.pairs else 0
        q = self._linear(x, f"{at}.attn_q", sizes[0], c.width, turned, c.heads)
        k = self._linear(x, f"{at}.attn_k", sizes[1], c.width, turned, c.key_heads)
        return q, k, self._linear(x, f"{at}.attn_v", sizes[2], c.width)

    def _linear(self, x: OutPort, name: str, rows: int, columns: int, turned: int = 0, heads: int = 1) -> OutPort:
        y = self.b.MatMul(x, self.weights.matrix(f"{name}.weight", rows, columns, turned, heads), transpose_b=True)
        return self._biased(y, name, rows, turned, heads)

    def _biased(self, y: OutPort, name: str, rows: int, turned: int = 0, heads: int = 1) -> OutPort:
        if not self.weights.has(f"{name}.bias"):
            return y
        return self.b.Add(y, self.weights.bias(f"{name}.bias", rows, turned, heads))

    def _norm(self, x: OutPort, name: str, optional: bool = False, size: int = 0) -> OutPort:
        """RMSNorm or LayerNorm along the last axis, of `size` elements (by default the width)."""
        if optional and not self.weights.has(f"{name}.weight"):
            return x
        b, size = self.b, size or self.config.width
        if self.config.family.centred:
            x = b.Subtract(x, b.ReduceMean(x, self._integers(-1), keep_dims=True))
        mean = b.ReduceMean(b.Multiply(x, x), self._integers(-1), keep_dims=True)
        scaled = b.Multiply(x, b.Divide(b.const(1.0, DType.F32), b.Sqrt(b.Add(mean, self.config.epsilon))))
        return self._biased(b.Multiply(scaled, self.weights.vector(f"{name}.weight", size)), name, size)

    def _heads(self, x: OutPort, heads: int, size: int) -> OutPort:
        """[batch, length, heads size] as [batch, heads, length, size]."""
        rows = self.b.Reshape(x, self._integers(0, 0, heads, size), special_zero=True)
        return self.b.Transpose(rows, self._integers(0, 2, 1, 3))

    def _rotated(self, x: OutPort, rotation: Rotation | None) -> OutPort:
        """Turn the first elements of each head."""
        if rotation is None:
            return x
        b, c = self.b, self.config
        half = c.rotated // 2
        first, second = self._slice(x, 0, half), self._slice(x, half, c.rotated)
        swapped = b.Concat(b.Negative(second), first, axis=-1)
        is_whole = x.type.shape[-1] == c.rotated
        whole = x if is_whole else self._slice(x, 0, c.rotated)
        y = b.Add(b.Multiply(whole, rotation.cos), b.Multiply(swapped, rotation.sin))
        return y if is_whole else b.Concat(y, self._slice(x, c.rotated, TO_THE_END), axis=-1)

    def _rotation(self, positions: OutPort, base: float, stretch: float) -> Rotation:
        """`positions`: [batch, length]."""
        b, c, rotated = self.b, self.config, self.config.rotated
        rates = base ** -(np.arange(0, rotated, 2, dtype=np.float64) / rotated) / stretch
        if c.divisors:
            rates = rates / np.array(c.divisors)
        indices = b.Convert(b.Unsqueeze(positions, self._integers(1, 3)), destination_type=DType.F32)
        angles = b.Multiply(indices, b.const(rates.reshape(1, 1, 1, -1), DType.F32))
        both = b.Concat(angles, angles, axis=-1)
        return Rotation(*(x if c.amplitude == 1 else b.Multiply(x, c.amplitude) for x in (b.Cos(both), b.Sin(both))))


def buckets(distances: Array, count: int, farthest: int, *, both: bool = True) -> Array:
    """Return the row of the table of relative positions for each distance; from `farthest` tokens on they are one.

    `both`: half of the rows are for tokens ahead; else there are none.
    """
    half = count // 2 if both else count
    near, size = half // 2, np.abs(distances)
    ratio = np.log(np.maximum(size, 1).astype(np.float32) / near) / log(farthest / near)
    far = near + (ratio * (half - near)).astype(np.int64)
    bucket = np.where(size < near, size, np.minimum(far, half - 1))
    return (distances > 0) * half + bucket if both else bucket
