"""Concats that share their first parts are nested: each value is then joined once, where the longest lies."""

from __future__ import annotations

import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.passes.rewrite import RuleSet
from aot.passes.rules import shape
from aot.passes.run import run_passes
from tests.lowering.check import calls, compiled, conv
from tests.passes.check import Make, after, graph_of

RULES = [RuleSet("rules", (*shape.RULES, shape.nest_concats))]


def parts(make: Make, *shapes: tuple[int, ...]) -> list[int]:
    """The number of parts of each Concat that is left; what the graph gives must not change."""
    after(RULES, make, *shapes)
    graph = graph_of(make, *shapes)
    run_passes(graph, RULES)
    return [len(n.in_ports()) for n in graph.order() if n.type == "Concat"]


def test_concats_of_growing_lists_join_one_part_each() -> None:
    def make(b: Builder, x: OutPort, y: OutPort, z: OutPort) -> tuple[OutPort, ...]:
        found = [x, y]
        for _ in range(3):
            found.append(b.Relu(b.Concat(*found, axis=1)))
        return b.Tanh(b.Concat(*found, z, axis=-2)), b.Tanh(b.Concat(*found, axis=1))

    assert parts(make, (2, 3, 4), (2, 1, 4), (2, 5, 4)) == [2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda b, x, y, z: b.Concat(x, y, axis=1), lambda b, x, y, z: b.Concat(x, y, z, axis=2)),
        (lambda b, x, y, z: b.Concat(y, z, axis=1), lambda b, x, y, z: b.Concat(x, y, z, axis=1)),
        (lambda b, x, y, z: b.Concat(y, x, axis=1), lambda b, x, y, z: b.Concat(x, y, z, axis=1)),
        (lambda b, x, y, z: b.Concat(x, y, y, axis=1), lambda b, x, y, z: b.Concat(x, y, z, axis=1)),
    ],
    ids=["another axis", "not the first part", "another order", "a part more"],
)
def test_other_concats_stay_whole(one: Make, other: Make) -> None:
    assert 3 in parts(lambda *given: (one(*given), other(*given)), (2, 3, 3), (2, 3, 3), (2, 3, 3))[-2:]


def test_a_dense_block_copies_no_layer() -> None:
    """Each layer reads all layers before it; convolutions write the parts of one value, and nothing moves them."""

    def block(nested: bool) -> int:
        def make(b: Builder, x: OutPort) -> OutPort:
            found = [b.Relu(x)]
            for n in range(4):
                joined = found[0] if len(found) == 1 else b.Concat(*found, axis=1)
                found = [joined] if nested else found
                found.append(b.Relu(conv(b, joined, 32, 1, seed=n, begin=(0, 0))))
            return b.Tanh(b.Concat(*found, axis=1))

        return calls(compiled(make, (1, 32, 8, 8)))

    assert block(nested=False) == block(nested=True)
