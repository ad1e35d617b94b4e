"""Walking and rewriting scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from codegen.loops import Const, Expr, Load, Prim, Reduce, Var, prim


def children(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Const() | Var():
            return ()
        case Load(_, index):
            return index
        case Prim(_, args):
            return args
        case Reduce(_, _, body, init):
            return (body,) if init is None else (body, init)


def rewrite(node: Expr, change: Mapping[Expr, Expr] | Callable[[Expr], Expr | None]) -> Expr:
    """Replace whole sub-expressions, outermost first; a function returns None where nothing changes."""
    look = change if callable(change) else change.get
    memo: dict[Expr, Expr] = {}

    def go(e: Expr) -> Expr:
        if e not in memo:
            found = look(e)
            memo[e] = found if found is not None else _with_children(e, go)
        return memo[e]

    return go(node)


def _with_children(node: Expr, go: Callable[[Expr], Expr]) -> Expr:
    match node:
        case Const() | Var():
            return node
        case Load(buffer, index):
            return Load(buffer, tuple(map(go, index)))
        case Prim(fn, args, dtype):
            new = tuple(map(go, args))
            return node if new == args else prim(fn, *new, dtype=dtype)
        case Reduce(fn, axes, body, init):
            return Reduce(fn, axes, go(body), go(init) if init is not None else None)


def walk(*roots: Expr) -> Iterable[Expr]:
    """Every distinct sub-expression once, parents first."""
    seen: set[int] = set()
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(reversed(children(node)))


def variables(*nodes: Expr) -> frozenset[Var]:
    return frozenset(e for e in walk(*nodes) if isinstance(e, Var))


def loads(*nodes: Expr) -> tuple[Load, ...]:
    """Distinct loads, in the order they appear."""
    return tuple(dict.fromkeys(e for e in walk(*nodes) if isinstance(e, Load)))
