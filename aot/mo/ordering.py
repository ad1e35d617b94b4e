"""The order of transformations: a topological sort that depends on the names of classes alone.

Depth first from the classes that nothing precedes, by name; successors of a class by name, too. Classes that are named
by `run_before` and `run_after` and take no part are ignored. Source of the rule: Model Optimizer 2024.6.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from aot.mo.transforms import has_code, is_placeholder
from aot.mo.utils.error import Error

Class = type[Any]
Follows = dict[Class, dict[Class, None]]


def sort_transforms(classes: Iterable[Class]) -> list[Class]:
    """Return the classes in the order they run; Error for a cycle, which it shows, and for two of one name."""
    distinct = list(dict.fromkeys(classes))
    _check_names(distinct)
    follows = _follows(distinct)
    _check_cycle(follows)
    preceded = {later for successors in follows.values() for later in successors}
    order: list[Class] = []
    seen: set[Class] = set()
    for cls in sorted((c for c in distinct if c not in preceded), key=_name):
        _visit(cls, follows, seen, order)
    return order[::-1]


def _name(cls: Class) -> str:
    return cls.__name__


def _check_names(classes: list[Class]) -> None:
    known: dict[str, Class] = {}
    for cls in classes:
        other = known.setdefault(cls.__name__, cls)
        if other is not cls:
            rule = "names of transformations are unique"
            raise Error("extension {}: {}, got {} and {}", cls.__name__, rule, file_of(other), file_of(cls))
    ids: dict[Any, Class] = {}
    for cls in classes:
        id = getattr(cls, "id", None)
        if isinstance(id, str) and ids.setdefault(id, cls) is not cls:
            raise Error("extension {}: ids are unique, got {} of {}, too", cls.__name__, id, ids[id].__name__)


def file_of(cls: Class) -> str:
    """Return the file that declares a class."""
    return str(getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__)


def _follows(classes: list[Class]) -> Follows:
    follows: Follows = {cls: {} for cls in classes}
    for cls in classes:
        for later in asked(cls, "run_before"):
            if later in follows:
                follows[cls][later] = None
        for earlier in asked(cls, "run_after"):
            if earlier in follows:
                follows[earlier][cls] = None
    return follows


def asked(cls: Class, method: str) -> list[Any]:
    """Return the classes that `run_before` or `run_after` of a class names; Error for another result."""
    classes: Any = getattr(cls(), method)()
    if type(classes) not in (list, tuple, set):
        raise Error("extension {}: {} returns a list of classes, got {!r}", cls.__name__, method, classes)
    listed: list[Any] = list(classes)
    for other in listed:
        if not isinstance(other, type):
            raise Error("extension {}: {} names classes, got {!r}", cls.__name__, method, other)
    return listed


def _visit(root: Class, follows: Follows, seen: set[Class], order: list[Class]) -> None:
    """Append the classes below `root`, the last ones first."""
    seen.add(root)
    stack = [(root, iter(sorted(follows[root], key=_name)))]
    while stack:
        cls, rest = stack[-1]
        below = next((c for c in rest if c not in seen), None)
        if below is None:
            order.append(cls)
            stack.pop()
        else:
            seen.add(below)
            stack.append((below, iter(sorted(follows[below], key=_name))))


def _check_cycle(follows: Follows) -> None:
    left = dict(follows)
    while leaves := [cls for cls, later in left.items() if not any(c in left for c in later)]:
        for cls in leaves:
            del left[cls]
    if left:
        path = [min(left, key=_name)]
        while (after := min((c for c in follows[path[-1]] if c in left), key=_name)) not in path:
            path.append(after)
        shown = " -> ".join(map(_name, [*path[path.index(after) :], after]))
        raise Error("extensions: transformations cannot be sorted, they form a cycle: {}", shown)


def split(order: list[Class]) -> tuple[list[Class], list[Class]]:
    """Return the transformations that run before data nodes are made, and those after.

    These are the user's, and Model Optimizer's own that have code and precede one of the user's: each transformation of
    the user's sees the graph that Model Optimizer gave it.
    """
    cut = next((i for i, cls in enumerate(order) if cls.__name__ == "CreateTensorNodes"), len(order))
    last = max((i for i, cls in enumerate(order) if not is_placeholder(cls)), default=0)
    classes = [cls for i, cls in enumerate(order) if not is_placeholder(cls) or (i < last and has_code(cls))]
    front = set(order[:cut])
    return [cls for cls in classes if cls in front], [cls for cls in classes if cls not in front]
