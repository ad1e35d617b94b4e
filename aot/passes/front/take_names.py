"""Names of the user's file for nodes that the front end has made, so that extensions find them.

Celu 'mine' of the file   ->   Divide_4 .. Add_9   ->   Divide_4 .. mine
"""

from __future__ import annotations

from aot.ir.graph import Graph, Node


def take_names(graph: Graph) -> bool:
    """Name the last node made of a layer after that layer, unless another node has the name."""
    last: dict[str, Node] = {}
    names = {node.name for node in graph.nodes.values()}
    for node in graph.order():
        if len(node.origin.layers) == 1:
            last[node.origin.layers[0]] = node
    changed = False
    for name, node in last.items():
        if name not in names and node.type not in ("Parameter", "Result"):
            node.name, changed = name, True
            names.add(name)
    return changed
