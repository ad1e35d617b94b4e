"""The runner: sorts passes into phases, runs, times, verifies and numbers them.

    FrontStart .. FrontFinish   MiddleStart .. MiddleFinish   BackStart .. BackFinish      anchors in the list of passes

A pass is a function `Graph -> bool` (True if it changed the graph), or an object or class with `__call__` or, for
extensions, `find_and_replace_pattern`. Optional attributes: `phase` ("front", "middle", "back"), `run_before` and
`run_after` (names or classes of passes, or a method that returns them; by default an extension runs within its phase),
`enabled`, `id`, `graph_condition` (predicates on the graph that must all hold), `run_not_recursively` (bodies of
sub-graphs are not visited), `required` (it runs even after the last rewrite that `stop_after_rewrite` allows).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.by_identity import Same
from aot.ir.graph import Graph
from aot.ir.op import Foreign, RegionOp
from aot.ir.scope import raised_in
from aot.ir.verify import infer_types, verify
from aot.passes.pass_order import PassItem, sort_passes
from aot.passes.rewrite import Rewrite, RewriteLog, RuleSet
from aot.runtime.errors import AotError, BudgetError, InternalError, ModelError, PassError, UsageError

FRONT_FINISH = "FrontFinish"
LOG = logging.getLogger(__name__)

Pass = Callable[[Graph], bool]
Observer = Callable[["PassReport", Graph], None]


@dataclass(frozen=True, slots=True)
class PassReport:
    """Statistics of one pass: `rewrites` is the number of its rewrites, `nodes` the size of the graph after it."""

    name: str
    milliseconds: float
    changed: bool
    rewrites: int
    nodes: int

    def __str__(self) -> str:
        what = f"{self.rewrites} rewrites" if self.changed else "unchanged"
        return f"{self.name}: {what} ({self.milliseconds:.1f} ms)"


@dataclass(slots=True)
class RunReport:
    """Statistics of all passes, in the order they ran; `last`: the last rewrite within the limit."""

    passes: list[PassReport] = field(default_factory=list[PassReport])
    rules: dict[str, int] = field(default_factory=dict[str, int])
    rewrites: int = 0
    last: Rewrite | None = None

    @property
    def milliseconds(self) -> float:
        return sum(p.milliseconds for p in self.passes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.passes))


def run_passes(
    graph: Graph,
    passes: Iterable[Pass | str],
    extensions: Iterable[object] = (),
    *,
    stop_after_rewrite: int | None = None,
    observe: Observer | None = None,
    check: Callable[[Graph], object] | None = None,
    until: str | None = None,
) -> RunReport:
    """Run `passes`, in their order, with `extensions` sorted in; the graph is changed in place.

    `stop_after_rewrite`: rewrites after which only required passes run. `observe` is called after each pass, with the
    graph. `check` verifies the graph after each pass that changed it (None: aot.ir.verify). `until`: the anchor or pass
    after which the run ends.

    Raises PassError for a pass that fails or leaves a broken graph, or for passes that cannot be sorted; UsageError for
    an extension that fails. Errors of the model itself are found at the end of the front phase and raised unchanged.
    """
    items = sort_passes(passes, extensions)
    return run_items(graph, items, stop_after_rewrite=stop_after_rewrite, observe=observe, check=check, until=until)


def run_items(
    graph: Graph,
    items: Sequence[PassItem],
    *,
    stop_after_rewrite: int | None = None,
    observe: Observer | None = None,
    check: Callable[[Graph], object] | None = None,
    check_each: bool = True,
    until: str | None = None,
) -> RunReport:
    """Run passes that are sorted; the rest is as for `run_passes`.

    Without `check_each` what extensions and the last pass leave is verified, and after all others types are inferred.
    """
    in_front = any(item.name == FRONT_FINISH for item in items)
    run = _Run(graph, check or legal, check_each, observe, RewriteLog(stop_after_rewrite), in_front)
    if not run.in_front:
        run.check(graph)
    for item in items:
        if item.name == FRONT_FINISH:
            run.check(graph)
            run.in_front = False
        if item.target is not None and getattr(item.target, "enabled", True):  # a pass may switch off a later one
            run.step(item)
        if item.name == until:
            break
    if not check_each:
        run.check_last()
    run.report.rules, run.report.rewrites, run.report.last = dict(run.log.fired), run.log.count, run.log.allowed
    return run.report


@dataclass(slots=True)
class _Run:
    """One run over a graph. In the front phase the model is unchecked, so its errors are not blamed on passes."""

    graph: Graph
    check: Callable[[Graph], object]
    check_each: bool
    observe: Observer | None
    log: RewriteLog
    in_front: bool
    report: RunReport = field(default_factory=RunReport)

    def step(self, item: PassItem) -> None:
        """Run one pass, unless the limit of rewrites is reached."""
        if self.log.is_full and not item.required:
            return
        before, start = self.log.count, time.perf_counter()
        changed = self._run_guarded(item)
        elapsed = (time.perf_counter() - start) * 1e3
        done = PassReport(item.name, elapsed, changed, self.log.count - before, len(self.graph.nodes))
        LOG.info("%s", done)
        self.report.passes.append(done)
        if self.observe is not None:
            self.observe(done, self.graph)

    def _run_guarded(self, item: PassItem) -> bool:
        """Run a pass; errors of the model keep their class, all others become errors of the pass."""
        applied = False
        try:
            ends = interface(self.graph) if item.extension else None
            changed = _apply(item, self.graph, self.log)
            if ends is not None:
                _check_interface(item, ends, self.graph)
            if changed:
                applied = not self.in_front
                if self.check_each or item.extension:
                    self.check(self.graph)
                elif not self.in_front or not _has_foreign(self.graph):
                    infer_types(self.graph)
        except Exception as error:
            ours = isinstance(error, InternalError) or (applied and isinstance(error, ModelError))
            if isinstance(error, AotError) and not ours:
                error.add_note(f"in pass {item.name}")
                raise
            if isinstance(error, MemoryError | RecursionError):
                what = "more memory" if isinstance(error, MemoryError) else "a deeper stack"
                raise BudgetError(f"{item.name}: the pass needs {what} than there is, got {error!r}") from error
            if item.extension:
                where = raised_in(error)
                where_text = f" ({where})" if where else ""
                raise UsageError(f"extension {item.name}: {type(error).__name__}: {error}{where_text}") from error
            raise PassError(f"{item.name}: {error}; {self._history()}") from error
        return changed

    def check_last(self) -> None:
        """Verify the graph after the last pass. Raises PassError, which cannot say which pass has broken it."""
        try:
            self.check(self.graph)
        except (InternalError, ModelError) as error:
            raise PassError(f"graph passes: {error}; --verify finds the pass; {self._history()}") from error

    def _history(self) -> str:
        ran = ", ".join(p.name for p in self.report.passes) or "none"
        return f"last rewrite: {self.log.last or 'none'}; passes before it: {ran}"


def interface(graph: Graph) -> tuple[list[str], list[str]]:
    """Return the names of a network's inputs and outputs, in their order."""
    return [n.name for n in graph.parameters], [n.name for n in graph.results]


def _check_interface(item: PassItem, before: tuple[list[str], list[str]], graph: Graph) -> None:
    """Raise UsageError for an extension that leaves no output, or changes inputs or outputs without declaring it."""
    after = interface(graph)
    if before[1] and not after[1]:
        raise UsageError(f"extension {item.name}: a network must keep one of its outputs, got none of {before[1]}")
    if getattr(item.target, "changes_interface", False):
        return
    for what, old, new in zip(("inputs", "outputs"), before, after, strict=True):
        if old != new:
            rule = f"{what} stay as they are, in their order, unless it has changes_interface = True"
            raise UsageError(f"extension {item.name}: {rule}; got {new} for {old}")


def legal(graph: Graph) -> None:
    """Verify a graph; its types only if no foreign operation is left."""
    verify(graph, types=not _has_foreign(graph))


def _has_foreign(graph: Graph) -> bool:
    return any(isinstance(node.op, Foreign) for node in graph.all_nodes())


def _apply(item: PassItem, graph: Graph, log: RewriteLog) -> bool:
    """Run one pass on a graph and on the bodies in it, but for branches that never run."""
    changed = False
    if all(holds(graph) for holds in item.conditions):
        changed = call_pass(item.target, graph, log, item.name, item.extension)
    if item.recursive:
        bodies = [(n, b) for n in graph.nodes.values() if n.regions for b in n.regions.values()]
        typed = bool(bodies) and not _has_foreign(graph)
        for node, body in bodies:
            if typed and isinstance(node.op, RegionOp):
                node.operands()  # parameters of bodies stand for inputs of the node, which the pass may have replaced
                if any(p.given is None for p in body.parameters):
                    continue  # a branch that never runs has no types: `inline_regions` removes it
            if _apply(item, body, log):
                changed = True
                node.forget_types()  # types depend on the bodies
    return changed


def call_pass(target: Any, graph: Graph, log: RewriteLog, name: str, watches: bool = False) -> bool:
    """Run a pass of any kind; one without rules counts as one rewrite if it changes the graph.

    `watches`: the graph tells whether it has changed, if the pass returns None, as extensions do.
    """
    if isinstance(target, RuleSet):
        return target.rewrite(graph, log)
    before = _snapshot(graph) if watches else {}
    result = _function(target)(graph)
    changed = result is not False
    if result is None and watches:
        changed = _snapshot(graph) != before
    if changed:
        log.add(name, graph.name)
    return changed


def _snapshot(graph: Graph) -> dict[int, object]:
    """Return a value that differs for changed graphs: operations, data, names and sources of nodes, bodies, objects."""
    return {
        id: (
            *(Same(held) for held in (node.op, node.constant_data, node.origin)),
            *(Same(source) for source in node.sources()),
            node.name,
            tuple(port.names for port in node.out_ports().values()),
            {name: _snapshot(body) for name, body in node.regions.items()},
            {name: dict(facts) for name, facts in node.rt_info.items()},
        )
        for id, node in graph.nodes.items()
    }


def _function(target: Any) -> Callable[[Graph], object]:
    instance = target() if isinstance(target, type) else target
    if hasattr(instance, "find_and_replace_pattern"):
        return instance.find_and_replace_pattern
    if not callable(instance):
        raise PassError(f"{target!r} is not a pass: it has neither __call__ nor find_and_replace_pattern")
    return partial(instance)
