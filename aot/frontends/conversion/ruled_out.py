"""Rules out branches that cannot run, by the rules of operations about sizes, and by declared ranks of outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aot.frontends.conversion.rank_branches import Branching, BranchValues, Value
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.ir.types import Dim


def rule_out_branches(values: Sequence[tuple[Value, int | None]], branchings: Sequence[Branching]) -> None:
    """Rule out branches by known sizes, then by the ranks that outputs of the network are declared with.

    `values`: each output of the network, and its declared rank if there is one.
    """
    for branching in branchings:
        _learn_sizes(branching)
    for value, rank in values:
        if rank is not None and len(ranks := _ranks(value)) > 1 and rank in ranks:
            _keep(value, rank)


def _learn_sizes(branching: Branching) -> None:
    """Rule out a branch by the rules of operations: those around the If, and those in the branch for other sizes.

    A recurrent state of batch 1, for instance, implies that the batch of its data is 1.
    """
    if branching.size is None:
        return
    around = set(_equal_to(branching.converter.graph, branching.size))
    if 1 in around or 1 in set(_equal_to(branching.branches[1].converter.graph, branching.size)):
        branching.rule_out(1, "a rule says that the size is 1")
    elif around:
        branching.rule_out(0, f"a rule says that the size is {min(around)}")


def _equal_to(graph: Graph, size: Dim) -> Iterator[int]:
    """Yield the numbers that rules of a graph's operations require a size to be."""
    for node in graph.nodes.values():
        if node.regions or any(isinstance(n.op, Foreign) for n in (node, *(p.node for p in node.sources() if p))):
            continue
        operands = [None if p is None else p.node.operands()[p.idx] for p in node.sources()]
        for one, other, _ in node.op.conditions(*operands):
            for a, b in ((one, other), (other, one)):
                if a == size and isinstance(b, int):
                    yield b


def _ranks(value: Value) -> set[int]:
    if isinstance(value, OutPort):
        return {value.type.rank}
    if not isinstance(value, BranchValues):
        return set()
    return set[int]().union(*map(_ranks, value.live))


def _keep(value: Value, rank: int) -> None:
    """Rule out the branches that do not give this rank."""
    if isinstance(value, BranchValues):
        for k, v in enumerate(value.values):
            if value.branching.branches[k].error is None and rank not in _ranks(v):
                value.branching.rule_out(k, f"an output of the network has rank {rank}")
            elif value.branching.branches[k].error is None:
                _keep(v, rank)
