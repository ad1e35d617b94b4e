"""A graph in the language of Graphviz."""

from __future__ import annotations

from typing import Any

from aot.mo.graph.attributes import shortened

COLOURS = {"op": "lightblue", "data": "whitesmoke"}
COLOURS_OF_TYPES = {"Const": "lightpink", "Parameter": "yellowgreen"}
HIGHLIGHT = "firebrick"
STYLES = {"op": "filled,bold", "data": "filled,rounded"}
VALUE = 40  # characters of a constant's value


def graphviz_text(
    graph: Any, node_attrs: list[str], edge_attrs: list[str], nodes: list[str], highlighted: list[str]
) -> str:
    """Return the nodes `nodes` and their edges, each with the named attributes."""
    lines = [_node(id, graph.nodes[id], node_attrs, id in highlighted) for id in nodes]
    inside = set(nodes)
    for source, target, attrs in graph.edges(data=True):
        if source in inside and target in inside:
            label = " ".join(f"{k}={attrs[k]}" for k in edge_attrs if k in attrs)
            lines.append(f'"{source}" -> "{target}" [label = "{label}"];')
    return "\n".join(["", "digraph {", *lines, "}"])


def _node(id: str, attrs: dict[str, Any], shown: list[str], highlighted: bool) -> str:
    kind = attrs.get("kind", "op")
    colour = HIGHLIGHT if highlighted else COLOURS_OF_TYPES.get(attrs.get("type", ""), COLOURS.get(kind, COLOURS["op"]))
    label = [str(id), *(f"{k}={attrs[k]}" for k in shown if k in attrs)]
    if attrs.get("type") == "Const" and "value" not in shown and attrs.get("value") is not None:
        label.append(f"value={shortened(attrs['value'], VALUE)}".replace("\n", " "))
    text = "\\n".join(label).replace('"', '\\"')
    return f'"{id}" [fillcolor={colour} style="{STYLES.get(kind, STYLES["op"])}" shape=box label="{text}"];'
