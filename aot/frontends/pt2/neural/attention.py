"""Attention."""

from __future__ import annotations

from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@aten("scaled_dot_product_attention.default")
def attention(
    node: AtenNode,
    query: OutPort,
    key: OutPort,
    value: OutPort,
    attn_mask: OutPort | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Number | None = None,
    enable_gqa: bool = False,
) -> OutPort:
    """softmax(q k^T scale + mask) v; a query with all keys masked gives 0."""
    node.refuse(dropout_p != 0, "dropout in training is not supported: export model.eval()")
    build = node.build
    if enable_gqa:
        key, value = (_repeated(node, p, query) for p in (key, value))
    inputs = [query, key, value]
    if attn_mask is not None or scale is not None:
        inputs.append(node.like(0, query) if attn_mask is None else _typed_mask(node, attn_mask, query))
    if scale is not None:
        inputs.append(node.same(scale, query))
    y = build.ScaledDotProductAttention(*inputs, causal=is_causal)
    return y if attn_mask is None else build.Select(_all_masked(node, inputs[3]), node.like(0, y), y)


def _typed_mask(node: AtenNode, mask: OutPort, query: OutPort) -> OutPort:
    return mask if mask.type.dtype is DType.BOOL else node.cast(mask, query.type.dtype)


def _all_masked(node: AtenNode, mask: OutPort) -> OutPort:
    """True for queries that see no key."""
    build, last = node.build, node.list([mask.type.rank - 1])
    if mask.type.dtype is DType.BOOL:
        return build.LogicalNot(build.ReduceLogicalOr(mask, last, keep_dims=True))
    top = build.ReduceMax(mask, last, keep_dims=True)
    return build.Equal(top, node.like(-float("inf"), mask))


def _repeated(node: AtenNode, p: OutPort, query: OutPort) -> OutPort:
    """Heads of keys or values [.., H, S, E], each repeated for the queries that share it."""
    build, axis = node.build, p.type.rank - 3
    if p.shape[axis] == query.shape[axis]:
        return p
    times = build.Divide(node.dims(query, [axis]), node.dims(p, [axis]))
    ones = [node.list([1] * (axis + 1)), times, node.list([1, 1])]
    spread = build.Tile(build.Unsqueeze(p, node.list([axis + 1])), build.Concat(*ones, axis=0))
    sizes = [node.dims(p, range(axis)), node.dims(query, [axis]), node.dims(p, [axis + 1, axis + 2])]
    return build.Reshape(spread, build.Concat(*sizes, axis=0))


@aten("_scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(
    node: AtenNode,
    query: OutPort,
    key: OutPort,
    value: OutPort,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: OutPort | None = None,
    scale: Number | None = None,
) -> tuple[OutPort, ...]:
    """The attention, and the logarithm of the sum in the softmax, which inference does not read."""
    node.refuse(any(node.outputs[1:]), "output 1, the log of the sums, is not supported")
    return (attention(node, query, key, value, attn_mask, dropout_p, is_causal, scale),)


@aten("_scaled_dot_product_efficient_attention.default")
def efficient_attention(
    node: AtenNode,
    query: OutPort,
    key: OutPort,
    value: OutPort,
    attn_bias: OutPort | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Number | None = None,
) -> tuple[OutPort, ...]:
    node.refuse(any(node.outputs[1:]), "outputs behind the attention are not supported")
    return (attention(node, query, key, value, attn_bias, dropout_p, is_causal, scale),)
