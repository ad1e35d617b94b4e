"""Formulas: patterns of operations as terms, and the search for them from their last operation on.

    X = "x"
    term("Mul", X, term("Sigmoid", X))      # x * sigmoid(x)

A text stands for any tensor, and a text that is used twice for one tensor; a number for a constant whose elements all
are that number. Operands of Add, Mul, Maximum and Minimum fit in any order. The search works on graphs of all phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.mo.graph.graph import Graph, Node, rename_nodes

NEAR = 1e-6  # distance of a constant from the number in a formula; files hold decimals of few digits
COMMUTATIVE = {"Add", "Mul", "Maximum", "Minimum"}
TYPES = {"Mul": "Multiply", "Pow": "Power", "Sub": "Subtract", "Div": "Divide"}  # other than the op


@dataclass(frozen=True, slots=True)
class Term:
    """An operation on operands: terms, texts, numbers."""

    op: str
    operands: tuple[Any, ...]


def term(op: str, *operands: Any) -> Term:
    return Term(op, operands)


@dataclass(frozen=True, slots=True)
class Operand:
    """An output that an operation reads: output `idx` of node `id`, or data node `id`."""

    graph: Graph
    id: str
    idx: int

    @property
    def producer(self) -> Node | None:
        """Return the operation that gives it; None for data without one."""
        node = Node(self.graph, self.id)
        if node.soft_get("kind") != "data":
            return node
        return next(iter(node.in_nodes()), None)

    @property
    def value(self) -> Any:
        """Return the value of a constant; None for another tensor."""
        node = Node(self.graph, self.id)
        constant = node.soft_get("value", None)
        if constant is None and self.producer is not None and self.producer.soft_get("op") == "Const":
            constant = self.producer.soft_get("value", None)
        return None if constant is None else np.asarray(constant)

    @property
    def port(self) -> Any:
        """Return the output port."""
        producer = self.producer
        assert producer is not None, f"{self.id}: data without a producer have no port"
        if producer.id == self.id:
            return producer.out_port(self.idx)
        return producer.out_port(self.graph.get_edge_data(producer.id, self.id)[0]["out"])


Found = dict[str, Operand]


def operands_of(node: Node) -> list[Operand]:
    """Return the operands of a node, in the order of its inputs."""
    edges = [e for e in node.graph.in_edges(node.id, data=True) if not e[2].get("control_flow_edge", False)]
    ordered = sorted(edges, key=lambda edge: edge[2].get("in", 0))
    return [Operand(node.graph, source, edge.get("out", 0)) for source, _, edge in ordered]


def fits(node: Node, formula: Term) -> Found | None:
    """Return the tensors that the texts of a formula stand for, if a node gives the formula."""
    return next(_node(node, formula, {}), None)


def _node(node: Node | None, formula: Term, operands: Found) -> Iterator[Found]:
    if node is None or (
        formula.op not in (node.soft_get("op"), node.soft_get("type"))
        and TYPES.get(formula.op) != node.soft_get("type")
    ):
        return
    node_operands = operands_of(node)
    if len(node_operands) != len(formula.operands):
        return
    for order in permutations(node_operands) if formula.op in COMMUTATIVE else (node_operands,):
        yield from _operands(list(order), formula.operands, operands)


def _operands(node_operands: list[Operand], patterns: tuple[Any, ...], operands: Found) -> Iterator[Found]:
    if not patterns:
        yield operands
        return
    for known in _operand(node_operands[0], patterns[0], operands):
        yield from _operands(node_operands[1:], patterns[1:], known)


def _operand(operand: Operand, pattern: Any, operands: Found) -> Iterator[Found]:
    if isinstance(pattern, Term):
        yield from _node(operand.producer, pattern, operands)
    elif isinstance(pattern, str):
        if operands.get(pattern, operand) == operand:
            yield {**operands, pattern: operand}
    elif operand.value is not None and operand.value.size and np.allclose(operand.value, pattern, rtol=0, atol=NEAR):
        yield operands


Make = Callable[[Graph, Node, Found], Node | None]


def replace_formulas(graph: Graph, formulas: list[Term], make: Make) -> None:
    """Replace nodes that compute a formula by those that `make` returns, which take their names; None: leave it.

    `make` is given the graph, the last operation, and the tensors of the formula's texts.
    """
    for formula in formulas:
        for node in graph.get_op_nodes():
            operands = fits(node, formula) if graph.has_node(node.id) else None
            new_node = None if operands is None else make(graph, node, operands)
            if new_node is not None:
                take_place(node, new_node)
                remove_unread(node)


def take_place(node: Node, new_node: Node) -> None:
    """Let the consumers of a node's output 0 read another node's output, which takes its name, too."""
    name = node.soft_get("name", node.id)
    node.out_port(0).get_connection().set_source(new_node.out_port(0))
    rename_nodes([(node, f"{name}/replaced"), (new_node, name)])


def remove_unread(node: Node) -> None:
    """Remove an operation without consumers, and the operations that it alone reads."""
    graph = node.graph
    left = [node]
    while left:
        last = left.pop()
        if not graph.has_node(last.id):
            continue
        read = last.soft_get("op") in ("Parameter", "Result") or any(
            not port.disconnected() for port in last.out_ports().values()
        )
        if read:
            continue
        left += [producer for operand in operands_of(last) if (producer := operand.producer) is not None]
        data = [id for id in graph.successors(last.id) if Node(graph, id).soft_get("kind") == "data"]
        graph.remove_nodes_from([last.id, *data])
