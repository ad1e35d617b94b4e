"""Names of inputs and outputs: the paths of leaves in the nested arguments and results of `forward`.

forward(image, extra={"p": .., "q": [..]})     ->     image, extra.p, extra.q.0
return {"probs": .., "list": [a, b]}           ->     probs, list.0, list.1
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from aot.runtime.errors import CorruptError

MAX_SPEC = 1 << 22  # characters
VERSION = 1
SINGLE = "output"  # the name of a result that is one tensor, and the prefix of those of a tuple


def input_paths(spec: str, names: Sequence[str], where: str) -> list[str]:
    """Return the paths of the leaves of `(args, kwargs)`; `names`: those of the arguments of `forward`, in order."""
    root = _parsed(spec, where)
    if root is None:
        return []
    args, kwargs = _children(root, where)[:2]
    paths: list[str] = []
    remaining = iter(names)
    for i, child in enumerate(_children(args, where)):
        paths += _paths(child, next(remaining, f"args.{i}"), where)
    for key, child in zip(_keys(kwargs, where), _children(kwargs, where), strict=True):
        paths += _paths(child, key, where)
    return paths


def output_paths(spec: str, where: str) -> list[str]:
    """Return the paths of the leaves of the result of `forward`."""
    root = _parsed(spec, where)
    if root is None:
        return []
    is_builtin = root.get("type") in (None, "builtins.tuple", "builtins.list")
    return list(_paths(root, SINGLE if is_builtin else "", where))


def _parsed(spec: str, where: str) -> dict[str, Any] | None:
    """Return the tree of a specification; None for an empty one."""
    if not spec:
        return None
    if len(spec) > MAX_SPEC:
        raise CorruptError(f"{where}: at most {MAX_SPEC} characters, got {len(spec)}")
    try:
        parsed = json.loads(spec)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"{where}: no JSON: {error}") from error
    if not isinstance(parsed, list) or len(cast("list[Any]", parsed)) != 2:
        raise CorruptError(f"{where}: a version and a tree, got something else")
    version, tree = cast("list[Any]", parsed)
    if version != VERSION:
        raise CorruptError(f"{where}: version {VERSION} can be read, got {version!r}")
    return _node(tree, where)


def _node(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CorruptError(f"{where}: nodes must be objects, got {type(value).__name__}")
    return cast("dict[str, Any]", value)


def _children(node: dict[str, Any], where: str) -> list[dict[str, Any]]:
    children = node.get("children_spec")
    if not isinstance(children, list):
        raise CorruptError(f"{where}: children_spec must be a list, got {type(children).__name__}")
    return [_node(child, where) for child in cast("list[Any]", children)]


def _keys(node: dict[str, Any], where: str) -> list[str]:
    """Return the names of children: keys of a dictionary or of an object, else their numbers."""
    count = len(_children(node, where))
    context = node.get("context")
    try:
        keys: Any = json.loads(context) if isinstance(context, str) else None
    except (ValueError, RecursionError):
        keys = None
    if isinstance(keys, list):
        if len(cast("list[Any]", keys)) == 2 and count != 2 and isinstance(keys[1], list):
            keys = cast("list[Any]", keys[1])  # a default dictionary: its factory, its keys
        if len(cast("list[Any]", keys)) == count:
            return [str(k) for k in cast("list[Any]", keys)]
    return [str(i) for i in range(count)]


def _paths(node: dict[str, Any], path: str, where: str) -> Iterator[str]:
    """Leaves in order; recursion is bounded by that of the JSON."""
    if node.get("type") is None:
        yield path or SINGLE
        return
    for key, child in zip(_keys(node, where), _children(node, where), strict=True):
        yield from _paths(child, f"{path}.{key}" if path else key, where)
