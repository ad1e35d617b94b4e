"""The arena: every intermediate value gets an offset; values that are never alive together share room.

Values are placed from the largest to the smallest, each at the lowest offset that is free for its whole live range.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical
from aot.codegen.ir.index import Affine, atom_bounds, bounds, normal
from aot.codegen.ir.loops import Const, Expr, Size, Var, as_expr, prim
from aot.codegen.ir.program import MemoryRegion
from aot.lowering.ir.steps import LoopControl, Steps
from aot.lowering.ir.symbolic_sizes import Sizes
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

ALIGN = 64
MAX_ARENA_BYTES = 1 << 62  # most bytes of all values together: offsets have 63 bits
MAX_NAMES = 64  # of offsets that are equal; with fewer, libraries have the bytes that they always had
MAX_ESTIMATED_BYTES = 1 << 40  # most bytes of a value whose size is an estimate; more would change no order


@dataclass(frozen=True, slots=True)
class LiveRange:
    """`size` bytes from step `first` to step `last`, both included."""

    name: str
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Byte offsets by value name, and the size of the arena."""

    offsets: dict[str, Size]
    size: Size


def plan(steps: Steps) -> Plan:
    """Assign offsets to all values in the arena; sizes known only at run time make symbolic offsets."""
    ranges = _LiveRanges(steps).ranges
    halves = {n: (v.half, _bytes(steps, n)) for n, v in steps.values.items() if v.half is not None}
    sizes = {n: _bytes(steps, n) for n in ranges}
    for half, size in halves.values():
        sizes[half.pair] = _larger(sizes[half.pair], 2 * size)
    layout = _placed(ranges, sizes, steps.sizes)
    for name, (half, _) in halves.items():
        half_size = sizes[half.pair] // 2
        layout.offsets[name] = layout.offsets[half.pair] + half.index * half_size
    return layout


def _placed(ranges: dict[str, tuple[int, int]], sizes: dict[str, Size], names: Sizes) -> Plan:
    if all(isinstance(s, int) for s in sizes.values()):
        fixed = [LiveRange(n, int(s), *ranges[n]) for n, s in sizes.items() if isinstance(s, int)]
        if (total := sum(x.size for x in fixed)) > MAX_ARENA_BYTES:
            raise UnsupportedError(f"arena: at most {MAX_ARENA_BYTES} bytes, got {total}")
        offsets = place(fixed)
        return Plan(dict(offsets), max((offsets[x.name] + x.size for x in fixed), default=0))
    # An estimate may be negative, as of h - 2 k where nothing is known of both: values of no size lie in each other.
    return _stacked(
        [LiveRange(n, min(max(typical(s), ALIGN), MAX_ESTIMATED_BYTES), *ranges[n]) for n, s in sizes.items()],
        sizes,
        names,
    )


def _larger(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else prim("max", as_expr(a, DType.I64), b)


def _bytes(steps: Steps, name: str) -> Size:
    value = steps.values[name]
    try:
        return aligned(steps.sizes.most(value.elements) * value.buffer.dtype.stored_bytes)
    except UnsupportedError as error:
        error.add_note(f"for the memory of {name!r}")
        raise


def aligned(size: Size) -> Size:
    """Round a size up to cache lines, and add one: vectors at the end may read past it."""
    return (size + (2 * ALIGN - 1)) // ALIGN * ALIGN


def live_ranges(steps: Steps) -> dict[str, tuple[int, int]]:
    """Return the first and the last step that touches each ARENA value."""
    ranges: dict[str, tuple[int, int]] = {}
    for at, step in enumerate(steps.steps):
        names = [b.name for b in step.writes()] + [x.buffer.name for x in step.reads()]
        for name in names:
            if steps.values[name].region is MemoryRegion.ARENA:
                ranges[name] = (ranges.get(name, (at, at))[0], at)
    return ranges


class _LiveRanges:
    """Live ranges over the steps of all blocks, one after another; two halves are one value.

    A value that several blocks touch, a loop among them, lives while the loop runs: each iteration may read it again.
    """

    def __init__(self, steps: Steps) -> None:
        self.values, self.at = steps.values, 0
        self.ranges: dict[str, tuple[int, int]] = {}
        self._block(steps)

    def _block(self, block: Steps) -> None:
        for step in block.steps:
            start = self.at
            for inner in step.blocks():
                self._block(inner)
            looped = isinstance(step.control, LoopControl)
            for name in dict.fromkeys([b.name for b in step.writes()] + [x.buffer.name for x in step.reads()]):
                value = self.values[name]
                if value.region is MemoryRegion.SHARED and looped:
                    self._touch(name if value.half is None else value.half.pair, start)
                elif step.control is None and value.region in (MemoryRegion.ARENA, MemoryRegion.SHARED):
                    self._touch(name if value.half is None else value.half.pair, self.at)
            self.at += 1

    def _touch(self, name: str, first: int) -> None:
        before, _ = self.ranges.get(name, (first, first))
        self.ranges[name] = min(before, first), self.at


def place(ranges: list[LiveRange]) -> dict[str, int]:
    """Assign each value the lowest free offset, the largest value first."""
    begins, ends, firsts, lasts = np.empty((4, len(ranges)), np.int64)  # of the values that have their place
    offsets: dict[str, int] = {}
    for n, live in enumerate(sorted(ranges, key=lambda x: (-x.size, x.first, x.name))):
        together = (firsts[:n] <= live.last) & (lasts[:n] >= live.first)
        order = np.lexsort((ends[:n][together], begins[:n][together]))
        starts, tops = begins[:n][together][order], np.maximum.accumulate(ends[:n][together][order])
        free = np.concatenate([np.zeros(1, np.int64), tops])  # above the first values, 0 of them, 1 of them, ...
        fits = np.flatnonzero(free[:-1] + live.size <= starts)
        offset = int(free[fits[0] if len(fits) else -1])
        offsets[live.name] = offset
        begins[n], ends[n], firsts[n], lasts[n] = offset, offset + live.size, live.first, live.last
    return offsets


class _Timeline:
    """Live ranges by the steps they cover, as an interval tree: each node halves the steps."""

    def __init__(self, steps: int) -> None:
        self.leaves = 1 << max(steps - 1, 1).bit_length()
        self.whole: dict[int, list[LiveRange]] = {}  # live ranges that cover all steps of a node, not all of its parent
        self.inside: dict[int, list[LiveRange]] = {}  # live ranges that touch some step of a node

    def add(self, live: LiveRange) -> None:
        for node, covered in self._nodes(live.first, live.last):
            self.inside.setdefault(node, []).append(live)
            if covered:
                self.whole.setdefault(node, []).append(live)

    def alive(self, first: int, last: int) -> list[LiveRange]:
        """Return the values that are alive in one of the steps from `first` to `last`."""
        live: dict[int, LiveRange] = {}
        for node, covered in self._nodes(first, last):
            live |= {id(x): x for x in (self.inside if covered else self.whole).get(node, ())}
        return list(live.values())

    def _nodes(self, first: int, last: int) -> Iterator[tuple[int, bool]]:
        """Yield the nodes that share steps with a range, and True for those that lie inside it."""
        stack = [(1, 0, self.leaves)]
        while stack:
            node, begin, end = stack.pop()
            covered = first <= begin and end - 1 <= last
            yield node, covered
            if not covered:
                half = (begin + end) // 2
                if first < half:
                    stack.append((2 * node, begin, half))
                if last >= half:
                    stack.append((2 * node + 1, half, end))


def _stacked(ranges: list[LiveRange], sizes: dict[str, Size], names: Sizes) -> Plan:
    """Assign offsets as sizes computed at run time.

    Estimated sizes place the values; only their order, which lies above which, is kept. Each then starts where the
    highest of those below it ends, whatever the sizes are. Of thousands of equal layers, offsets share names.
    """
    guess = place(ranges)
    ordered = sorted(ranges, key=lambda x: (guess[x.name], x.first, x.name))
    place_of = {x.name: n for n, x in enumerate(ordered)}
    offsets: dict[str, Size] = {}
    known: dict[Expr, list[Var]] = {}
    ends: dict[str, Expr] = {}
    below: dict[str, set[str]] = {}  # values that lie below one, and are alive together with it
    placed = _Timeline(max((x.last for x in ranges), default=0) + 1)
    for live in ordered:
        lower = {x.name for x in placed.alive(live.first, live.last)}
        hidden = set[str]().union(*(below[name] for name in lower))  # another value of `lower` lies above each
        at = _highest([ends[name] for name in sorted(lower - hidden, key=place_of.__getitem__)])
        if not isinstance(at, Const) and len(known.setdefault(at, [])) < MAX_NAMES:
            known[at].append(names.add(at, "at"))
        offsets[live.name] = int(at.value) if isinstance(at, Const) else known[at][-1]
        ends[live.name] = normal(sizes[live.name] + as_expr(offsets[live.name], DType.I64), {}).expr()
        below[live.name] = lower
        placed.add(live)
    covered = set[str]().union(*below.values())
    return Plan(offsets, _highest([end for name, end in ends.items() if name not in covered]))


def _highest(ends: list[Expr]) -> Expr:
    """Return the maximum as an expression, without the values that by their ranges cannot be the greatest."""
    candidates: dict[int, Affine] = {}
    alike: dict[frozenset[Expr], dict[int, Affine]] = {}  # candidates by their atoms without an upper bound
    for n, end in enumerate(normal(e, {}) for e in ends):
        atoms = frozenset(atom for atom, c in end.terms.items() if c > 0 and atom_bounds(atom)[1] == inf)
        larger = (other for their_atoms, same in alike.items() if atoms <= their_atoms for other in same.values())
        if any(bounds(other.plus(end, -1))[0] >= 0 for other in larger):
            continue
        smaller = [
            (same, m, other) for their_atoms, same in alike.items() if their_atoms <= atoms for m, other in same.items()
        ]
        for same, m, other in smaller:
            if bounds(end.plus(other, -1))[0] >= 0:
                del same[m], candidates[m]
        candidates[n] = alike.setdefault(atoms, {})[n] = end
    return _balanced([end.expr() for end in candidates.values()]) if candidates else Const(0)


def _balanced(values: list[Expr]) -> Expr:
    """Return the maximum as a tree of pairs.

    A network has thousands of values, and expressions are walked by recursion.
    """
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [prim("max", a, b) for a, b in pairs] + values[len(values) & ~1 :]
    return values[0]
