"""Walking and rewriting scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import is_

from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Var, with_args
from aot.codegen.ir.primitives import FUNCTIONS

NONE = frozenset[Var]()
NO_NAMES = frozenset[str]()
LEAVES = (Var, Const)  # expressions without parts
Look = Callable[[Expr], Expr | None]


def rewrite(node: Expr, change: Mapping[Expr, Expr] | Look, known: dict[Expr, Expr] | None = None) -> Expr:
    """Replace whole sub-expressions, outermost first. If `change` is a function, None means: go on to the parts.

    Equal parts become one object: `walk` counts them once. `known`: results of this `change`, which grow.
    """
    look = change if callable(change) else change.get
    if isinstance(node, LEAVES):  # most indices are one axis
        result = look(node)
        return node if result is None else result
    return _rewritten(node, look, {} if known is None else known)


# No closure that calls itself: only the garbage collector would free it, with all results that it holds.
def _rewritten(node: Expr, look: Look, known: dict[Expr, Expr]) -> Expr:
    result = known.get(node)
    if result is None:
        result = look(node)
        if result is None:
            result = node if isinstance(node, LEAVES) else _with_children(node, look, known)
        known[node] = result
    return result


def _with_children(node: Prim | Load | Reduce, look: Look, known: dict[Expr, Expr]) -> Expr:
    if isinstance(node, Reduce):
        body = _rewritten(node.body, look, known)
        init = _rewritten(node.init, look, known) if node.init is not None else None
        return node if body is node.body and init is node.init else Reduce(node.fn, node.axes, body, init)
    old = node.args if isinstance(node, Prim) else node.index
    parts: list[Expr] = []
    for part in old:  # a comprehension has a frame of its own: the deepest expressions would be too deep
        if isinstance(part, LEAVES):
            result = look(part)
            parts.append(part if result is None else result)
        else:
            parts.append(_rewritten(part, look, known))
    new = tuple(parts)
    if all(map(is_, new, old)) or new == old:
        return node
    return with_args(node, new) if isinstance(node, Prim) else Load(node.buffer, new)


def walk(*roots: Expr) -> Iterable[Expr]:
    """Yield every distinct sub-expression once, parents first."""
    seen: set[int] = set()
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if (key := id(node)) in seen:
            continue
        seen.add(key)
        yield node
        stack += node.children[::-1]


def calls_functions(root: Expr) -> bool:
    """True if an expression has a function of floats that is written out as 10 to 30 instructions."""
    return not functions_in(root).isdisjoint(FUNCTIONS)


# Results are cached in the expression, which never changes. It must not cache a reference to itself: only the garbage
# collector frees cycles.


def variables(*nodes: Expr) -> frozenset[Var]:
    if len(nodes) == 1:
        return _variables(nodes[0])
    axes = frozenset([node for node in nodes if isinstance(node, Var)])  # most indices are axes
    return axes.union(*[_variables(node) for node in nodes if not isinstance(node, LEAVES)])


def _variables(node: Expr) -> frozenset[Var]:
    if isinstance(node, Var):
        return frozenset((node,))
    axes: frozenset[Var] | None = getattr(node, "known_variables", None)
    if axes is None:
        axes = NONE
        for child in node.children:
            read = _variables(child)
            axes = axes if read <= axes else read if axes <= read else axes | read  # sets are shared
        node.known_variables = axes
    return axes


def loaded_names(node: Expr) -> frozenset[str]:
    """Return the names of the buffers that an expression loads from."""
    result: frozenset[str] | None = getattr(node, "known_names", None)
    if result is None:
        result = frozenset((node.buffer.name,)) if isinstance(node, Load) else NO_NAMES
        for child in node.children:
            if isinstance(child, LEAVES):
                continue
            read = loaded_names(child)
            result = result if read <= result else read if result <= read else result | read  # sets are shared
        node.known_names = result
    return result


def functions_in(node: Expr) -> frozenset[str]:
    """Return the names of the primitives in an expression."""
    result: frozenset[str] | None = getattr(node, "known_functions", None)
    if result is None:
        result = frozenset((node.fn,)) if isinstance(node, Prim) else NO_NAMES
        for child in node.children:
            if isinstance(child, LEAVES):
                continue
            inside = functions_in(child)
            result = result if inside <= result else inside if result <= inside else result | inside
        node.known_functions = result
    return result


def measure(node: Expr) -> tuple[int, int]:
    """Return the depth of an expression and its number of nodes; a shared node counts at each use."""
    try:
        return node.known_measure
    except AttributeError:
        deepest = size = 0
        for child in node.children:
            depth, count = measure(child)
            deepest, size = max(deepest, depth), size + count
        result = node.known_measure = deepest + 1, size + 1
        return result


def reduction_in(node: Expr) -> Reduce | None:
    """Return the first reduction in an expression, parents before their parts; None if there is none."""
    if isinstance(node, Reduce):
        return node
    try:
        return node.known_reduction
    except AttributeError:
        reduction: Reduce | None = None
        for child in node.children:
            if not isinstance(child, LEAVES) and (reduction := reduction_in(child)) is not None:
                break
        node.known_reduction = reduction
        return reduction


def loads(*nodes: Expr) -> tuple[Load, ...]:
    """Return the distinct loads, in the order they appear."""
    if len(nodes) == 1:
        return _loads(nodes[0])
    return _joined([inside for node in nodes if not isinstance(node, LEAVES) and (inside := _loads(node))])


def _loads(node: Expr) -> tuple[Load, ...]:
    known: tuple[Load, ...] | None = getattr(node, "known_loads", None)
    if known is None:
        parts: list[tuple[Load, ...]] = []
        for child in node.children:  # no comprehension, as above: expressions are deep
            if not isinstance(child, LEAVES) and (inside := _loads(child)):
                parts.append(inside)  # noqa: PERF401
        known = node.known_loads = _joined(parts)
    return (node, *known) if isinstance(node, Load) else known


def unguarded(node: Expr) -> Iterable[Load]:
    """Yield the loads outside of any `within`, which are made whatever the values of indices are."""
    if isinstance(node, Load):
        yield node
    elif isinstance(node, Prim) and node.fn != "within":
        for part in node.args:
            yield from unguarded(part)


def _joined(parts: list[tuple[Load, ...]]) -> tuple[Load, ...]:
    """Return the loads of all parts, each once; those of a single part are shared, not copied."""
    if len(parts) < 2:
        return parts[0] if parts else ()
    return tuple(dict.fromkeys(chain.from_iterable(parts)))
