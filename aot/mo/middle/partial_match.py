"""The largest part of a pattern that fits a graph, and the difference at the next node."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from aot.mo.graph.graph import Graph

TRIALS = 20_000  # partial matches that are looked at for one pattern
SHOWN = 3  # candidates in a reason

Watch = Callable[[object, Graph, list[Any], list[Any], int], None]  # action, graph, pattern, number of matches
WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)
Fits = Callable[[dict[str, Any], dict[str, Any]], bool]


class PartialMatch:
    """Finds how many nodes of a pattern fit, which they are, and why no further one does."""

    def __init__(self, graph: Graph, nodes: list[Any], edges: list[Any], fits: Fits) -> None:
        """`nodes`, `edges`: as in a pattern; `fits`: true if a node's attributes include a pattern node's."""
        self.graph, self.fits = graph, fits
        self.wanted: dict[str, dict[str, Any]] = {n[0]: n[1] if len(n) > 1 else {} for n in nodes}
        self.edges: list[tuple[str, str, dict[str, Any]]] = [(e[0], e[1], e[2] if len(e) > 2 else {}) for e in edges]
        self.order = self._order()
        self.best: dict[str, str] = {}
        self.reason = ""
        self.trials = 0

    def search(self) -> PartialMatch:
        """Look for the largest part; return this object."""
        if self.order:
            self._extend({})
        return self

    def _order(self) -> list[str]:
        """Return the pattern's nodes so that each has a neighbour before it, where it has one at all."""
        left, order = list(self.wanted), list[str]()
        while left:
            near = [n for n in left if any({n} < {u, v} and {u, v} - {n} <= set(order) for u, v, _ in self.edges)]
            order.append(near[0] if near else left[0])
            left.remove(order[-1])
        return order

    def _extend(self, match: dict[str, str]) -> bool:
        """Add the next node of the pattern in each way; True if the whole pattern fits."""
        if len(match) == len(self.order):
            self.best = dict(match)
            return True
        self.trials += 1
        name = self.order[len(match)]
        failed: list[str] = []
        for id in self._candidates(name, match):
            why = self._unlike(name, id, match)
            if why:
                failed.append(why)
            elif self.trials < TRIALS and self._extend({**match, name: id}):
                return True
        if len(match) > len(self.best) or not self.reason:
            self.best, self.reason = dict(match), self._told(name, match, failed)
        return False

    def _candidates(self, name: str, match: dict[str, str]) -> list[str]:
        for source, target, _ in self.edges:
            if target == name and source in match:
                return list(dict.fromkeys(v for _, v in self.graph.out_edges(match[source])))
            if source == name and target in match:
                return list(dict.fromkeys(u for u, _ in self.graph.in_edges(match[target])))
        return list(self.graph.nodes())

    def _unlike(self, name: str, id: str, match: dict[str, str]) -> str:
        """Return the first difference between a node of the graph and one of the pattern; empty if there is none."""
        attrs, expected = self.graph.nodes[id], self.wanted[name]
        shown = str(attrs.get("name", id))
        if id in match.values():
            return f"{shown!r} is another node of the pattern"
        for key, value in expected.items():
            if not self.fits(attrs, {key: value}):
                wish = "another one" if callable(value) else repr(value)
                return f"{shown!r} has {key} = {_short(attrs.get(key))}, not {wish}"
        for source, target, edge in self.edges:
            ends = {**match, name: id}
            if name in (source, target) and source in ends and target in ends:
                edges_between: dict[Any, dict[str, Any]] = self.graph.get_edge_data(ends[source], ends[target]) or {}
                if not any(all(one.get(k) == v for k, v in edge.items()) for one in edges_between.values()):
                    return f"{shown!r} has no edge {source} -> {target}{f' with {edge}' if edge else ''}"
        return ""

    def _told(self, name: str, match: dict[str, str], failed: list[str]) -> str:
        where = f"node {name} of the pattern"
        if not failed:
            return f"{where}: the nodes before it have no neighbour there" if match else f"{where}: the graph is empty"
        more = f", and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
        return f"{where}: {'; '.join(failed[:SHOWN])}{more}"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:38] + ".."
