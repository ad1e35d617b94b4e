"""Loops of TensorFlow 1: Enter, Merge, LoopCond, Switch, NextIteration and Exit become While.

    x -> Enter -> Merge -> Switch -0-> Exit -> y                y = While(x)    cond: the input of LoopCond
                   ^          \\-1-> body -> NextIteration                      body: the input of NextIteration
                   \\------------------------/

A frame holds the items that one loop executes; frames nest. Inner loops are rewritten first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aot.frontends.tf.graph.nets import ARGUMENT, Item, Net, Output
from aot.frontends.tf.graph.switches import MERGES, SWITCHES, without_switches
from aot.ir.topological import producers_first
from aot.runtime.errors import CorruptError, ModelError

ENTERS, EXITS, NEXTS = ("Enter", "RefEnter"), ("Exit", "RefExit"), ("NextIteration", "RefNextIteration")
FLOW = frozenset((*ENTERS, *EXITS, *NEXTS, *MERGES, *SWITCHES, "LoopCond"))
MAX_FRAMES = 16  # loops within loops
Frame = tuple[str, ...]


def functional(net: Net, file: str) -> None:
    """Rewrite control flow of TensorFlow 1 in a net, in place. CorruptError for broken loops and branches."""
    items = _needed(net)
    if not any(item.kind in FLOW for item in items):
        return
    try:
        if any(item.kind in ENTERS for item in items):
            _without_frames(net, items, file)
        without_switches(net, _needed(net), file)
    except ModelError as error:
        raise CorruptError(f"{file}: {net.name!r}: {error}") from error


def _needed(net: Net) -> list[Item]:
    """Return the items that results and kept items need, back edges of loops included."""
    items: dict[Item, None] = {}
    stack = [*net.kept, *(item for item, _ in net.results)]
    while stack:
        item = stack.pop()
        if item not in items:
            items[item] = None
            stack += item.above()
    return list(items)


def _without_frames(net: Net, items: Sequence[Item], file: str) -> None:
    frames = _frames(items, file)
    members: dict[Frame, list[Item]] = {}
    for item, frame in frames.items():
        members.setdefault(frame, []).append(item)
    for frame in sorted((f for f in members if f), key=lambda f: (-len(f), f)):
        loop, exits = _loop(frame, members[frame], file)
        members.setdefault(frame[:-1], []).append(loop)
        _redirect(net, [*items, *(i for inner in members.values() for i in inner)], exits, loop)


def _frames(items: Iterable[Item], file: str) -> dict[Item, Frame]:
    """Return the frame of each item: its inputs' frame, one more after Enter, one less after Exit."""
    frames: dict[Item, Frame] = {}
    for item in producers_first(items, _forward, lambda i: i.name):
        inside = max((_after(i, frames[i], file) for i in _forward(item)), key=len, default=())
        if item.kind in ENTERS:
            inside = (*inside, item.text("frame_name"))
        if len(inside) > MAX_FRAMES:
            raise CorruptError(f"{file}: there can be at most {MAX_FRAMES} loops within loops, got more")
        frames[item] = inside
    return frames


def _forward(item: Item) -> Iterable[Item]:
    """Return the items before an item, without the back edges of loops."""
    return (i for i in item.above() if not (item.kind in MERGES and i.kind in NEXTS))


def _after(item: Item, frame: Frame, file: str) -> Frame:
    if item.kind not in EXITS:
        return frame
    if not frame:
        raise CorruptError(f"{file}: Exit must leave a loop, got {item.name!r} outside of loops")
    return frame[:-1]


def _loop(frame: Frame, members: Sequence[Item], file: str) -> tuple[Item, dict[Item, int]]:
    """Return the While of a frame, and its outputs by the Exits that they replace."""
    merges = [i for i in members if i.kind in MERGES and any(s.kind in NEXTS for s, _ in i.inputs)]
    conditions = [i for i in members if i.kind == "LoopCond"]
    what = f"{file}: loop {frame[-1]!r}"
    if len(conditions) != 1 or not conditions[0].inputs:
        raise CorruptError(f"{what}: it must have one LoopCond, got {len(conditions)}")
    starts = [_start(m, what) for m in merges]
    constants = [i for i in members if i.kind in ENTERS and i not in starts]
    arguments = [Item(f"{i.name}/value", ARGUMENT) for i in (*merges, *constants)]
    inside: dict[Output, Output] = {(i, 0): (a, 0) for i, a in zip((*merges, *constants), arguments, strict=True)}
    carried = dict(zip(merges, arguments, strict=False))
    exits: dict[Item, int] = {}
    for item in members:
        if item.kind in SWITCHES and item.inputs and item.inputs[0][0] in carried and _decides(item, conditions[0]):
            merge = item.inputs[0][0]
            inside[item, 1] = (carried[merge], 0)
            exits |= {e: merges.index(merge) for e in members if e.kind in EXITS and e.inputs[:1] == [(item, 0)]}
    nexts = [_next(m, what) for m in merges]
    removed = {*merges, *starts, *constants, *conditions, *exits, *(i for i, _ in inside)}
    _replace(members, inside, removed)
    test, results = _through(conditions[0].inputs[0], inside), [_through(o, inside) for o in nexts]
    results += [(a, 0) for a in arguments[len(merges) :]]
    name = frame[-1]
    nets = {
        "cond": Net(f"{name}/cond", {}, arguments, [test], []),
        "body": Net(f"{name}/body", {}, arguments, results, []),
    }
    entered = [*starts, *constants]
    if not all(i.inputs for i in entered):
        raise CorruptError(f"{what}: Enter must have an input, got none")
    controls = list(dict.fromkeys(c for i in entered for c in i.controls))
    return Item(name, "While", inputs=[i.inputs[0] for i in entered], controls=controls, nets=nets), exits


def _start(merge: Item, what: str) -> Item:
    items = [s for s, _ in merge.inputs if s.kind in ENTERS and s.inputs]
    if len(items) != 1 or len(merge.inputs) != 2:
        raise CorruptError(f"{what}: Merge must join an Enter and a NextIteration, got others in {merge.name!r}")
    return items[0]


def _next(merge: Item, what: str) -> Output:
    item = next(s for s, _ in merge.inputs if s.kind in NEXTS)
    if len(item.inputs) != 1:
        raise CorruptError(f"{what}: NextIteration must have one input, got {len(item.inputs)} in {item.name!r}")
    return item.inputs[0]


def _decides(switch: Item, condition: Item) -> bool:
    return len(switch.inputs) == 2 and switch.inputs[1][0] is condition


def _through(output: Output, inside: Mapping[Output, Output]) -> Output:
    return inside.get(output, output)


def _replace(members: Iterable[Item], inside: Mapping[Output, Output], removed: set[Item]) -> None:
    """Connect the items of a frame to arguments, and drop their control edges from the loop's own nodes."""
    for item in members:
        if item not in removed:
            item.inputs = [_through(o, inside) for o in item.inputs]
            item.controls = [c for c in item.controls if c not in removed]


def _redirect(net: Net, items: Iterable[Item], exits: Mapping[Item, int], loop: Item) -> None:
    """Let readers of Exits read the loop."""
    for item in dict.fromkeys(items):
        item.inputs = [(loop, exits[i]) if i in exits else (i, at) for i, at in item.inputs]
        item.controls = list(dict.fromkeys(loop if c in exits else c for c in item.controls))
    net.results = [(loop, exits[i]) if i in exits else (i, at) for i, at in net.results]
    net.kept = list(dict.fromkeys(loop if i in exits else i for i in net.kept))
