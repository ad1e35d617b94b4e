"""Drawings of graphs: every layer once, none over another, lines from producers down to consumers."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from aot.runtime.errors import MissingError
from aot.tools.report import drawing as module

GRAPHS = {
    "one": ([7], []),
    "chain": ([3, 1, 2], [(3, 1), (1, 2)]),
    "diamond with a long side": ([0, 1, 2, 3, 4], [(0, 1), (1, 2), (0, 3), (3, 4), (4, 2)]),
    "two parts and a lone layer": ([5, 6, 7, 8, 9], [(5, 6), (7, 8)]),
    "ladder": (list(range(40)), [(i, i + k) for i in range(38) for k in (1, 2)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_layers_do_not_overlap_and_lines_go_down(name: str) -> None:
    nodes, edges = GRAPHS[name]
    places, lines = module.placed(nodes, edges)
    assert list(places) == nodes
    at = {(p["x"], p["y"]): n for n, p in places.items()}
    for one, p in places.items():
        for other, q in places.items():
            apart = abs(p["x"] - q["x"]) >= module.WIDTH or abs(p["y"] - q["y"]) >= module.HEIGHT
            assert one == other or apart, (one, other, p, q)
    ends = sorted((at[tuple(line[0])], at[tuple(line[-1])]) for line in lines)
    assert ends == sorted(edges)
    assert all(a[1] < b[1] for line in lines for a, b in pairwise(line))


def test_ten_thousand_layers_are_placed_in_seconds() -> None:
    begin = time.process_time()
    edges = [(i, i + k) for i in range(9990) for k in ((1, 7) if i % 10 == 0 else (1,))]
    places, _ = module.placed(list(range(10000)), edges)
    assert len(places) == 10000 and time.process_time() - begin < 5


def test_a_chain_of_calls_needs_no_graph() -> None:
    found = module.chain([{"layers": ["a", "b"], "kernel": "k0"}, {"layers": [], "kernel": "k1"}])
    assert [(n["name"], n["call"], n["y"]) for n in found["nodes"]] == [("a, b", 0, 0), ("", 1, module.STEP_Y)]
    assert len(found["edges"]) == 1


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match="fast-sugiyama"):
        module.placed([0], [])
