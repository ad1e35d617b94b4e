"""GroupQueryAttention of domain com.microsoft, as exporters of language models generate it.

    past [.., room, ..], new rows  ->  present: the new rows of sequence b are at past[b] .. past[b] + length

Sequences of a batch have different lengths; row i of sequence b sees the keys up to past[b] + i.
"""

from __future__ import annotations

import math

from aot.frontends.onnx.arrays.generators import indices, single
from aot.frontends.onnx.microsoft.operations import MS
from aot.frontends.onnx.neural.attention import factor, heads_last, repeated, rotated
from aot.frontends.onnx.neural.normalization import rms_normalized
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.base.decomposition import softmax_with_sink
from aot.runtime.abi import DType


@onnx("GroupQueryAttention", domain=MS)
def group_query_attention(
    node: OnnxNode,
    q: OutPort,
    k: OutPort | None,
    v: OutPort | None,
    past_key: OutPort | None,
    past_value: OutPort | None,
    last: OutPort,
    total: OutPort,
    cos: OutPort | None = None,
    sin: OutPort | None = None,
    positions: OutPort | None = None,
    bias: OutPort | None = None,
    sink: OutPort | None = None,
    k_scale: OutPort | None = None,
    v_scale: OutPort | None = None,
    q_norm: OutPort | None = None,
    k_norm: OutPort | None = None,
) -> tuple[OutPort, ...]:
    """`last` [batch]: the index of each sequence's last key. `total`: the number of keys of the longest sequence."""
    node.refuse(k_scale is not None or v_scale is not None, "quantised keys and values are not supported")
    node.refuse(node.flag("sliding_window_cache"), "a cache that slides is not supported")
    build = node.build
    query_rows, key_rows, value_rows = _heads(node, q, k, v)
    query_rows, key_rows = _normalised(node, query_rows, q_norm), _normalised(node, key_rows, k_norm)
    length = node.size(query_rows, 1)
    ends = build.Add(node.cast(build.Reshape(last, node.list([-1, 1])), DType.I64), 1)
    past = build.Maximum(build.Subtract(ends, length), 0)  # [batch, 1]; the first prompt may be padded at its end
    rows = build.Add(indices(node, length), past)  # [batch, length]
    if node.flag("do_rotary") and cos is not None and sin is not None:
        places, near = rows if positions is None else positions, node.flag("rotary_interleaved")
        size = 2 * node.extent(cos, 1, "the number of rotated elements")
        query_rows, key_rows = (rotated(node, x, cos, sin, places, near, size) for x in (query_rows, key_rows))
    heads_first = node.list([0, 2, 1, 3])
    queries, new_keys, new_values = (build.Transpose(x, heads_first) for x in (query_rows, key_rows, value_rows))
    count = single(node, total)
    keys, present_key = _cached(node, past_key, new_keys, past, count)
    values, present_value = _cached(node, past_value, new_values, past, count)
    hidden = _hidden(node, rows, ends, node.size(keys, 2))
    weights = _weights(node, queries, repeated(node, keys, queries), hidden, bias, sink)
    return heads_last(node, build.MatMul(weights, repeated(node, values, queries))), present_key, present_value


def _heads(node: OnnxNode, q: OutPort, k: OutPort | None, v: OutPort | None) -> list[OutPort]:
    """Return [batch, length, heads, size] of queries, keys and values, which may come packed in one tensor."""
    build, heads, groups = node.build, node.integer("num_heads"), node.integer("kv_num_heads")
    node.refuse(min(heads, groups) < 1, f"heads must be 1 or more, got {heads} and {groups}")
    parts = [q, k, v]
    if k is None or v is None:
        size = node.extent(q, 2, "the size of packed heads") // (heads + 2 * groups)
        sizes = node.list([heads * size, groups * size, groups * size])
        parts = list(build.VariadicSplit(q, node.scalar(2), sizes, outputs=3).node.out_ports().values())
    counts = (heads, groups, groups)
    return [
        build.Reshape(p, node.list([0, 0, n, -1]), special_zero=True)
        for p, n in zip(parts, counts, strict=True)
        if p is not None
    ]


def _normalised(node: OnnxNode, x: OutPort, weight: OutPort | None) -> OutPort:
    return x if weight is None else rms_normalized(node, x, weight, 3, node.number("qk_norm_epsilon", 1e-6))


def _cached(
    node: OnnxNode, past_cache: OutPort | None, new: OutPort, past: OutPort, count: OutPort
) -> tuple[OutPort, OutPort]:
    """Return the first `count` rows of each head with the new ones written, and the whole cache."""
    if past_cache is None:
        return new, new
    build, room, zero, one = node.build, node.size(past_cache, 2), node.scalar(0), node.list([1])
    both = build.Concat(past_cache, new, axis=2)
    rows = indices(node, build.Maximum(room, count))
    offset_in_new = build.Subtract(rows, past)  # [batch, rows]
    is_new = build.LogicalAnd(build.GreaterEqual(offset_in_new, zero), build.Less(offset_in_new, node.size(new, 2)))
    old = build.Minimum(rows, build.Subtract(node.size(both, 2), 1))
    present = build.Gather(
        both, build.Select(is_new, build.Add(offset_in_new, room), old), node.scalar(2), batch_dims=1
    )
    return build.Slice(present, node.list([0]), build.Unsqueeze(count, node.list([0])), one, node.list([2])), present


def _hidden(node: OnnxNode, rows: OutPort, ends: OutPort, count: OutPort) -> OutPort:
    """Return a mask [batch, 1, queries, keys], true for the keys that a query does not see."""
    build, columns, window = node.build, indices(node, count), node.integer("local_window_size", -1)
    if not node.flag("causal", True):
        return build.Unsqueeze(build.GreaterEqual(columns, ends), node.list([1, 2]))
    own = build.Unsqueeze(rows, node.list([1, 3]))
    hidden = build.Greater(columns, own)
    if window > 0:
        hidden = build.LogicalOr(hidden, build.LessEqual(columns, build.Subtract(own, window)))
    return hidden


def _weights(
    node: OnnxNode, q: OutPort, k: OutPort, hidden: OutPort, bias: OutPort | None, sink: OutPort | None
) -> OutPort:
    """Return the softmax of the scores; a sink is one more score, of a key without a value."""
    build, cap = node.build, node.number("softcap", 0.0)
    scores = build.Multiply(build.MatMul(q, k, transpose_b=True), factor(node, q))
    if cap > 0:
        scores = build.Multiply(build.Tanh(build.Divide(scores, cap)), cap)
    if bias is not None:
        scores = build.Add(scores, bias)
    scores = build.Select(hidden, node.like(-math.inf, scores), scores)
    if sink is None and not node.flag("smooth_softmax"):
        return build.Softmax(scores, axis=-1)
    more = node.like(0, scores) if sink is None else build.Unsqueeze(sink, node.list([1, 2]))
    return softmax_with_sink(build, scores, more)
