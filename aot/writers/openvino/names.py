"""Names of layers: the names in the user's file, if nodes still correspond to its layers."""

from __future__ import annotations

import re

from aot.ir.graph import Graph, Node
from aot.opset.control.infrastructure import Constant, Parameter, Result


def layer_names(graph: Graph) -> dict[int, str]:
    """Return a unique name for each node, by its id.

    If several nodes come from one layer of the user's file, the last one has its name, the others `LAYER/Type`. Nodes
    whose name was not chosen by the builder keep it.
    """
    order = graph.order()
    names = {node.id: node.name for node in order if not _is_unnamed(node)}
    taken = set(names.values())
    for node in reversed(order):
        if node.id in names:
            continue
        layer = node.origin.layers[0] if len(node.origin.layers) == 1 else ""
        last = layer not in taken and not isinstance(node.op, Constant)
        name = _unique((layer if last else f"{layer}/{node.type}") if layer else node.name, taken)
        names[node.id] = name
        taken.add(name)
    return names


def _is_unnamed(node: Node) -> bool:
    """True if the builder has chosen the name of a node."""
    is_default = re.fullmatch(rf"{re.escape(node.type)}_\d+", node.name) is not None
    return is_default and node.origin.layers != (node.name,) and not isinstance(node.op, Parameter | Result)


def _unique(name: str, taken: set[str]) -> str:
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}_{count}"
    return unique
