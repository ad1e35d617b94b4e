"""Components: two steps become one component exactly where no path leads from one to the other through a third."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import cast

import pytest

from aot.lowering.ir.components import Components
from aot.lowering.ir.dependencies import Producers
from aot.lowering.ir.steps import Step


class Above:
    """Stands for `Producers`: the producers of each step are given."""

    def __init__(self, above: dict[int, list[Step]]) -> None:
        self.above_of = above

    def producers(self, step: Step) -> list[Step]:
        return self.above_of[id(step)]


def made(edges: dict[int, list[int]]) -> tuple[list[Step], Components]:
    steps = [Step((), (str(n),), "x") for n in range(len(edges))]
    above = {id(steps[n]): [steps[m] for m in needed] for n, needed in edges.items()}
    return steps, Components(steps, cast("Producers", Above(above)))


def detour(inside: set[int], edges: dict[int, list[int]], clusters: Iterable[set[int]]) -> bool:
    """Search all paths that leave `inside` upwards: does one come back? Steps of a cluster count as one."""
    whole = {n: c for c in clusters for n in c}
    stack, seen = [m for n in inside for m in edges[n] if m not in inside], set[int]()
    while stack:
        at = stack.pop()
        if at in inside:
            return True
        if at not in seen:
            seen.add(at)
            stack += [m for n in whole.get(at, {at}) for m in edges[n]]
    return False


@pytest.mark.parametrize("seed", range(20))
def test_a_merge_is_refused_exactly_where_a_path_leads_around(seed: int) -> None:
    noise = random.Random(seed)
    count = 40
    edges = {n: sorted(noise.sample(range(n), min(n, noise.randint(0, 3)))) for n in range(count)}
    steps, components = made(edges)
    clusters: list[set[int]] = [{n} for n in range(count)]
    for _ in range(200):
        a, b = noise.sample(clusters, 2)
        one, other = min(a), min(b)
        refused = detour(a | b, edges, [c for c in clusters if c is not a and c is not b])
        assert (components.between(steps[one], steps[other]) is None) == refused
        if not refused:
            components.merge(steps[one], steps[other])
            clusters = [c for c in clusters if c is not a and c is not b] + [a | b]
        if len(clusters) < 3:
            break


def test_ranks_are_spread_when_none_is_left_between_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aot.lowering.ir.components.GAP", 1)
    edges = {0: [], 1: [], 2: [1], 3: [0, 2], 4: [3, 2]}
    steps, components = made(edges)
    components.merge(steps[0], steps[3])  # 1 and 2 move below both
    assert components.between(steps[1], steps[3]) is None
    assert components.between(steps[2], steps[3]) == []
