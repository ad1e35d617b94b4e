"""Walking and rewriting scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Var, prim
from runtime.abi import DType


def children(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Prim):
        return node.args
    if isinstance(node, Load):
        return node.index
    if isinstance(node, Reduce):
        return (node.body,) if node.init is None else (node.body, node.init)
    return ()


def rewrite(node: Expr, change: Mapping[Expr, Expr] | Callable[[Expr], Expr | None]) -> Expr:
    """Replace whole sub-expressions, outermost first. If a function `change` returns None, parts are rewritten."""
    look = change if callable(change) else change.get
    memo: dict[Expr, Expr] = {}

    def go(e: Expr) -> Expr:
        result = memo.get(e)
        if result is None:
            replacement = look(e)
            result = memo[e] = replacement if replacement is not None else _with_children(e, go)
        return result

    return go(node)


def _with_children(node: Expr, go: Callable[[Expr], Expr]) -> Expr:
    match node:
        case Const() | Var():
            return node
        case Load(buffer, index):
            new = tuple(map(go, index))
            return node if new == index else Load(buffer, new)
        case Prim(fn, args, dtype):
            new = tuple(map(go, args))
            return node if new == args else prim(fn, *new, dtype=dtype)
        case Reduce(fn, axes, body, init):
            return Reduce(fn, axes, go(body), go(init) if init is not None else None)


def walk(*roots: Expr) -> Iterable[Expr]:
    """Yield every distinct sub-expression once, parents first."""
    seen: set[int] = set()
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(reversed(children(node)))


# Results are cached in the expression, which never changes. It must not cache a reference to itself: only the garbage
# collector frees cycles.


def variables(*nodes: Expr) -> frozenset[Var]:
    return _variables(nodes[0]) if len(nodes) == 1 else frozenset[Var]().union(*map(_variables, nodes))


def _variables(node: Expr) -> frozenset[Var]:
    if isinstance(node, Var):
        return frozenset((node,))
    try:
        return node.known_variables
    except AttributeError:
        result = frozenset[Var]().union(*map(_variables, children(node)))
        object.__setattr__(node, "known_variables", result)
        return result


def measure(node: Expr) -> tuple[int, int]:
    """Return the depth of an expression and its number of nodes; a shared node counts at each use."""
    try:
        return node.known_measure
    except AttributeError:
        parts = [measure(child) for child in children(node)]
        result = 1 + max((depth for depth, _ in parts), default=0), 1 + sum(size for _, size in parts)
        object.__setattr__(node, "known_measure", result)
        return result


def loads(*nodes: Expr) -> tuple[Load, ...]:
    """Return the distinct loads, in the order they appear."""
    return _loads(nodes[0]) if len(nodes) == 1 else tuple(dict.fromkeys(chain.from_iterable(map(_loads, nodes))))


def _loads(node: Expr) -> tuple[Load, ...]:
    try:
        cached = node.known_loads
    except AttributeError:
        cached = tuple(dict.fromkeys(chain.from_iterable(map(_loads, children(node)))))
        object.__setattr__(node, "known_loads", cached)
    return (node, *cached) if isinstance(node, Load) else cached


def clamp_of(e: Expr) -> tuple[Expr, float, float] | None:
    """Match a clamp that is cast to a small integer type with its bounds: return value and bounds, else None."""
    match e:
        case Prim("cast", (Prim("min", (Prim("max", (value, Const(low))), Const(high))),), dtype) if (
            value.dtype.is_float and not dtype.is_float and dtype is not DType.BOOL and dtype.bits <= 16
        ):
            least = -(1 << dtype.bits - 1) if dtype.is_signed else 0
            fits = least <= low <= high < least + (1 << dtype.bits)
            return (value, float(low), float(high)) if fits else None
        case _:
            return None
