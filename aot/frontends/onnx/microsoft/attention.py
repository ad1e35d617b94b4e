"""Attention of domain com.microsoft, as ONNX Runtime's transformer optimiser generates it."""

from __future__ import annotations

from aot.frontends.onnx.arrays.generators import indices
from aot.frontends.onnx.microsoft.operations import MS
from aot.frontends.onnx.neural.attention import factor, heads_first, heads_last, rotated
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@onnx("Attention", domain=MS)
def attention(
    node: OnnxNode,
    x: OutPort,
    w: OutPort,
    bias: OutPort | None = None,
    mask: OutPort | None = None,
    past: OutPort | None = None,
    score_bias: OutPort | None = None,
) -> tuple[OutPort, ...]:
    """Attention with queries, keys and values from one product."""
    total = node.build.MatMul(x, w)
    return attended_with_past(node, total if bias is None else node.build.Add(total, bias), mask, past, score_bias)


def attended_with_past(
    node: OnnxNode, total: OutPort, mask: OutPort | None, past: OutPort | None, score_bias: OutPort | None
) -> tuple[OutPort, ...]:
    """Attend to [batch, length, q + k + v]; `past`, result 1: [2 (keys, values), batch, heads, rows, size]."""
    node.refuse(node.flag("past_present_share_buffer"), "one buffer for past and present is not supported")
    node.refuse(node.flag("do_rotary"), "do_rotary is not supported")
    build, first = node.build, node.list([0])
    if sizes := node.integers("qkv_hidden_sizes", ()):
        parts = build.VariadicSplit(total, node.scalar(2), node.list(sizes), outputs=3)
    else:
        parts = build.Split(total, node.scalar(2), num_splits=3, outputs=3)
    q, k, v = (heads_first(node, p, node.integer("num_heads")) for p in parts.node.out_ports().values())
    if past is not None:
        k, v = (
            build.Concat(build.Gather(past, node.scalar(i), node.scalar(0)), new, axis=2)
            for i, new in enumerate((k, v))
        )
    y = heads_last(node, attended(node, q, k, v, mask, score_bias))
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (y,)
    return y, build.Concat(build.Unsqueeze(k, first), build.Unsqueeze(v, first), axis=0)


def attended(
    node: OnnxNode, q: OutPort, k: OutPort, v: OutPort, mask: OutPort | None, score_bias: OutPort | None
) -> OutPort:
    """Return attention [batch, heads, length, size]."""
    build = node.build
    scores = build.Multiply(build.MatMul(q, k, transpose_b=True), factor(node, q))
    scores = scores if score_bias is None else build.Add(scores, score_bias)
    low = node.number("mask_filter_value", -10000.0)
    if mask is not None:
        valid = node.cast(_valid(node, mask, q, k), scores.type.dtype)
        scores = build.Add(scores, build.Multiply(build.Subtract(node.like(1, valid), valid), low))
    if node.flag("unidirectional"):
        scores = build.Select(_causal(node, q, k), scores, node.like(low, scores))
    return build.MatMul(build.Softmax(scores, axis=-1), v)


def _causal(node: OnnxNode, q: OutPort, k: OutPort) -> OutPort:
    """Return a mask [queries, keys]: the last query sees all keys, each one before it one key fewer."""
    build, ends = node.build, [node.size(p, 2) for p in (q, k)]
    rows, columns = (indices(node, n) for n in ends)
    own = build.Add(rows, build.Subtract(ends[1], ends[0]))
    return build.GreaterEqual(build.Unsqueeze(own, node.list([1])), columns)


def _valid(node: OnnxNode, mask: OutPort, q: OutPort, k: OutPort) -> OutPort:
    """Return a mask of the valid keys that broadcasts to scores [batch, heads, queries, keys]."""
    build, rank = node.build, mask.type.rank
    match rank:
        case 1:
            return _between(node, mask, k)
        case 2 | 3:
            return build.Unsqueeze(mask, node.list([1, 2] if rank == 2 else [1]))
        case _:
            node.refuse(rank != 4, f"masks of 1 to 4 axes are supported, got {rank}")
            count, keys = (node.dims(p, [2]) for p in (q, k))
            ends = build.Concat(keys, keys, axis=0)
            starts = build.Concat(build.Subtract(keys, count), node.list([0]), axis=0)
            return build.Slice(mask, starts, ends, node.list([1, 1]), node.list([2, 3]))


def _between(node: OnnxNode, mask: OutPort, k: OutPort) -> OutPort:
    """Return a mask from the ends, or ends and starts, of the keys of each sequence."""
    build, batch, have = node.build, k.shape[0], mask.shape[0]
    keys, mask = indices(node, node.size(k, 2)), build.Unsqueeze(node.cast(mask, DType.I64), node.list([1, 2, 3]))
    if have != 2 * batch:
        node.refuse(isinstance(have, int) and have not in (1, batch), f"a mask of {have} numbers is not supported")
        return build.Less(keys, mask)
    ends, starts = build.Split(mask, node.scalar(0), num_splits=2, outputs=2).node.out_ports().values()
    return build.LogicalAnd(build.Less(keys, ends), build.GreaterEqual(keys, starts))


@onnx("MultiHeadAttention", domain=MS)
def multi_head_attention(
    node: OnnxNode,
    q: OutPort,
    k: OutPort | None = None,
    v: OutPort | None = None,
    bias: OutPort | None = None,
    mask: OutPort | None = None,
    score_bias: OutPort | None = None,
    past_key: OutPort | None = None,
    past_value: OutPort | None = None,
) -> tuple[OutPort, ...]:
    """Attention of queries [batch, length, hidden]; keys and values alike, with heads first, or packed with queries."""
    build, heads = node.build, node.integer("num_heads")
    parts = [q, k, v] if k is not None and v is not None else _unpacked(node, q, k)
    if bias is not None:
        parts = _with_bias(node, parts, bias)
    q, k, v = (heads_first(node, p, heads) for p in parts)
    k = k if past_key is None else build.Concat(past_key, k, axis=2)
    v = v if past_value is None else build.Concat(past_value, v, axis=2)
    return heads_last(node, attended(node, q, k, v, mask, score_bias)), k, v


def _unpacked(node: OnnxNode, q: OutPort, k: OutPort | None) -> list[OutPort]:
    """Split [batch, length, heads, 3, size] into three, or [batch, length, heads, 2, size] into keys and values."""
    build, packed = node.build, q if k is None else k
    node.refuse(packed.type.rank != 5, f"keys without values must be packed in 5 axes, got {packed.type.rank}")
    count = 3 if k is None else 2
    parts = build.Split(packed, node.scalar(3), num_splits=count, outputs=count).node.out_ports().values()
    flat = [build.Reshape(p, node.list([0, 0, -1]), special_zero=True) for p in parts]
    return flat if k is None else [q, *flat]


def _with_bias(node: OnnxNode, parts: list[OutPort], bias: OutPort) -> list[OutPort]:
    """Add the bias of queries, keys and values, one after another; keys that come with heads have none."""
    build, axes = node.build, node.list([0])
    sizes = [build.ReduceProd(node.dims(p, [2] if p.type.rank == 3 else [1, 3]), axes, keep_dims=True) for p in parts]
    lengths = build.Concat(*sizes, axis=0)
    biases = build.VariadicSplit(bias, node.scalar(0), lengths, outputs=3).node.out_ports().values()
    return [build.Add(p, b) if p.type.rank == 3 else p for p, b in zip(parts, biases, strict=True)]


@onnx("RotaryEmbedding", domain=MS)
def rotary_embedding(node: OnnxNode, x: OutPort, positions: OutPort, cos: OutPort, sin: OutPort) -> OutPort:
    """Rotate; `positions` is [batch, length], or the first position; the input has heads first, or is [.., hidden]."""
    build = node.build
    node.refuse(node.number("scale", 1.0) != 1, "a scale is not supported")
    flat, some = x.type.rank == 3, node.integer("rotary_embedding_dim", 0)
    if flat:
        heads, width = node.integer("num_heads", 0), build.Multiply(node.dims(cos, [1]), 2)
        tail = [node.list([heads]), node.list([-1])] if heads else [node.list([-1]), width]
        x = build.Reshape(x, build.Concat(node.list([0, 0]), *tail, axis=0), special_zero=True)
    else:
        x = build.Transpose(x, node.list([0, 2, 1, 3]))
    if positions.type.rank == 1:
        places = indices(node, node.size(x, 1))
        position_shape = build.Concat(node.dims(x, [0]), build.ShapeOf(places), axis=0)
        positions = build.Broadcast(build.Add(places, positions), position_shape)
    rotated_x = rotated(node, x, cos, sin, positions, node.flag("interleaved"), some)
    if flat:
        return build.Reshape(rotated_x, node.list([0, 0, -1]), special_zero=True)
    return build.Transpose(rotated_x, node.list([0, 2, 1, 3]))
