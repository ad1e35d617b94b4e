"""Size of a graph once its functions are inlined, known before any is walked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aot.runtime.errors import BudgetError

Message = Any

MAX_NODES = 1 << 20  # once functions are inlined; the largest networks have a few 10 000
_TWICE = "cond"  # attribute of While that is walked twice: before the loop and in its body


def check_inlined(nodes: Iterable[Message], functions: Mapping[str, Message], file: str) -> None:
    """BudgetError for more nodes than `MAX_NODES` once all functions are inlined.

    A function that calls itself counts once: the walk refuses it where it is called.
    """
    sizes: dict[str, int] = {}
    for root in dict.fromkeys(name for name, _ in _calls(nodes, functions)):
        _count(root, functions, sizes)
    top = list(nodes)
    total = len(top) + sum(times * sizes[name] for name, times in _calls(top, functions))
    if total > MAX_NODES:
        raise BudgetError(f"{file}: there can be at most {MAX_NODES} nodes once functions are inlined, got {total}")


def _count(root: str, functions: Mapping[str, Message], sizes: dict[str, int]) -> None:
    """Set the sizes of a function and of all that it calls, callees first, without recursion."""
    stack, opened = [root], set[str]()
    while stack:
        name = stack[-1]
        below = _calls(functions[name].node_def, functions)
        waiting = [n for n, _ in below if n not in sizes and n not in opened]
        opened.add(name)
        stack += dict.fromkeys(waiting)
        if not waiting:
            sizes[stack.pop()] = len(functions[name].node_def) + sum(times * sizes.get(n, 0) for n, times in below)


def _calls(nodes: Iterable[Message], functions: Mapping[str, Message]) -> list[tuple[str, int]]:
    """Return the functions that nodes call, and how often the walk inlines each."""
    calls: list[tuple[str, int]] = []
    for node in nodes:
        if node.op in functions:
            calls.append((node.op, 1))
        for name, value in node.attr.items():
            named = [value.func] if value.HasField("func") else value.list.func if value.HasField("list") else ()
            calls += [(f.name, 2 if name == _TWICE else 1) for f in named if f.name in functions]
    return calls
