"""Metamorphic pairs: a graph and a larger one that computes the same; both are compiled and must agree.

Where only data movement was added to a graph of exact operations, they must agree to the bit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.runtime.errors import AotError, InternalError
from tests.fuzz.case import Case
from tests.fuzz.cutting import cut
from tests.fuzz.graphs.equal import COMPUTING, MOVING
from tests.fuzz.graphs.growing import Growing
from tests.fuzz.graphs.ir import ir_of, random_graph
from tests.fuzz.ir_writer import written
from tests.fuzz.judging.bounds import Expected, expectations
from tests.fuzz.judging.comparing import FED, compare, compiled, other_sizes, read, unpacked
from tests.fuzz.reduce import fewest
from tests.fuzz.server import REFERENCE, STAGE, Outcome
from tests.networks import NETWORKS
from tests.properties.drawing import random_draw

# what these compute does not depend on the order of anything
EXACT = frozenset(
    (
        "Parameter",
        "Constant",
        "Result",
        "Relu",
        "Abs",
        "Negative",
        "Floor",
        "Ceiling",
        "Sign",
        "Maximum",
        "Minimum",
        "Equal",
        "NotEqual",
        "Less",
        "LessEqual",
        "Greater",
        "GreaterEqual",
        "Select",
        "LogicalNot",
        "LogicalAnd",
        "LogicalOr",
        "LogicalXor",
        "Reshape",
        "Transpose",
        "Unsqueeze",
        "Squeeze",
        "Concat",
        "Split",
        "VariadicSplit",
        "Slice",
        "StridedSlice",
        "Gather",
        "Tile",
        "Broadcast",
        "Pad",
        "ReduceMax",
        "ReduceMin",
        "MaxPool",
        "Clamp",
        "ShapeOf",
        "Convert",
        "TopK",
        "Round",
    )
)


def grown(graph: Graph, seeds: Sequence[int]) -> bool:
    """Grow the graph, once for each seed; True if only data movement was added."""
    moving = True
    for seed in seeds:
        d = random_draw(seed)
        ports = [p for n in graph.order() for p in n.out_ports().values() if n.type != "Result" and p.destinations]
        if not ports:
            continue
        port, moves = d.pick(ports), d.flag()
        readers = port.get_destinations()
        before = set(graph.nodes)
        made = d.pick(MOVING if moves else COMPUTING)(Builder(graph), port, d)
        if made is None:
            continue
        moving = moving and moves
        for reader in readers:
            if reader.node.id in before and (d.integer(0, 2) or reader is readers[0]):
                reader.connect(made)
    return moving


def exact(graph: Graph) -> bool:
    return all(n.type in EXACT for n in graph.nodes.values())


class Pairs:
    """Metamorphic pairs."""

    name = "pairs"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        if d.integer(0, 7):
            case = ir_of(random_graph(d, d.flag(), d.pick([1, 2, 4, 8])))
        else:
            graph = NETWORKS[d.pick(sorted(NETWORKS))]()
            shapes = [n.out_port(0).type.static_shape for n in graph.parameters]
            fed = [d.generator().standard_normal(s).astype(np.float32) for s in shapes]
            case = ir_of(Growing(d, graph, fed=fed))
        return Case(case.files, {"growth": list(d.ints(d.pick([1, 2, 4, 8]), 0, 1 << 30))})

    def judge(self, case: Case) -> Outcome:
        with tempfile.TemporaryDirectory() as name:
            case.write(Path(name))
            return self._judge(case, Path(name))

    def _judge(self, case: Case, folder: Path) -> Outcome:
        STAGE.enter("grow")
        growth = case.facts["growth"]
        assert isinstance(growth, list)
        graph, larger = read(folder / "model.xml"), read(folder / "model.xml")
        same = grown(larger, growth) and exact(graph)
        xml, weights = written(larger)
        (folder / "grown.xml").write_text(xml)
        (folder / "grown.bin").write_bytes(weights)
        inputs = unpacked(case.files[FED], graph)
        model, second = (compiled(folder / f"{n}.xml") for n in ("model", "grown"))
        if isinstance(model, Outcome):
            return model
        if isinstance(second, Outcome):
            return second
        rounds = [inputs, other_sizes(graph, inputs)]
        for k, given in enumerate(rounds):
            if given is None or (k and graph.sinks):
                continue
            try:
                bounds = _bounds(folder, given)
            except AotError:
                continue
            STAGE.enter("infer")
            try:
                result = model(list(given))
            except InternalError:
                raise
            except AotError:  # judged by the fuzzer of graphs
                continue
            values = [np.asarray(result[n]).copy() for n in range(len(bounds))]
            expected = [Expected(_like(v, b.value), b.allowed) for v, b in zip(values, bounds, strict=True)]
            found = compare(second, given, expected, exact=same)
            if found.finding:
                text = f"{'other sizes: ' if k else ''}{'exact: ' if same else ''}{found.text}"
                return Outcome(found.kind, text, f"{found.place} of the grown graph", found.code)
        return Outcome("fine")

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """The fewest steps of growth, and the graph cut down to what these need; the rest is written out."""
        growth = case.facts["growth"]
        assert isinstance(growth, list)
        left = fewest(growth, lambda kept: holds(Case(case.files, {"growth": list(kept)})))
        return cut(Case(case.files, {"growth": left}), holds)


def _like(found: Array, value: Array) -> Array:
    return found if found.dtype == value.dtype else found.view(value.dtype)


def _bounds(folder: Path, inputs: Sequence[Array]) -> list[Expected]:
    """Return the expected values with the sum of both networks' allowed differences."""
    STAGE.enter(REFERENCE)
    both = [expectations(read(folder / f"{n}.xml"), inputs) for n in ("model", "grown")]
    return [Expected(a.value, a.allowed + b.allowed) for a, b in zip(*both, strict=True)]
