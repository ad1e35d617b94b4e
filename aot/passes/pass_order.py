"""The order of passes: a topological sort of the built-in list and the extensions, the same every time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Graph
from aot.runtime.errors import PassError

PHASES = ("front", "middle", "back")
ANCHORS = ("FrontStart", "FrontFinish", "MiddleStart", "MiddleFinish", "BackStart", "BackFinish")


OPTIONAL_PASSES = ("interface_layout",)  # passes that run only with certain options


@dataclass(frozen=True, slots=True)
class PassItem:
    """A pass with the attributes that the runner needs."""

    name: str
    target: Any
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    recursive: bool = True
    required: bool = False
    conditions: tuple[Callable[[Graph], bool], ...] = ()
    extension: bool = False


def sort_passes(passes: Iterable[Any], extensions: Iterable[Any] = ()) -> list[PassItem]:
    """Return anchors, passes and extensions in the order they run.

    `passes` keep the order they are given in; strings among them are anchors. A pass that occurs again is named
    `fold_constants.2`. An extension runs as early as its constraints allow; extensions that could run at the same time
    are sorted by name. Constraints on passes that do not run are ignored; an extension whose constraints are all
    ignored stays within its phase. PassError for a name that no pass has, for two extensions of one name, and for a
    cycle, which the error shows.
    """
    chain = _chain(list(passes))
    items = {item.name: item for item in chain}
    for extension in extensions:
        item = describe(extension, extension=True)
        if item.name in items:
            raise PassError(f"pass {item.name} exists twice: names of passes must be unique")
        items[item.name] = item
    follows: dict[str, set[str]] = {name: set() for name in items}
    for earlier, later in pairwise(chain):
        follows[earlier.name].add(later.name)
    pass_names = _names(items)
    for item in items.values():
        for other in _known(item, "run_before", item.before, pass_names):
            follows[item.name].add(pass_names[other])
        for other in _known(item, "run_after", item.after, pass_names):
            follows[pass_names[other]].add(item.name)
    rank = {item.name: i for i, item in enumerate(chain)}
    return [items[name] for name in _topological(follows, lambda name: (rank.get(name, -1), name))]


def _known(item: PassItem, attribute: str, names: tuple[str, ...], known: Mapping[str, str]) -> list[str]:
    """Return those of the named passes that run, or the phase's anchor if a constraint names no pass that runs."""
    running = [name for name in names if name in known]
    if not item.extension:
        return running
    texts = [p for p in _named_passes(item.target, attribute) or () if isinstance(p, str)]
    for name in texts:
        if name not in known and name not in OPTIONAL_PASSES:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}" if near else ""
            raise PassError(f"pass {item.name}: {attribute} must name passes, got {name}{hint}")
    if names and not running:
        start, finish = _anchors(item.target)
        return [finish if attribute == "run_before" else start] if start in known else []
    return running


def _anchors(target: Any) -> tuple[str, str]:
    """Return the first and the last anchor of a pass's phase."""
    phase = getattr(target, "phase", "middle").capitalize()
    return f"{phase}Start", f"{phase}Finish"


def _chain(passes: list[Any]) -> list[PassItem]:
    """Return the built-in passes with unique names."""
    seen: dict[str, int] = {}
    chain: list[PassItem] = []
    for target in passes:
        item = PassItem(target, None) if isinstance(target, str) else describe(target)
        seen[item.name] = count = seen.get(item.name, 0) + 1
        chain.append(_named(item, f"{item.name}.{count}") if count > 1 else item)
    return chain


def _named(item: PassItem, name: str) -> PassItem:
    return replace(item, name=name, before=(), after=())


def describe(target: Any, extension: bool = False) -> PassItem:
    """Read a pass's attributes; by default an extension runs between the anchors of its phase."""
    phase = getattr(target, "phase", "middle")
    if phase not in PHASES:
        raise PassError(f"{name_of(target)}: phase must be one of {', '.join(PHASES)}, got {phase!r}")
    start, finish = _anchors(target)
    return PassItem(
        name_of(target),
        target,
        _constraint(target, "run_before", (finish,) if extension else ()),
        _constraint(target, "run_after", (start,) if extension else ()),
        not getattr(target, "run_not_recursively", False),
        bool(getattr(target, "required", False)),
        tuple(getattr(target, "graph_condition", ())),
        extension,
    )


def name_of(target: Any) -> str:
    """Return the name of a pass, or of its class."""
    if isinstance(target, str):
        return target
    for attribute in ("name", "__name__"):
        name = getattr(target, attribute, None)
        if isinstance(name, str):
            return name
    return type(target).__name__


def _constraint(target: Any, attribute: str, default: tuple[str, ...]) -> tuple[str, ...]:
    passes = _named_passes(target, attribute)
    return default if passes is None else tuple(name_of(p) for p in passes)


def _named_passes(target: Any, attribute: str) -> tuple[Any, ...] | None:
    """Return the passes that a constraint names; None without one."""
    passes = getattr(target, attribute, None)
    if passes is None:
        return None
    if callable(passes):
        passes = getattr(target() if isinstance(target, type) else target, attribute)()
    return tuple(passes or ())


def _names(items: Mapping[str, PassItem]) -> dict[str, str]:
    """Map names and ids of passes to their names."""
    known = {name: name for name in items}
    for name, item in items.items():
        id = getattr(item.target, "id", None)
        if isinstance(id, str) and known.setdefault(id, name) != name:
            raise PassError(f"passes {known[id]} and {name} have the same id {id!r}")
    return known


def _topological(follows: Mapping[str, set[str]], priority: Callable[[str], tuple[int, str]]) -> list[str]:
    waiting = dict.fromkeys(follows, 0)
    for later in follows.values():
        for name in later:
            waiting[name] += 1
    ready = [priority(name) for name, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        name = heapq.heappop(ready)[1]
        order.append(name)
        for other in sorted(follows[name]):
            waiting[other] -= 1
            if waiting[other] == 0:
                heapq.heappush(ready, priority(other))
    if len(order) < len(follows):
        raise PassError(f"passes cannot be sorted: cycle {' -> '.join(_cycle(follows, set(order)))}")
    return order


def _cycle(follows: Mapping[str, set[str]], sorted_names: set[str]) -> list[str]:
    """Return one cycle among the unsorted passes, its first name repeated at the end."""
    left = {name: later - sorted_names for name, later in follows.items() if name not in sorted_names}
    while dead := {name for name, later in left.items() if not later}:
        left = {name: later - dead for name, later in left.items() if name not in dead}
    path = [min(left)]
    while (following := min(left[path[-1]])) not in path:
        path.append(following)
    return [*path[path.index(following) :], following]
