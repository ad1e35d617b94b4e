"""Attention of domain com.microsoft, as ONNX Runtime's transformer optimiser writes it."""

from __future__ import annotations

import math

from aot.frontends.onnx.attention import heads_first, heads_last
from aot.frontends.onnx.attention import rotary_embedding as rotated
from aot.frontends.onnx.microsoft import MS
from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from runtime.abi import DType


@onnx("Attention", domain=MS)
def attention(
    node: Call, x: OutPort, w: OutPort, bias: OutPort | None = None, mask: OutPort | None = None,
    past: OutPort | None = None, score_bias: OutPort | None = None,
) -> OutPort:  # fmt: skip
    """Queries, keys and values from one product; `mask` is [batch, keys], or the number of keys of each sequence."""
    node.refuse(past is not None, "past states are not supported")
    total = node.build.MatMul(x, w)
    q, k, v = parted(node, total if bias is None else node.build.Add(total, bias))
    return heads_last(node, attended(node, q, k, v, mask, score_bias))


def parted(node: Call, total: OutPort) -> list[OutPort]:
    """[batch, length, q + k + v] as heads."""
    build, heads = node.build, node.integer("num_heads")
    sizes = node.integers("qkv_hidden_sizes", ()) or (int(str(total.shape[2])) // 3,) * 3
    parts = build.VariadicSplit(total, node.scalar(2), node.list(sizes), outputs=3)
    return [heads_first(node, p, heads) for p in parts.node.out_ports().values()]


def attended(
    node: Call, q: OutPort, k: OutPort, v: OutPort, mask: OutPort | None, score_bias: OutPort | None
) -> OutPort:
    """[batch, heads, length, size]"""
    build = node.build
    scale = node.number("scale", 0.0) or 1 / math.sqrt(int(str(q.shape[3])))
    scores = build.Multiply(build.MatMul(q, k, transpose_b=True), scale)
    scores = scores if score_bias is None else build.Add(scores, score_bias)
    low = node.number("mask_filter_value", -10000.0)
    if mask is not None:
        scores = build.Add(scores, _key_mask(node, mask, k, low, scores.type.dtype))
    if node.flag("unidirectional"):
        scores = build.Select(_causal(node, q, k), scores, node.like(low, scores))
    return build.MatMul(build.Softmax(scores, axis=-1), v)


def _causal(node: Call, q: OutPort, k: OutPort) -> OutPort:
    """[queries, keys]: the last query sees all keys, those before it fewer."""
    build, zero, one = node.build, node.scalar(0), node.scalar(1)
    ends = [build.Squeeze(node.dims(p, [2]), node.list([0])) for p in (q, k)]
    rows, columns = (build.Range(zero, n, one, output_type=DType.I64) for n in ends)
    own = build.Add(rows, build.Subtract(ends[1], ends[0]))
    return build.GreaterEqual(build.Unsqueeze(own, node.list([1])), columns)


def _key_mask(node: Call, mask: OutPort, k: OutPort, low: float, dtype: DType) -> OutPort:
    """What is added to scores [batch, heads, queries, keys]: `low` for keys that do not count."""
    build = node.build
    if mask.type.rank == 1:
        node.refuse(mask.shape != k.shape[:1], "masks of starts and ends are not supported")
        size = build.Squeeze(node.dims(k, [2]), node.list([0]))
        keys = build.Range(node.scalar(0), size, node.scalar(1), output_type=DType.I64)
        ends = build.Unsqueeze(node.cast(mask, DType.I64), node.list([1, 2, 3]))
        valid = node.cast(build.Less(keys, ends), dtype)
    else:
        node.refuse(mask.type.rank > 3, "masks of rank 4 are not supported")
        axes = [1, 2] if mask.type.rank == 2 else [1]
        valid = build.Unsqueeze(node.cast(mask, dtype), node.list(axes))
    return build.Multiply(build.Subtract(node.like(1, valid), valid), low)


@onnx("MultiHeadAttention", domain=MS)
def multi_head_attention(
    node: Call, q: OutPort, k: OutPort | None = None, v: OutPort | None = None, bias: OutPort | None = None,
    mask: OutPort | None = None, score_bias: OutPort | None = None, past_key: OutPort | None = None,
    past_value: OutPort | None = None,
) -> tuple[OutPort, ...]:  # fmt: skip
    """Queries [batch, length, hidden]; keys and values alike, or with heads in front, or packed with the queries."""
    build, heads = node.build, node.integer("num_heads")
    parts = [q, k, v] if k is not None and v is not None else _unpacked(node, q, k)
    if bias is not None:
        parts = _with_bias(node, parts, bias)
    q, k, v = (heads_first(node, p, heads) for p in parts)
    k = k if past_key is None else build.Concat(past_key, k, axis=2)
    v = v if past_value is None else build.Concat(past_value, v, axis=2)
    return heads_last(node, attended(node, q, k, v, mask, score_bias)), k, v


def _unpacked(node: Call, q: OutPort, k: OutPort | None) -> list[OutPort]:
    """[batch, length, heads, 3, size] as three; or queries and [batch, length, heads, 2, size]."""
    build, packed = node.build, q if k is None else k
    node.refuse(packed.type.rank != 5, f"keys without values must be packed in 5 axes, got {packed.type.rank}")
    count = 3 if k is None else 2
    parts = build.Split(packed, node.scalar(3), num_splits=count, outputs=count).node.out_ports().values()
    flat = [build.Reshape(p, node.list([0, 0, -1]), special_zero=True) for p in parts]
    return flat if k is None else [q, *flat]


def _with_bias(node: Call, parts: list[OutPort], bias: OutPort) -> list[OutPort]:
    """The bias holds those of queries, keys and values; keys that come with heads have none."""
    sizes = [int(str(p.shape[2])) if p.type.rank == 3 else int(str(p.shape[1])) * int(str(p.shape[3])) for p in parts]
    made = node.build.VariadicSplit(bias, node.scalar(0), node.list(sizes), outputs=3).node.out_ports().values()
    return [node.build.Add(p, b) if p.type.rank == 3 else p for p, b in zip(parts, made, strict=True)]


@onnx("RotaryEmbedding", domain=MS)
def rotary_embedding(node: Call, x: OutPort, positions: OutPort, cos: OutPort, sin: OutPort) -> OutPort:
    """`positions` is [batch, length], or where the first one is; the input has heads in front, or none."""
    build = node.build
    node.refuse(node.number("scale", 1.0) != 1, "a scale is not supported")
    flat = x.type.rank == 3
    if flat:
        x = heads_first(node, x, node.integer("num_heads", 0) or int(str(x.shape[2])) // (2 * int(str(cos.shape[1]))))
    if positions.type.rank == 1:
        size = build.Squeeze(node.dims(x, [2]), node.list([0]))
        places = build.Range(node.scalar(0), size, node.scalar(1), output_type=DType.I64)
        whole = build.Concat(node.dims(x, [0]), build.ShapeOf(places), axis=0)
        positions = build.Broadcast(build.Add(places, positions), whole)
    found = rotated(node, x, cos, sin, positions)
    return heads_last(node, found) if flat else found
