"""The graph of a model as a drawing: places of layers, and lines that go around other layers.

{"nodes": [{"id", "name", "kind", "shape", "call", "constants", "x", "y"}], "edges": [[[x, y], ...]]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from aot.ir.graph import Graph, Node
from aot.runtime.errors import MissingError

WIDTH, HEIGHT = 170, 34  # pixels of a box; the page has the same numbers
STEP_X, STEP_Y = 190, 62  # pixels from box to box
SPACING = 72  # units between neighbours in the layout of fast-sugiyama, in both directions

Facts = dict[str, Any]
Edge = tuple[int, int]
Point = tuple[float, float]
_Part = tuple[list[tuple[int, Point]], float, float, list[Edge]]  # of a layout: places, width, height, edges


def drawing(graph: Graph, calls: Sequence[Iterable[str]]) -> Facts:
    """Return the drawing of a canonical graph; its constants are listed with their consumers.

    `calls`: the layers of each call; a box has the first call that computes it. MissingError without fast-sugiyama.
    """
    call_of: dict[str, int] = {}
    for index, layers in enumerate(calls):
        for name in layers:
            call_of.setdefault(name, index)
    nodes = [node for node in graph.order() if node.data is None]
    edges = [(port.node.id, node.id) for node in nodes for port in node.sources() if port and port.node.data is None]
    centres, lines = placed([node.id for node in nodes], list(dict.fromkeys(edges)))
    return {"nodes": [_box(node, call_of) | centres[node.id] for node in nodes], "edges": lines}


def chain(calls: Sequence[Mapping[str, Any]]) -> Facts:
    """Return a drawing of calls one below the other, if the graph is not known."""
    nodes: list[Facts] = [
        {"id": n, "name": ", ".join(c["layers"]), "kind": c["kernel"], "shape": "", "call": n, "constants": []}
        | {"x": 0, "y": n * STEP_Y}
        for n, c in enumerate(calls)
    ]
    return {"nodes": nodes, "edges": [[[0, n * STEP_Y], [0, (n + 1) * STEP_Y]] for n in range(len(nodes) - 1)]}


def placed(nodes: Sequence[int], edges: Sequence[Edge]) -> tuple[dict[int, Facts], list[list[list[int]]]]:
    """Return the centre of each node, and the points of each edge; parts without connection lie side by side."""
    if find_spec("fast_sugiyama") is None:
        raise MissingError("report: needs the package fast-sugiyama: pip install 'aot[report]'")
    number = {n: i for i, n in enumerate(nodes)}
    numbered = [(number[a], number[b]) for a, b in edges]
    layout = import_module("fast_sugiyama").from_edges  # the package is optional
    layouts = cast("list[_Part]", layout(numbered, dummy_vertices=True) if edges else [])
    points: dict[int, Point] = {}
    lines: list[list[list[int]]] = []
    left = 0.0
    for vertices, width, height, inner in layouts:
        begin = min(x for _, (x, _) in vertices)
        own = {n: ((x - begin) / SPACING * STEP_X + left, (height - y) / SPACING * STEP_Y) for n, (x, y) in vertices}
        lines += _lines(own, inner, len(nodes))
        points |= own
        left += (width / SPACING + 1) * STEP_X
    for n in range(len(nodes)):
        if n not in points:
            points[n] = (left, 0.0)
            left += STEP_X
    return {n: {"x": round(points[i][0]), "y": round(points[i][1])} for n, i in number.items()}, lines


def _lines(points: Mapping[int, Point], edges: Sequence[Edge], count: int) -> list[list[list[int]]]:
    """Join the edges that pass through the layout's own vertices into lines; these vertices begin at `count`."""
    follows = {a: b for a, b in edges if a >= count}
    lines: list[list[list[int]]] = []
    for a, b in edges:
        if a >= count:
            continue
        path = [a, b]
        while path[-1] >= count:
            path.append(follows[path[-1]])
        lines.append([[round(points[n][0]), round(points[n][1])] for n in path])
    return lines


def _box(node: Node, call_of: Mapping[str, int]) -> Facts:
    constants = [port.node for port in node.sources() if port is not None and port.node.data is not None]
    return {
        "id": node.id,
        "name": node.name,
        "kind": node.type,
        "shape": ", ".join(str(port.type) for port in node.out_ports().values()),
        "call": next((call_of[name] for name in (node.name, *node.origin.layers) if name in call_of), -1),
        "constants": [f"{c.name}: {c.out_port().type}" for c in constants],
    }
