"""Trials as one network: it is compiled once."""

from __future__ import annotations

from collections.abc import Sequence

from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from tests.properties.drawing import Trial


def network(trials: Sequence[Trial]) -> tuple[Graph, list[Array]]:
    """A graph with inputs and results of its own for each trial; and what to feed."""
    graph, fed = Graph("trials"), list[Array]()
    for at, trial in enumerate(trials):
        ports: list[OutPort | None] = []
        for k, array in enumerate(trial.arrays):
            if array is None:
                ports.append(None)
                continue
            dtype = dtype_of(array)
            if k in trial.fixed:
                node = graph.add(Constant(element_type=dtype), name=f"c{at}_{k}", data=array)
            else:
                shape = trial.shape(k, f"t{at}n")
                node = graph.add(Parameter(element_type=dtype, shape=shape), name=f"x{at}_{k}")
                fed.append(array)
            ports.append(node.out_port(0))
        count = len(trial.op.outputs(*trial.operands(f"t{at}n")))
        made = graph.add(trial.op, *ports, name=f"trial{at}", outputs=count)
        for out in made.out_ports().values():
            graph.add(Result(), out)
    return graph, fed


def wrong(trials: Sequence[Trial], found: Sequence[Array]) -> list[str]:
    """List the differences from the references, a line for each."""
    results, lines = iter(found), list[str]()
    for trial in trials:
        for n, expected in enumerate(trial.expected()):
            array = next(results)
            if array.dtype != expected.dtype and array.dtype.itemsize == expected.dtype.itemsize:
                array = array.view(expected.dtype)  # bf16 travels as bits
            if array.dtype != expected.dtype or array.shape != expected.shape:
                lines.append(f"{trial}: output {n} is {array.dtype}{array.shape}, not {expected.dtype}{expected.shape}")
            elif not trial.tolerance.allows(array, expected):
                lines.append(f"{trial}: output {n} is {array.tolist()}, not {expected.tolist()}"[:600])
    return lines
