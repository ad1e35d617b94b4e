"""One rank for each value: where the branches of an If differ in rank, all dependent nodes move into the branches.

    z = h(If(c) {f} {g})      ->      z = If(c) {h(f)} {h(g)}

If the dependent nodes do not fit one branch, the other one must run, which is checked at run time. An output of the
network has one rank, whichever branch runs. Squeeze without axes over a size that may be 1 is an If:

    Squeeze(x[n, 1, 4])       ->      If(n == 1) {Squeeze(x, [0, 1])} {Squeeze(x, [1])}
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.copies import copy_graph, copy_node
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.one_rank import can_be_one, one_rank_needed, which_are_one
from aot.ir.types import Dim, TensorType
from aot.opset.control.control_flow import If, enter, known_truth
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import InputMap, OutputMap
from aot.passes.front.scope_region_symbols import scope_region_symbols
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UnsupportedError


def unify_branch_ranks(graph: Graph) -> bool:
    """Move the dependent nodes of these Ifs into their branches, in bodies too."""
    changed = False
    for node in list(graph.nodes.values()):
        if node.regions:
            node.operands()
        for body in node.regions.values():
            runs = all(p.given is not None for p in body.parameters)  # others have no types
            if runs and unify_branch_ranks(body):
                node.forget_types()
                changed = True
    sizes: dict[int, Dim] = {}  # of Ifs made from Squeezes: the size that their condition compares with 1
    for node in graph.order():
        if node.type == "Squeeze" and _has_no_axes(node):
            sizes |= _fork(node)
    changed |= bool(sizes)
    left: set[int] = set()
    while (node := next((n for n in graph.order() if n.id not in left and _differs(n)), None)) is not None:
        left.add(node.id)
        changed = _settle(node, sizes.get(node.id)) or changed
    return changed


def _has_no_axes(node: Node) -> bool:
    """True if a Squeeze has no axes, or an empty list of them."""
    axes = node.source(1) if len(node.in_ports()) > 1 and node.in_port(1).source is not None else None
    return axes is None or (axes.value is not None and not axes.value.size)


def _fork(node: Node) -> dict[int, Dim]:
    """Replace a Squeeze by an If over the one size that may be 1; returns its id and the size, or nothing if none may.

    UnsupportedError if several sizes may be 1.
    """
    graph, x = node.graph, node.source(0)
    positions = [k for k, n in enumerate(x.shape) if can_be_one(n)]
    if not positions:
        return {}
    if len(positions) > 1:
        raise UnsupportedError(f"Squeeze {_layer(node)!r}: {which_are_one(x.type)}")
    build, ones = Builder(graph, node.origin), [k for k, n in enumerate(x.shape) if n == 1]
    size = build.Gather(build.ShapeOf(x), build.const(positions[0], DType.I64), build.const(0, DType.I64))
    maps = ((InputMap(1, 0),), (OutputMap(0, 0),))
    conditional = build.node(If(*maps, *maps), build.Equal(size, build.const(1, DType.I64)), x)
    for name, axes in (("then", sorted([*ones, *positions])), ("else", ones)):
        body = Graph(f"{conditional.name}.{name}")
        port = body.add(Parameter(x.type.dtype, None), name=x.node.name).out_port(0)
        inner = Builder(body, node.origin)
        body.add(Result(), inner.Squeeze(port, inner.const(axes, DType.I64)) if axes else port)
        conditional.regions[name] = body
    node.out_port(0).replace_by(conditional.out_port(0))
    graph.remove(node)
    conditional.name = node.name
    scope_region_symbols(graph)
    conditional.operands()  # infers the types of the bodies' parameters
    return {conditional.id: x.shape[positions[0]]}


def _layer(node: Node) -> str:
    return node.origin.layers[0] if node.origin.layers else node.name


def _differs(node: Node) -> bool:
    if not isinstance(node.op, If) or node.op.only or known_truth(node.input(0)) is not None:
        return False
    return bool(node.op.required(node.regions))


def _settle(node: Node, size: Dim | None) -> bool:
    """Move all dependent nodes into both branches; True if they moved, or only one branch may run.

    `size`: size that the If, formerly a Squeeze, compares with 1.
    """
    op, dependents = node.op, _dependents(node)
    assert isinstance(op, If)
    if any(n.type == "Assign" for n in dependents):
        return False
    then, other = (_Branch(node, op, name, dependents) for name in ("then", "else"))
    match then.wrong, other.wrong:
        case None, None if _have_equal_ranks(node, then, other, size):
            _replace(node, op, dependents, then, other)
            return True
        case None, _:
            return False
        case _, None:
            node.op = replace(op, only="else")
            return True
        case error, _:
            raise error


def _have_equal_ranks(node: Node, then: _Branch, other: _Branch, size: Dim | None) -> bool:
    """True if both branches give equal ranks; an error if not, unless a graph around this one may help."""
    types = zip(then.types(), other.types(), strict=True)
    pair = next(((one, two) for one, two in types if one.rank != two.rank), None)
    if pair is not None and not (node.graph.scope and size is None):
        raise one_rank_needed(_layer(node), *pair, node.source(0), size)
    return pair is None


def _dependents(node: Node) -> list[Node]:
    """Return all nodes that depend on the node, in order."""
    dependents, ids = list[Node](), {node.id}
    for n in node.graph.order():
        if any(p is not None and p.node.id in ids for p in n.sources()):
            ids.add(n.id)
            dependents.append(n)
    return dependents


@dataclass(slots=True)
class _Inputs:
    """Inputs of a node; `index` adds further ones."""

    ports: list[OutPort]

    def index(self, port: OutPort) -> int:
        if port not in self.ports:
            self.ports.append(port)
        return self.ports.index(port)


class _Branch:
    """A copy of one branch with all dependent nodes appended; `wrong`: error if these do not fit."""

    def __init__(self, node: Node, op: If, name: str, behind: list[Node]) -> None:
        inputs, outputs = op.maps(name)
        self.body, self.inputs, self.outer = copy_graph(node.regions[name]), list(inputs), _Inputs(_sources(node))
        self.ports = {node.out_port(m.external): self.body.results[m.result].source(0) for m in outputs}
        if (condition := node.source(0)).type.is_static:  # known in here, for other Ifs that have it
            truths = np.full(condition.type.static_shape, name == "then")
            self.ports[condition] = Builder(self.body, node.origin).const(truths, DType.BOOL)
        for n in behind:
            if n.type != "Result":
                for port in n.sources():
                    if port is not None and port not in self.ports:
                        self._bring_in(port)
                copy_node(n, self.body, self.ports)
        for result in list(self.body.results):
            self.body.remove(result)
        for port in _read(behind):
            self.body.add(Result(), self.ports[port])
        self.wrong: ModelError | None = None
        try:
            operands = {m.parameter: self.outer.ports[m.external] for m in self.inputs}
            enter("If", self.body, {i: p.node.operands()[p.idx] for i, p in operands.items()})
            self.types()
        except ModelError as error:
            self.wrong = error

    def _bring_in(self, port: OutPort) -> None:
        """Copy a constant into the body; add an input for anything else."""
        if port.node.constant_data is not None:
            copy_node(port.node, self.body, self.ports)
            return
        parameter = self.body.add(Parameter(port.type.dtype, None), name=port.node.name)
        self.inputs.append(InputMap(self.outer.index(port), len(self.body.parameters) - 1))
        self.ports[port] = parameter.out_port(0)

    def types(self) -> list[TensorType]:
        return [r.out_port(0).type for r in self.body.results]


def _sources(node: Node) -> list[OutPort]:
    return [node.source(i) for i in range(len(node.in_ports()))]


def _read(behind: list[Node]) -> list[OutPort]:
    """Return the ports that feed results of the graph, each once."""
    return list(dict.fromkeys(n.source(0) for n in behind if n.type == "Result"))


def _replace(node: Node, op: If, behind: list[Node], then: _Branch, other: _Branch) -> None:
    graph, sources = node.graph, _Inputs(list(then.outer.ports))
    other_inputs = tuple(replace(m, external=sources.index(other.outer.ports[m.external])) for m in other.inputs)
    needed = _read(behind)
    outs = tuple(OutputMap(k, k) for k in range(len(needed)))
    new_node = graph.add(
        If(tuple(then.inputs), outs, other_inputs, outs),
        *sources.ports,
        name=node.name,
        origin=node.origin,
        outputs=len(outs),
    )
    new_node.regions = {"then": then.body, "else": other.body}
    for old, new in zip(needed, new_node.out_ports().values(), strict=True):
        new.add_tensor_names(old.names)
    for result in [n for n in behind if n.type == "Result"]:
        result.in_port(0).connect(new_node.out_port(needed.index(result.source(0))))
    for n in reversed([node, *behind]):
        if n.type != "Result":
            graph.remove(n)
    new_node.name = node.name
    scope_region_symbols(graph)
