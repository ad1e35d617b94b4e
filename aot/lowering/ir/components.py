"""Growing components of steps, and the test that joining two of them makes no cycle.

Each step belongs to one component. Components have ranks, and each depends only on components of lower rank. The test
visits only components whose ranks lie between the two, and a merge moves only these.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from aot.lowering.ir.dependencies import Producers, ordered
from aot.lowering.ir.steps import Step

# Difference between neighbouring ranks at first. A moved component takes a rank in between, until none is left.
GAP = 1 << 32


class Components:
    """Union-find over the steps of a block: each step begins as its own component."""

    def __init__(self, steps: list[Step], producers: Producers) -> None:
        self.producers = producers
        above = {id(s): producers.producers(s) for s in steps}
        in_order = ordered(steps, lambda s: above[id(s)])
        self._of = {id(s): n for n, s in enumerate(in_order)}
        self._members = [[s] for s in in_order]
        self._needs = [{self._of[id(m)] for m in above[id(s)]} for s in in_order]
        self._rank = [n * GAP for n in range(len(in_order))]
        self._ranks = list(self._rank)  # of the components that are left, sorted
        self._heir = list(range(len(in_order)))  # component that each one was merged into, or itself

    def renew(self, step: Step) -> None:
        """Recompute the dependencies of a step with changed works."""
        n = self._of[id(step)]
        self._needs[n] = {self._of[id(m)] for s in self._members[n] for m in self.producers.producers(s)}

    def between(self, one: Step, other: Step) -> list[int] | None:
        """Return the components between two steps that the later one depends on, in order.

        None if one of them depends on the earlier step: joining the two would make a cycle.
        """
        low, high = self._by_rank(one, other)
        reached: set[int] = set()
        stack = [n for n in self._needed(high) if n != low]
        while stack:
            n = stack.pop()
            if n in reached or self._rank[n] < self._rank[low]:
                continue
            needed = self._needed(n)
            if low in needed:
                return None
            reached.add(n)
            stack += needed
        return sorted(reached, key=lambda n: self._rank[n])

    def merge(self, one: Step, other: Step) -> None:
        """Merge two components; `between` must not be None for them."""
        low, high = self._by_rank(one, other)
        self._move_below(self.between(one, other) or [], low)
        del self._ranks[bisect_left(self._ranks, self._rank[high])]
        for s in self._members[high]:
            self._of[id(s)] = low
        self._members[low] += self._members[high]
        self._needs[low] |= self._needs[high]
        self._heir[high] = low

    def _by_rank(self, one: Step, other: Step) -> tuple[int, int]:
        a, b = self._of[id(one)], self._of[id(other)]
        return (a, b) if self._rank[a] < self._rank[b] else (b, a)

    def _needed(self, n: int) -> set[int]:
        """Return the other components that a component depends on."""
        self._needs[n] = {self._alive(m) for m in self._needs[n]} - {n}
        return self._needs[n]

    def _alive(self, n: int) -> int:
        while self._heir[n] != n:
            self._heir[n] = n = self._heir[self._heir[n]]
        return n

    def _move_below(self, components: list[int], at: int) -> None:
        """Give components consecutive ranks right below the rank of component `at`."""
        for n in components:
            del self._ranks[bisect_left(self._ranks, self._rank[n])]
        lower_rank = self._rank_below(at)
        if self._rank[at] - lower_rank <= len(components):
            self._spread()
            lower_rank = self._rank_below(at)
        step = (self._rank[at] - lower_rank) // (len(components) + 1)
        for k, n in enumerate(components, 1):
            self._rank[n] = lower_rank + k * step
            insort(self._ranks, self._rank[n])

    def _rank_below(self, n: int) -> int:
        position = bisect_left(self._ranks, self._rank[n])
        return self._ranks[position - 1] if position else self._rank[n] - GAP

    def _spread(self) -> None:
        """Assign ranks anew, `GAP` apart and in the same order."""
        new = {rank: n * GAP for n, rank in enumerate(self._ranks)}
        self._rank = [new.get(rank, rank) for rank in self._rank]
        self._ranks = list(new.values())
