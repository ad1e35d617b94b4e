"""Graphs of Model Optimizer's kind from dictionaries, for tests."""

from __future__ import annotations

from argparse import Namespace
from copy import deepcopy
from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.parameter import Parameter

Edge = tuple[Any, ...]


def op(type: str, **attrs: Any) -> dict[str, Any]:
    return {"kind": "op", "type": type, "op": type, **attrs}


def data(shape: Any = None, value: Any = None, **attrs: Any) -> dict[str, Any]:
    return {"kind": "data", "shape": None if shape is None else np.array(shape), "value": value, **attrs}


def build(nodes: dict[str, dict[str, Any]], edges: list[Edge], stage: str | None = None) -> Graph:
    """A graph; ports that edges do not number follow each other, and operations get the ports of their edges."""
    graph = Graph()
    for id, attrs in nodes.items():
        graph.add_node(id, **{"name": id, **deepcopy(attrs)})
    for source, target, *given in edges:
        numbers = {"in": len(graph.in_edges(target)), "out": len(graph.out_edges(source))}
        graph.add_edge(source, target, **{**numbers, **(given[0] if given else {})})
    for node in graph.get_op_nodes():
        for edge in node.in_edges().values():
            node.add_input_port(edge["in"])
        for edge in node.out_edges().values():
            node.add_output_port(edge["out"])
    graph.graph.update(cmd_params=Namespace(static_shape=False), ir_version=11, layout="NCHW")
    graph.stage = stage
    return graph


def edges(graph: Graph) -> list[str]:
    """`source>target` with the number of an input that is not 0, and `=names` of the tensor on the edge."""
    found = []
    for u, v, d in graph.edges(data=True):
        names = "+".join(pair[1] for pair in d.get("fw_tensor_debug_info", []))
        found.append(f"{u}>{v}{d['in'] if d.get('in') else ''}{'=' + names if names else ''}")
    return sorted(found)


def front(name: str = "x") -> tuple[Graph, Node]:
    """A graph of the front phase with an input."""
    graph = Graph()
    graph.stage = "front"
    graph.graph.update(cmd_params=Namespace(static_shape=False), ir_version=11, layout="NCHW", fw="onnx")
    return graph, Parameter(graph, {"name": name, "shape": np.array([2, 3])}).create_node()
