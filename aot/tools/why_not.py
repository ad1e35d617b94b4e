"""Why a rule or a transformation did not fire in a model: its attempts while the graph passes run.

Rules of the compiler and of extensions, and extensions' classes with patterns, are asked by name.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from aot.compilation.graph_passes import all_passes
from aot.compilation.session import Session
from aot.compilation.stages import read
from aot.extensions.folder import Extensions
from aot.ir.scope import within
from aot.options import CompileOptions
from aot.passes.explain import Attempt, rule_names, watched
from aot.passes.run import run_passes
from aot.runtime.errors import UsageError


def attempts(model: str | Path, name: str, options: CompileOptions) -> list[Attempt]:
    """Return the attempts of a rule, those that fired first, then by how far they came.

    `name`: a rule, a set of rules, or a class of Model Optimizer's kind, by name or `id`. UsageError for another one.
    """
    session = Session.of(model, options)
    library = session.library
    passes, extra = all_passes(options, library.extensions)
    classes = [cls for one in extra for cls in getattr(one, "transforms", ()) if not hasattr(cls, "place")]
    own = {key for cls in classes for key in (cls.__name__, getattr(cls, "id", None)) if isinstance(key, str)}
    known = sorted({*rule_names((*passes, *extra)), *own})
    if name not in known:
        near = get_close_matches(name, known, 1)
        perhaps = f"; did you mean {near[0]}" if near else ""
        rule = "must be a rule, a set of rules or a class of an extension"
        raise UsageError(f"rewrite: {rule}, got {name}{perhaps}", advice=f"one of {', '.join(known)}")
    attempts_by_rule: dict[tuple[str, str], Attempt] = {}

    def record(attempt: Attempt) -> None:
        key = attempt.rule, attempt.layer
        before = attempts_by_rule.get(key)
        if before is None or (not before.fired and (attempt.fired or attempt.reached >= before.reached)):
            attempts_by_rule[key] = attempt

    with within(library.scope), _patterns(name, record, library.extensions):
        run_passes(read(session, model).graph, watched(passes, name, record), watched(extra, name, record))
    return sorted(attempts_by_rule.values(), key=lambda a: (not a.fired, -a.reached / max(a.size, 1), a.layer))


@contextmanager
def _patterns(name: str, record: Any, extensions: Extensions | None) -> Generator[None]:
    """Record the matches of patterns of Model Optimizer's classes, while this runs."""
    if extensions is None or not any(hasattr(one, "transforms") for one in extensions.passes):
        yield
        return
    matching: Any = import_module("aot.mo.middle.partial_match")
    fits: Any = import_module("aot.mo.middle.pattern_match").node_match

    def watch(action: Any, graph: Any, nodes: list[Any], edges: list[Any], matches: int) -> None:
        transform: object = getattr(action, "__self__", None)
        owner: type[object] = type(transform)
        if name not in (owner.__name__, getattr(owner, "id", None)):
            return
        part = matching.PartialMatch(graph, nodes, edges, fits).search()
        at = ", ".join(str(graph.nodes[id].get("name", id)) for id in part.best.values()) or "the graph"
        record(Attempt(owner.__name__, at, matches > 0, len(part.best), len(nodes), part.reason, "nodes"))

    token = matching.WATCH.set(watch)
    try:
        yield
    finally:
        matching.WATCH.reset(token)
