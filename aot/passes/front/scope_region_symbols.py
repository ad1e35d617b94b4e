"""A scope for every body: sizes that change inside of a body are symbols with the body's name as prefix.

loop { body }   ->   the iteration counter in scope `loop.body.` is `loop.body.i`
"""

from __future__ import annotations

import re

from aot.ir.graph import Graph


def scope_region_symbols(graph: Graph) -> bool:
    """Set the scopes of bodies of all levels; types inferred under another scope are forgotten."""
    changed = False
    taken: set[str] = set()
    for node in graph.nodes.values():
        for key, body in node.regions.items():
            scope = _unique(f"{graph.scope}{node.name}.{key}", taken)
            if body.scope != scope:
                body.scope = scope
                changed = True
                for inner in body.nodes.values():
                    inner.set_given_operand(None)
                node.forget_types()
            changed = scope_region_symbols(body) or changed
    return changed


def _unique(name: str, taken: set[str]) -> str:
    stem = re.sub(r"[^A-Za-z0-9_.]", "_", name)
    stem = stem if re.match("[A-Za-z_]", stem) else f"_{stem}"
    scope, count = f"{stem}.", 1
    while scope in taken:
        count += 1
        scope = f"{stem}.{count}."
    taken.add(scope)
    return scope
