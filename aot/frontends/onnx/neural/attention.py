"""Attention and rotary positions."""

from __future__ import annotations

import math

import numpy as np

from aot.frontends.onnx.arrays.generators import indices
from aot.frontends.onnx.control.tensor_sequence import ENDLESS
from aot.frontends.onnx.neural.softmax import weights
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

# Values of `qk_matmul_output_mode`: the stage of the scores that output 3 returns.
QK_PLAIN, QK_CAPPED, QK_BIASED, QK_SOFTMAX = range(4)


def heads_first(node: OnnxNode, x: OutPort, heads: int) -> OutPort:
    """Reshape [batch, length, heads * size] to [batch, heads, length, size]."""
    if x.type.rank == 4:
        return x
    split = node.build.Reshape(x, node.list([0, 0, heads, -1]), special_zero=True)
    return node.build.Transpose(split, node.list([0, 2, 1, 3]))


def heads_last(node: OnnxNode, x: OutPort) -> OutPort:
    """Reshape [batch, heads, length, size] to [batch, length, heads * size]."""
    transposed = node.build.Transpose(x, node.list([0, 2, 1, 3]))
    return node.build.Reshape(transposed, node.list([0, 0, -1]), special_zero=True)


def repeated(node: OnnxNode, x: OutPort, q: OutPort) -> OutPort:
    """Repeat each head of keys or values for the heads of queries that share it: h0 h0 h1 h1 .."""
    own, heads, build = x.shape[1], q.shape[1], node.build
    if own == heads:
        return x
    if isinstance(own, int) and isinstance(heads, int):
        node.refuse(own == 0 or heads % own != 0, f"heads must be a multiple of those of keys, got {heads} and {own}")
        return build.Gather(x, node.list(np.repeat(np.arange(own), heads // own).tolist()), node.scalar(1))
    count, own_count = node.size(q, 1), node.size(x, 1)
    times = build.Maximum(build.Divide(count, build.Maximum(own_count, 1)), 1)
    rule = "heads must be a multiple of those of keys"
    positions = node.within(build.Multiply(times, own_count), count, count, rule, indices(node, count))
    return build.Gather(x, build.Divide(positions, times), node.scalar(1))


@onnx("Attention")
def attention(
    node: OnnxNode,
    q: OutPort,
    k: OutPort,
    v: OutPort,
    mask: OutPort | None = None,
    past_key: OutPort | None = None,
    past_value: OutPort | None = None,
    lengths: OutPort | None = None,
) -> tuple[OutPort | None, ...]:
    """softmax(cap(q k^T scale + bias)) v, with the past keys and values prepended."""
    build, flat = node.build, q.type.rank == 3
    heads, groups = (node.integer(n) if flat else 0 for n in ("q_num_heads", "kv_num_heads"))
    q, k, v = heads_first(node, q, heads), heads_first(node, k, groups), heads_first(node, v, groups)
    k = k if past_key is None else build.Concat(past_key, k, axis=2)
    v = v if past_value is None else build.Concat(past_value, v, axis=2)
    offset = node.scalar(0) if past_key is None else node.size(past_key, 2)
    if lengths is not None and past_key is None:
        ends = build.Subtract(node.cast(lengths, DType.I64), node.dims(q, [2]))
        offset = build.Unsqueeze(ends, node.list([1, 2, 3]))
    bias = _bias(node, q, k, mask, offset, lengths)
    kinds = node.integer("qk_matmul_output_mode", QK_PLAIN)
    keys, values = repeated(node, k, q), repeated(node, v, q)
    result, shown = _attended(node, q, keys, values, bias, kinds)
    return heads_last(node, result) if flat else result, k, v, shown


def factor(node: OnnxNode, q: OutPort, power: float = 1.0) -> OutPort:
    """Return the factor of the scores to a power: 1 / sqrt(size of a head) by default."""
    scale, size, build = node.number("scale", 0.0), q.shape[3], node.build
    if scale or isinstance(size, int):
        return node.like((scale or 1 / math.sqrt(size if isinstance(size, int) else 1)) ** power, q)
    wide = build.Power(node.cast(node.size(q, 3), DType.F64), build.const(-power / 2, DType.F64))
    return node.cast(wide, q.type.dtype)


def _attended(
    node: OnnxNode, q: OutPort, k: OutPort, v: OutPort, bias: OutPort | None, kind: int
) -> tuple[OutPort, OutPort]:
    """Return the result, and the scores at the requested stage; each step is rounded to the type of the inputs."""
    build, dtype = node.build, q.type.dtype
    root = factor(node, q, 0.5)
    q, k = (node.rounded(build.Multiply(p, root)) for p in (q, k))
    cap = node.number("softcap", 0.0)
    scores = capped = node.rounded(build.MatMul(q, k, transpose_b=True))
    if cap > 0:
        capped = node.rounded(build.Divide(scores, cap))
        capped = node.rounded(build.Multiply(node.rounded(build.Tanh(capped)), cap))
    biased = capped if bias is None else node.rounded(build.Add(capped, node.cast(bias, dtype)))
    precision = node.float_type("softmax_precision", dtype)
    probabilities = weights(node, node.cast(biased, precision), 3)
    if bias is not None:  # a row in which all keys are masked gives zeros
        top = build.ReduceMax(biased, node.list([-1]), keep_dims=True)
        probabilities = build.Select(build.Equal(top, -math.inf), node.like(0, probabilities), probabilities)
    shown = {QK_CAPPED: capped, QK_BIASED: biased, QK_SOFTMAX: probabilities}.get(kind, scores)
    return build.MatMul(node.cast(probabilities, dtype), v), node.cast(shown, dtype)


def _positions(node: OnnxNode, q: OutPort, k: OutPort, offset: OutPort) -> tuple[OutPort, OutPort]:
    """Return the positions of queries, as a column, and of keys."""
    build = node.build
    rows, columns = (indices(node, node.size(x, 2)) for x in (q, k))
    return build.Add(build.Unsqueeze(rows, node.list([1])), offset), columns


def _bias(
    node: OnnxNode, q: OutPort, k: OutPort, mask: OutPort | None, offset: OutPort, lengths: OutPort | None
) -> OutPort | None:
    """Return the bias added to the scores: -inf where a query must not see a key; None without a mask."""
    build = node.build
    parts: list[OutPort] = []
    left, right = node.integer("left_window_size", -1), node.integer("right_window_size", -1)
    if node.flag("is_causal"):
        right = 0 if right < 0 else min(right, 0)
    rows, columns = _positions(node, q, k, offset)
    if right >= 0:
        parts.append(_hidden(node, build.Greater(columns, build.Add(rows, node.scalar(right)))))
    if left >= 0:
        parts.append(_hidden(node, build.Less(columns, build.Subtract(rows, node.scalar(left)))))
    if lengths is not None:
        ends = build.Unsqueeze(node.cast(lengths, DType.I64), node.list([1, 2, 3]))
        parts.append(_hidden(node, build.GreaterEqual(columns, ends)))
    if mask is not None:
        parts.append(_mask(node, mask, k))
    total: OutPort | None = None
    for part in parts:
        total = part if total is None else build.Add(total, part)
    return total


def _hidden(node: OnnxNode, hidden: OutPort) -> OutPort:
    build = node.build
    return build.Select(hidden, build.const(-math.inf, DType.F32), build.const(0.0, DType.F32))


def _mask(node: OnnxNode, mask: OutPort, k: OutPort) -> OutPort:
    """Return the mask as a bias; keys beyond the mask's end are masked."""
    build, boolean = node.build, mask.type.dtype is DType.BOOL
    hidden = _hidden(node, build.LogicalNot(mask)) if boolean else node.cast(mask, DType.F32)
    have, need = mask.shape[-1], k.shape[2]
    if isinstance(have, int) and isinstance(need, int) and 1 < have < need:
        ends = [0] * (mask.type.rank - 1) + [need - have]
        hidden = build.Pad(hidden, node.list([0] * mask.type.rank), node.list(ends), build.const(-math.inf, DType.F32))
    return hidden


@onnx("RotaryEmbedding")
def rotary_embedding(
    node: OnnxNode, x: OutPort, cos: OutPort, sin: OutPort, positions: OutPort | None = None
) -> OutPort:
    build, flat = node.build, x.type.rank == 3
    if flat:
        split = build.Reshape(x, node.list([0, 0, node.integer("num_heads"), -1]), special_zero=True)
    else:
        split = build.Transpose(x, node.list([0, 2, 1, 3]))
    rotated_x = rotated(
        node, split, cos, sin, positions, node.flag("interleaved"), node.integer("rotary_embedding_dim", 0)
    )
    if flat:
        return build.Reshape(rotated_x, node.list([0, 0, -1]), special_zero=True)
    return build.Transpose(rotated_x, node.list([0, 2, 1, 3]))


def rotated(
    node: OnnxNode, x: OutPort, cos: OutPort, sin: OutPort, positions: OutPort | None, near: bool, some: int = 0
) -> OutPort:
    """Rotate pairs of [batch, length, heads, size]: (x1, x2) -> (cos x1 - sin x2, sin x1 + cos x2).

    A pair is in both halves of a head, or adjacent if `near`. `some`: number of leading elements that are rotated, 0:
    all. `positions` [batch, length] are rows of `cos` and `sin`.
    """
    build, depth = node.build, x.shape[3]
    size, rule = some or depth, "an even number of up to {} elements can be rotated"
    if isinstance(depth, int) and isinstance(size, int):
        node.refuse(size > depth or size % 2 != 0, f"{rule.format(depth)}, got {size}")
    else:
        node.refuse(some % 2 != 0, f"{rule.format('all')}, got {some}")
        have = node.dims(x, [3])
        x = node.within(have, some, ENDLESS, rule.format("all"), x)
        x = x if some else node.within(build.FloorMod(have, 2), 0, 0, rule.format("all"), x)
    whole = size if isinstance(size, int) else -1
    unrotated = None
    if size != depth:
        first = build.VariadicSplit(x, node.scalar(3), node.list([some, -1]), outputs=2)
        x, unrotated = first, first.node.out_port(1)
    if positions is not None:
        cos, sin = (build.Gather(p, positions, node.scalar(0)) for p in (cos, sin))
    cos, sin = (build.Unsqueeze(p, node.list([2])) for p in (cos, sin))
    if near:
        pairs = build.Reshape(x, node.list([0, 0, 0, whole // 2, 2]), special_zero=True)
        parts = build.Split(pairs, node.scalar(4), num_splits=2, outputs=2)
        a, b = (build.Squeeze(p, node.list([4])) for p in parts.node.out_ports().values())
    else:
        parts = build.Split(x, node.scalar(3), num_splits=2, outputs=2)
        a, b = parts.node.out_ports().values()
    real = build.Subtract(build.Multiply(cos, a), build.Multiply(sin, b))
    imaginary = build.Add(build.Multiply(sin, a), build.Multiply(cos, b))
    if near:
        both = [build.Unsqueeze(p, node.list([4])) for p in (real, imaginary)]
        rotated_part = build.Reshape(build.Concat(*both, axis=4), node.list([0, 0, 0, whole]), special_zero=True)
    else:
        rotated_part = build.Concat(real, imaginary, axis=3)
    return rotated_part if unrotated is None else build.Concat(rotated_part, unrotated, axis=3)
