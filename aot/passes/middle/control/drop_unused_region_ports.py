"""Trimming of regions: loop-invariant values are no longer carried, unused outputs of bodies are removed.

a value that an iteration passes on unchanged     ->   read from outside of the loop
an output without consumers                       ->   removed, with everything in the body that only it needs
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from aot.ir.graph import Graph, Node
from aot.opset.control.control_flow import If, Iterating, Loop
from aot.opset.control.port_maps import BackEdge, OutputMap, in_order


def drop_unused_region_ports(graph: Graph) -> bool:
    """Trim loops and Ifs that have invariant values or unused outputs."""
    changed = False
    for node in graph.order():
        if isinstance(node.op, Iterating):
            changed = _trim_loop(node, node.op) or changed
        elif isinstance(node.op, If):
            changed = _trim_if(node, node.op) or changed
    return changed


def _trim_loop(node: Node, op: Iterating) -> bool:
    body = node.regions["body"]
    fixed = [e for e in op.back_edges if _is_passed_on(body, e)]
    inputs = {m.parameter: m.external for m in op.input_maps}
    for m in op.output_maps:
        edge = next((e for e in fixed if e.result == m.result), None)
        if m.axis is None and edge is not None:
            node.out_port(m.external).replace_by(node.source(inputs[edge.parameter]))
    outs, edges = _read(node, op.output_maps), [e for e in op.back_edges if e not in fixed]
    if not outs or (len(outs) == len(op.output_maps) and not fixed):
        return False  # without any output it is dead code
    going = op.execution_condition if isinstance(op, Loop) else -1
    new_indices = _drop_other_results(
        body, [*(m.result for m in outs), *(e.result for e in edges), *([going] if going >= 0 else [])]
    )
    trimmed: Iterating = replace(
        op,
        output_maps=_renumbered(outs, new_indices),
        back_edges=tuple(replace(e, result=new_indices[e.result]) for e in edges),
    )
    if isinstance(trimmed, Loop) and going >= 0:
        trimmed = replace(trimmed, execution_condition=new_indices[going])
    _exchange(node, trimmed, outs)
    return True


def _trim_if(node: Node, op: If) -> bool:
    outs = [_read(node, maps) for maps in (op.then_outputs, op.else_outputs)]
    if not outs[0] or len(outs[0]) == len(op.then_outputs):
        return False
    then, other = (
        _renumbered(maps, _drop_other_results(node.regions[name], [m.result for m in maps]))
        for name, maps in zip(("then", "else"), outs, strict=True)
    )
    _exchange(node, replace(op, then_outputs=then, else_outputs=other), outs[0])
    return True


def _is_passed_on(body: Graph, edge: BackEdge) -> bool:
    """True if an iteration passes the value of this edge on unchanged."""
    return body.results[edge.result].source(0) is body.parameters[edge.parameter].out_port(0)


def _read(node: Node, maps: Iterable[OutputMap]) -> list[OutputMap]:
    """Return the maps of those outputs that have consumers."""
    return [m for m in in_order(maps) if node.out_port(m.external).destinations]


def _drop_other_results(body: Graph, remaining_results: Iterable[int]) -> dict[int, int]:
    """Remove all other results of a body; returns the new positions of the remaining ones."""
    remaining = sorted(set(remaining_results))
    for node in [r for i, r in enumerate(body.results) if i not in remaining]:
        body.remove(node)
    return {old: new for new, old in enumerate(remaining)}


def _renumbered(maps: Sequence[OutputMap], new_indices: dict[int, int]) -> tuple[OutputMap, ...]:
    return tuple(replace(m, external=k, result=new_indices[m.result]) for k, m in enumerate(maps))


def _exchange(node: Node, op: Iterating | If, outs: Sequence[OutputMap]) -> None:
    """Replace the node by `op`; `outs`: maps of the outputs that remain."""
    graph = node.graph
    new_node = graph.add(op, *node.sources(), name=node.name, origin=node.origin, outputs=len(outs))
    new_node.regions = node.regions
    node.regions = {}
    for port, m in zip(new_node.out_ports().values(), outs, strict=True):
        node.out_port(m.external).replace_by(port)
    graph.remove(node)
    new_node.name = node.name
