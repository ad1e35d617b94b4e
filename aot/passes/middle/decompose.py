"""Decomposition: operations that are defined by simpler ones are replaced by them."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.op import DecomposedOp
from aot.passes.rewrite import Replacement, RuleSet, rule


@rule(DecomposedOp)
def decompose_operation(node: Node, op: DecomposedOp, build: Builder) -> Replacement:
    """f(x, ..) -> f.decompose(x, ..)"""
    found: OutPort | tuple[OutPort, ...] = op.decompose(build, *node.sources())
    return found if len(node.out_ports()) > 1 or not isinstance(found, tuple) else found[0]


decompose = RuleSet("decompose", (decompose_operation,), required=True)
