"""Dead code: what no result and no state depends on is removed."""

from __future__ import annotations

from aot.ir.graph import Graph
from aot.passes.rewrite import is_dead


def dead_code(graph: Graph) -> bool:
    """Remove nodes whose outputs nothing reads. Parameters stay: they are the interface."""
    changed = False
    for node in reversed(graph.order()):
        if is_dead(graph, node):
            graph.remove(node)
            changed = True
    return changed
