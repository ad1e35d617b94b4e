"""Conditions of TensorFlow 1: Switch and Merge become If.

    s = Switch(x, p); y = Merge(f(s:0), g(s:1))     ->     y = If(p, x): then g(x), else f(x)

The state of an item says which conditions must hold for it to run. Merges of one condition in one state become one If;
inner conditions are rewritten first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.frontends.tf.graph.nets import ARGUMENT, Item, Net, Output
from aot.ir.topological import producers_first
from aot.runtime.errors import CorruptError, UnsupportedError

MERGES, SWITCHES = ("Merge", "RefMerge"), ("Switch", "RefSwitch")
State = Mapping[Output, int]  # conditions, and which of the outputs of their Switches


@dataclass(slots=True)
class _Fork:
    """Merges that become one If: each with the number of its input for true."""

    condition: Output
    merges: list[tuple[Item, int]] = field(default_factory=list[tuple[Item, int]])

    def side(self, branch: int) -> list[Output]:
        """Return the inputs of the Merges for one branch: 0 for false, 1 for true."""
        return [merge.inputs[at if branch else 1 - at] for merge, at in self.merges]


def without_switches(net: Net, items: Sequence[Item], file: str) -> None:
    """Rewrite the conditions among the items of a net in place. CorruptError for Merges that join no two branches."""
    if not any(item.kind in MERGES for item in items):
        return
    states = _States(file)
    forks = states.forks(producers_first(items, Item.above, lambda i: i.name))
    for number, fork in enumerate(forks):
        conditional = _if(fork, states, f"{fork.merges[0][0].name}/{number}")
        _redirect(net, states.known, {m: k for k, (m, _) in enumerate(fork.merges)}, conditional)


def condition_of(switch: Item) -> Output:
    """Return the condition of a Switch, before nodes that hand it on."""
    condition = switch.inputs[1]
    while condition[0].kind == "Identity" and condition[0].inputs:
        condition = condition[0].inputs[0]
    return condition


class _States:
    def __init__(self, file: str) -> None:
        self.file = file
        self.known: dict[Item, State] = {}
        self.conditions: dict[Item, Output] = {}  # of Switches, as they were before any was rewritten
        self.deciders: dict[Output, Item] = {}  # a Switch of each condition
        self.levels: dict[Item, dict[Output, int]] = {}  # Merges of a condition that are above an item, in a row

    def forks(self, items: Iterable[Item]) -> list[_Fork]:
        """Return the Ifs, inner ones first; walks the items, producers first."""
        forks: dict[tuple[int, int, Output, frozenset[tuple[Output, int]]], _Fork] = {}
        for item in items:
            levels: dict[Output, int] = {}
            for above in item.above():
                for condition, level in self.levels[above].items():
                    levels[condition] = max(level, levels.get(condition, 0))
            if item.kind in MERGES:
                condition, state, at = self._merge(item)
                level = levels[condition] = levels.get(condition, 0) + 1
                key = (-len(state), level, condition, frozenset(state.items()))
                forks.setdefault(key, _Fork(condition)).merges.append((item, at))
                self.known[item] = state
            else:
                self.known[item] = self._joined(item, [*map(self.after, item.inputs), *map(self._known, item.controls)])
            self.levels[item] = levels
        return [forks[key] for key in sorted(forks, key=lambda k: k[:2])]

    def _known(self, item: Item) -> State:
        return self.known[item]

    def after(self, output: Output) -> State:
        """Return the conditions under which an output exists."""
        item, at = output
        if item.kind not in SWITCHES:
            return self.known[item]
        if len(item.inputs) != 2:
            raise CorruptError(f"{self.file}: Switch must have two inputs, got {len(item.inputs)} in {item.name!r}")
        condition = self.conditions[item] = self.conditions.get(item) or condition_of(item)
        self.deciders.setdefault(condition, item)
        return {**self.known[item], condition: at}

    def _joined(self, item: Item, states: Iterable[State]) -> State:
        results: dict[Output, int] = {}
        for state in states:
            for condition, branch in state.items():
                if results.setdefault(condition, branch) != branch:
                    raise CorruptError(f"{self.file}: {item.name!r} needs a condition to hold, and not to hold")
        return results

    def _merge(self, item: Item) -> tuple[Output, State, int]:
        """Return the condition that a Merge joins, its own state, and the number of its input for true."""
        if len(item.inputs) != 2:
            raise UnsupportedError(f"Merge: there must be two inputs, got {len(item.inputs)} in {item.name!r}")
        one, other = (self.after(o) for o in item.inputs)
        joined = [c for c in one if c in other and one[c] != other[c]]
        if len(joined) != 1:
            raise CorruptError(
                f"{self.file}: Merge must join the branches of one condition, got others in {item.name!r}"
            )
        condition = joined[0]
        state = {c: b for c, b in one.items() if c in other and c != condition}
        return condition, state, 1 if one[condition] == 0 else 0


def _if(fork: _Fork, states: _States, name: str) -> Item:
    """Return the If of Merges; the items of its branches read arguments from now on."""
    condition = fork.condition
    arguments: dict[Output, Item] = {}
    results = [[_entered(o, condition, states, arguments) for o in fork.side(branch)] for branch in (0, 1)]
    for side in results:
        _enter_branch(side, condition, states, arguments)
    items = list(arguments.values())
    nets = {
        label: Net(f"{name}/{label}", {}, items, values, [])
        for label, values in zip(("else_branch", "then_branch"), results, strict=True)
    }
    item = Item(name, "If", inputs=[condition_of(states.deciders[condition]), *arguments], nets=nets)
    item.controls = list(dict.fromkeys(c for m, _ in fork.merges for c in m.controls))
    states.known[item] = states.known[fork.merges[0][0]]
    return item


def _entered(output: Output, condition: Output, states: _States, arguments: dict[Output, Item]) -> Output:
    """Return an output as a branch reads it: an argument for an output from outside."""
    item, _ = output
    if states.conditions.get(item) == condition:
        output = item.inputs[0]
    elif (item.kind == ARGUMENT and item in arguments.values()) or condition in states.known[item]:
        return output
    if output not in arguments:
        arguments[output] = argument = Item(f"{output[0].name}/inside", ARGUMENT)
        states.known[argument] = {condition: 0}
    return arguments[output], 0


def _enter_branch(results: Iterable[Output], condition: Output, states: _States, arguments: dict[Output, Item]) -> None:
    """Connect all items of a branch to arguments for outputs from outside, and drop control edges from outside."""
    stack = [item for item, _ in results if condition in states.known[item]]
    done: set[Item] = set()
    while stack:
        item = stack.pop()
        if item in done or item.kind == ARGUMENT:
            continue
        done.add(item)
        item.inputs = [_entered(o, condition, states, arguments) for o in item.inputs]
        item.controls = [c for c in item.controls if condition in states.known[c]]
        stack += [i for i, _ in item.inputs if condition in states.known[i]]
        stack += item.controls


def _redirect(net: Net, items: Iterable[Item], merges: Mapping[Item, int], conditional: Item) -> None:
    """Let readers of Merges read the If."""

    def through(output: Output) -> Output:
        item, at = output
        if item in merges and at:
            raise UnsupportedError(f"Merge: its second output is not supported, got {item.name!r}")
        return (conditional, merges[item]) if item in merges else output

    for item in items:
        if item is not conditional:
            item.inputs = [through(o) for o in item.inputs]
            item.controls = list(dict.fromkeys(conditional if c in merges else c for c in item.controls))
    net.results = [through(o) for o in net.results]
    net.kept = list(dict.fromkeys(conditional if i in merges else i for i in net.kept))
