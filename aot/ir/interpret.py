"""Runs a graph with the NumPy references of its operations: the oracle of all tests, slow and plain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import Foreign, RegionOp, Stateful
from aot.ir.types import Array
from aot.runtime.errors import AotError, InternalError, UnsupportedError, UsageError

Observer = Callable[[OutPort, Array], None]
State = dict[str, Array]


def interpret(
    graph: Graph,
    inputs: Sequence[Array],
    *,
    state: dict[str, Array] | None = None,
    observe: Observer | None = None,
) -> list[Array]:
    """Return the results' values, in order, for one value of each parameter.

    `state` holds the variables of ReadValue and Assign between calls: a variable that Assign sets is read from the next
    call on, in bodies from the next operation on. `observe` gets each value as it is computed, also in bodies.
    """
    now, later = dict[str, Array]() if state is None else state, dict[str, Array]()
    results = _run(graph, inputs, now, later, observe)
    now.update(later)
    return results


def _run(graph: Graph, inputs: Sequence[Array], now: State, later: State, observe: Observer | None) -> list[Array]:
    """Run a graph; variables are read from `now` and set in `later`, which are the same inside of bodies."""
    if len(inputs) != len(graph.parameters):
        raise UsageError(f"graph {graph.name}: {len(graph.parameters)} inputs are needed, got {len(inputs)}")
    parameters = {node.id: np.asarray(value) for node, value in zip(graph.parameters, inputs, strict=True)}
    live: dict[int, tuple[Array, ...]] = {}
    consumers: dict[int, int] = {}
    for node in graph.order():
        arrays = [None if p is None else live[p.node.id][p.idx] for p in node.sources()]
        outputs = (parameters[node.id],) if node.id in parameters else _evaluate(node, arrays, now, later, observe)
        if observe is not None:
            for port, value in zip(node.out_ports().values(), outputs, strict=True):
                observe(port, value)
        consumers[node.id] = sum(len(p.destinations) for p in node.out_ports().values()) + (node.type == "Result")
        if consumers[node.id]:
            live[node.id] = outputs
        for source in node.sources():
            if source is not None:
                consumers[source.node.id] -= 1
                if not consumers[source.node.id]:
                    del live[source.node.id]
    return [live[node.id][0] for node in graph.results]


def _evaluate(
    node: Node, arrays: list[Array | None], now: State, later: State, observe: Observer | None
) -> tuple[Array, ...]:
    op = node.op
    if node.data is not None:
        return (node.data,)
    if isinstance(op, Foreign):
        raise UnsupportedError(f"{op.dialect}.{op.kind}: a foreign operation has no reference, in layer {node.name!r}")

    def run(body: Graph, inputs: Sequence[Array]) -> list[Array]:
        return _run(body, inputs, now, now, observe)

    try:
        with np.errstate(all="ignore"):
            if isinstance(op, RegionOp):
                return tuple(op.reference(arrays, node.regions, run))
            outputs = (op.access(now, later, *arrays),) if isinstance(op, Stateful) else op.evaluate(*arrays)
    except AotError as error:
        error.add_note(f"in layer {node.name!r}: {node}")
        raise
    except Exception as error:
        shapes = ", ".join("none" if a is None else f"{a.dtype}{list(a.shape)}" for a in arrays)
        text = f"{node.type}: the reference failed on {shapes}: {error!r}, in layer {node.name!r}"
        raise InternalError(text) from error
    if len(outputs) != len(node.out_ports()):
        raise InternalError(f"{node.type}: {len(node.out_ports())} outputs, the reference gives {len(outputs)}")
    return outputs
