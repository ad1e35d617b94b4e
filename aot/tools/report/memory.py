"""Memory of one inference over its steps: which value lies where in the arena, and from when to when."""

from __future__ import annotations

from typing import Any

from aot.ir.graph import Graph
from aot.lowering.ir.steps import Steps
from aot.lowering.program.arena import aligned, live_ranges, plan

Facts = dict[str, Any]


def lives(steps: Steps) -> list[Facts]:
    """Return values of the arena: `offset` and `size` in bytes, `first` and `last` step, `layers` that write it.

    Values whose size or place is known only at run time are left out.
    """
    offsets, rows = plan(steps).offsets, list[Facts]()
    for name, (first, last) in live_ranges(steps).items():
        value, offset = steps.values[name], offsets.get(name)
        if not isinstance(value.elements, int) or not isinstance(offset, int):
            continue
        size = aligned(value.elements * value.buffer.dtype.stored_bytes)
        layers = list(steps.steps[first].layers)
        span = {"offset": offset, "size": size, "first": first, "last": last}
        rows.append({"name": name, "shape": _shape(value.buffer.shape), "layers": layers, **span})
    return rows


def weights(graph: Graph) -> list[Facts]:
    """Return constants of a graph with the layers that read them, the largest first: `name`, `type`, `bytes`."""
    facts: list[Facts] = []
    for node in graph.order():
        if node.constant_data is None or not node.out_ports():
            continue
        readers = [port.node.name for port in node.out_port().get_destinations()]
        facts.append(
            {
                "name": node.name,
                "type": str(node.out_port().type),
                "bytes": int(node.constant_data.nbytes),
                "readers": readers,
            }
        )
    return sorted(facts, key=lambda one: -one["bytes"])


def _shape(shape: tuple[object, ...]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"
