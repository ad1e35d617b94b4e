"""Transposes after each other, and before reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.ops.library import VALUES
from aot.mo.transformations.layout.channels import TO_NHWC
from aot.mo.transformations.nodes import add, chain, constant, name_of, nodes_of, only_consumer, producer, value_of
from aot.mo.utils.arrays import int64_array
from aot.mo.utils.error import Error


@transformation("back.FuseTransposesSequence")
class FuseTransposesSequence:
    """Transposes after each other: one, or none where they cancel out"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Transpose"):
            if graph.has_node(node.id):
                self._join(graph, node)

    @staticmethod
    def _join(graph: Graph, first: Any) -> None:
        run = [first]
        while (
            (port := only_consumer(run[-1])) is not None and port.node.soft_get("type") == "Transpose" and not port.idx
        ):
            run.append(port.node)
        order = np.arange(len(first.in_port(0).data.get_shape()))
        for node in run:
            given = value_of(node, 1)
            if given is None:
                raise Error("{}: the order of Transpose must be known, got none", name_of(node))
            order = order[int64_array(given)]
        source, consumers = first.in_port(0).get_source(), run[-1].out_port(0).get_connection()
        if np.array_equal(order, np.arange(len(order))):
            consumers.set_source(source)
        elif len(run) > 1:
            new_node = constant(graph, int64_array(order), f"{name_of(first)}/order")
            first.in_port(1).disconnect()
            new_node.out_port(0).connect(first.in_port(1))
            new_node["infer"](new_node)
            consumers.set_source(first.out_port(0))
        else:
            return
        graph.clean_up()


@transformation("back.TransposeReduceFusing")
class TransposeReduce:
    """A reduction of height and width after a Transpose from NCHW to NHWC: of the axes that these have in NCHW"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, keep_dims=False):
            kind = node.soft_get("type")
            nodes = chain(node, "Transpose", kind) if kind in VALUES["ReduceOps", "reduce_map"] else []
            if nodes and self._are_spatial(*nodes):
                transpose = nodes[0]
                new_node = add(graph, "gather.Gather", None, None, int64_array(0), name=f"{name_of(node)}/axes")
                transpose.in_port(1).get_connection().set_destination(new_node.in_port(0))
                node.in_port(1).get_connection().set_destination(new_node.in_port(1))
                new_node.out_port(0).connect(node.in_port(1))
                transpose.out_port(0).disconnect()
                transpose.in_port(0).get_connection().set_destination(node.in_port(0))

    @staticmethod
    def _are_spatial(transpose: Any, node: Any) -> bool:
        """True if an operation reduces height and width of NHWC, and the Transpose before it has changed to that."""
        constants = all(producer(n, 1).soft_get("type") == "Const" for n in (transpose, node))
        orders = [producer(n, 1).soft_get("value", None) for n in (transpose, node)]
        return constants and np.array_equal(orders[0], TO_NHWC) and np.array_equal(orders[1], [1, 2])
