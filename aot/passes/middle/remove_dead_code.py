"""Dead code elimination: nodes that no result and no state depends on."""

from __future__ import annotations

from aot.ir.graph import Graph
from aot.passes.rewrite import is_dead


def remove_dead_code(graph: Graph) -> bool:
    """Remove nodes without consumers of their outputs. Parameters stay: they are the interface."""
    changed = False
    for node in reversed(graph.order()):
        if is_dead(graph, node):
            graph.remove(node)
            changed = True
    return changed
