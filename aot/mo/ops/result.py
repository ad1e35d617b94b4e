"""Result: an output of the network."""

from __future__ import annotations

from typing import Any

from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.op import Op


class Result(Op):
    """It keeps all that it reads from being removed."""

    op = "Result"

    def __init__(self, graph: Graph, attrs: dict[str, Any] | None = None) -> None:
        defaults = {
            "op": "Result",
            "type": "Result",
            "version": "opset1",
            "infer": _nothing,
            "value": None,
            "data_type": None,
            "in_ports_count": 1,
        }
        super().__init__(graph, defaults, attrs)


def _nothing(node: Node) -> None:
    """Infer nothing: a Result makes no tensor."""
