"""Random graphs of the opset, as IR: against the references and OpenVINO."""

from __future__ import annotations

from collections.abc import Callable

from aot.ir.graph import Graph
from aot.runtime.abi import DType
from tests.fuzz.case import Case
from tests.fuzz.cutting import cut
from tests.fuzz.graphs.growing import Growing, grow
from tests.fuzz.graphs.steps import STEPS
from tests.fuzz.ir_writer import written
from tests.fuzz.judging.comparing import FED, judge_graph, packed
from tests.fuzz.server import Outcome
from tests.properties.drawing import Draw, random_draw

PARAMETERS = (
    DType.F32,
    DType.F32,
    DType.F32,
    DType.F32,
    DType.F16,
    DType.F64,
    DType.I32,
    DType.I64,
    DType.U8,
    DType.BOOL,
)


def random_graph(d: Draw, varying: bool, steps: int) -> Growing:
    """A graph with results; `fed` are inputs for it."""
    made = Growing(d, Graph("random"), varying)
    shape = d.shape((2, 4), (1, 7))
    for _ in range(d.integer(1, 3)):
        used = shape if d.flag() else d.shape((1, 4), (1, 7))
        made.parameter(d.array(d.pick(PARAMETERS), used))
    grow(made, steps, STEPS)
    made.finish()
    return made


def ir_of(made: Growing) -> Case:
    """The case of a graph: its files and its inputs."""
    xml, weights = written(made.graph)
    return Case({"model.xml": xml.encode(), "model.bin": weights, FED: packed(made.fed)})


class Graphs:
    """Random graphs as IR, against the references and OpenVINO."""

    name = "graphs"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        return ir_of(random_graph(d, d.flag(), d.pick([1, 2, 4, 8, 12])))

    def judge(self, case: Case) -> Outcome:
        return judge_graph(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        return cut(case, holds)
