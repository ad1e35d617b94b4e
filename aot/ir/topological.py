"""Topological order, producers before consumers, without recursion: networks are deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from aot.runtime.errors import ModelError

T = TypeVar("T")


def producers_first(
    roots: Iterable[T],
    above: Callable[[T], Iterable[T]],
    name: Callable[[T], str],
    state: dict[int, bool] | None = None,
) -> Iterator[T]:
    """Yield the roots and all nodes above them, each once, producers first. ModelError names the members of a cycle.

    `state`: True by the id of a node that has been yielded, False while it waits for its producers.
    """
    state = {} if state is None else state
    for root in roots:
        if id(root) in state:
            continue
        state[id(root)] = False
        stack = [(root, iter(above(root)))]
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                state[id(node)] = True
                yield node
            elif id(following) not in state:
                state[id(following)] = False
                stack.append((following, iter(above(following))))
            elif not state[id(following)]:
                path = [n for n, _ in stack]
                start = next(i for i, n in enumerate(path) if n is following)
                shown = [name(n) for n in path[start : start + 20]]
                raise ModelError(f"graph: cycle through layers {' -> '.join(shown)}")


def nodes_in_order(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the nodes of a graph, producers first, else in their order. ModelError for a cycle."""
    state: dict[int, bool] = {}
    for node in nodes:
        for port in node.inputs():
            if port.source is not None and not state.get(id(port.source.node)):
                yield from producers_first([node], producers, lambda n: n.name, state)
                break
        else:  # as nearly always
            if id(node) not in state:
                state[id(node)] = True
                yield node


def producers(node: Any) -> list[Any]:
    """Return the nodes that a node of a graph reads."""
    return [port.source.node for port in node.inputs() if port.source is not None]
