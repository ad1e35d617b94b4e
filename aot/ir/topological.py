"""Topological order, producers before consumers, without recursion: networks are deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from aot.runtime.errors import ModelError

T = TypeVar("T")


def producers_first(roots: Iterable[T], above: Callable[[T], Iterable[T]], name: Callable[[T], str]) -> Iterator[T]:
    """Yield the roots and all nodes above them, each once, producers first. ModelError names the members of a cycle."""
    state: dict[int, bool] = {}  # False while a node waits for its producers
    for root in roots:
        if id(root) in state:
            continue
        first = list(above(root))
        for node in first:
            if not state.get(id(node)):
                break
        else:
            state[id(root)] = True
            yield root
            continue
        state[id(root)] = False
        stack = [(root, iter(first))]
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
