"""Pooling in its plainest form."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import Node
from aot.opset.pooling import DilatedMaxPool, MaxPool, MaxPool_8
from aot.opset.windows import Rounding
from aot.passes.rewrite import Replacement, rule


@rule(MaxPool_8)
def drop_unread_places(node: Node, op: MaxPool_8, build: Builder) -> Replacement:
    """MaxPool(x) whose second output, the places of the maxima, is not read -> the maxima alone"""
    if node.out_port(1).destinations:
        return None
    rest = (op.strides, op.pads_begin, op.pads_end, op.kernel, op.rounding_type, op.auto_pad)
    plain = set(op.dilations) <= {1} and op.rounding_type in (Rounding.FLOOR, Rounding.CEIL)
    made = MaxPool(*rest) if plain else DilatedMaxPool(*rest, dilations=op.dilations)
    return build(made, node.source(0)), None


RULES = (drop_unread_places,)
