"""FakeQuantize moves to where its data are computed: what joins, moves or compares them handles bytes then."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.opset.elementwise.binary import AutoBroadcast
from aot.opset.elementwise.quantization import FakeQuantize
from aot.opset.movement.movement import Concat
from aot.opset.movement.shape import volume
from aot.opset.products.pooling import DilatedMaxPool, MaxPool
from aot.passes.match import source, uniform
from aot.passes.rewrite import rule
from aot.passes.rules.levels import again, has_whole_windows, is_view, views_of

Limits = tuple[float, float, float, float]


def _limits(node: Node) -> Limits | None:
    """Return the ranges of input and output, if all elements share them and larger numbers have larger levels."""
    numbers = [n for n in map(uniform, node.sources()[1:]) if n is not None]
    if len(numbers) < 4 or not isinstance(node.op, FakeQuantize) or node.op.auto_broadcast is AutoBroadcast.PDPD:
        return None
    low, high, out_low, out_high = numbers
    return (low, high, out_low, out_high) if low < high and out_low < out_high else None


def _are_alike(node: Node, other: Node) -> bool:
    """True if both quantise alike."""
    return node.op == other.op and (limits := _limits(node)) is not None and limits == _limits(other)


def _decides(node: Node, x: OutPort) -> bool:
    """True if all consumers of `x` quantise it with the parameters of `node`, and keep its shape."""
    alike = (_are_alike(node, p.node) and p.idx == 0 for p in x.destinations)
    return all(alike) and node.out_port(0).type == x.type


def _quantized(build: Builder, node: Node, x: OutPort) -> OutPort:
    """Return `x` quantised with the parameters of `node`, by an existing node or a new one."""
    nodes = (p.node for p in x.destinations if p.idx == 0 and isinstance(p.node.op, FakeQuantize))
    there = next((n for n in nodes if _are_alike(n, node)), None)
    return there.out_port(0) if there is not None else build(node.op, x, *node.sources()[1:])


@rule(FakeQuantize)
def quantize_once(node: Node, op: FakeQuantize, build: Builder) -> OutPort | None:
    """FakeQuantize(view(FakeQuantize(x))) -> view(FakeQuantize(x)) with equal limits, those of input and output, too"""
    views, x = views_of(node.source(0))
    before, limits = source(x, FakeQuantize), _limits(node)
    if before is None or limits is None or limits[:2] != limits[2:] or not _are_alike(node, before):
        return None
    return again(build, views, x) if node.out_port(0).type == node.source(0).type else None


@rule(FakeQuantize)
def quantize_before_concat(node: Node, op: FakeQuantize, build: Builder) -> OutPort | None:
    """FakeQuantize(Concat(x, y)) -> Concat(FakeQuantize(x), FakeQuantize(y)), if all consumers of Concat are alike"""
    joined = source(node.source(0), Concat)
    if joined is None or not _decides(node, joined.out_port(0)):
        return None
    return build(joined.op, *(_quantized(build, node, x) for x in joined.sources() if x is not None))


@rule(FakeQuantize)
def quantize_before_pool(node: Node, op: FakeQuantize, build: Builder) -> OutPort | None:
    """FakeQuantize(MaxPool(x)) -> MaxPool(FakeQuantize(x)), if all consumers of MaxPool are alike"""
    pool = source(node.source(0), MaxPool, DilatedMaxPool)
    if pool is None or not isinstance(pool.op, MaxPool | DilatedMaxPool) or not _decides(node, pool.out_port(0)):
        return None
    x = pool.source(0)
    return build(pool.op, _quantized(build, node, x)) if has_whole_windows(pool.op, x) else None


@rule(FakeQuantize)
def quantize_before_view(node: Node, op: FakeQuantize, build: Builder) -> OutPort | None:
    """FakeQuantize(view(x)) -> view(FakeQuantize(x)), if no element is left out and all consumers of view are alike"""
    moved = node.source(0)
    if not is_view(moved.node) or not _decides(node, moved):
        return None
    x = moved.node.source(0)
    before, after = volume(x.shape), volume(moved.shape)
    keeps = before == after or (isinstance(before, int) and isinstance(after, int) and before < after)
    return again(build, [moved], _quantized(build, node, x)) if keeps and x.node.constant_data is None else None


RULES = (quantize_once, quantize_before_concat, quantize_before_pool, quantize_before_view)
