"""Constants: copies for each reader, and values that are known."""

from __future__ import annotations

from aot.mo.formulas import take_place
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import constant, name_of, nodes_of, producer
from aot.mo.utils.arrays import is_fully_defined, mo_array


@transformation("middle.SharedWeightsDuplication")
class SharedWeightsDuplication:
    """A constant with several readers: one for each"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Const"):
            value, readers = node.out_port(0).data.get_value(), node.out_port(0).get_destinations()
            for port in readers[1:] if value is not None else ():
                copy = constant(graph, mo_array(value), f"{name_of(node)}/copy")
                port.disconnect()
                copy.out_port(0).connect(port)
                copy["infer"](copy)


@transformation("back.ShapeOfConstFolding")
class ShapeOfConstFolding:
    """ShapeOf of a constant: its shape; with `allow_fold`, of all tensors of known shape"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        nodes = nodes_of(graph, op="ShapeOf")
        for node in nodes:
            known = node.has_and_set("allow_fold") and is_fully_defined(node.in_port(0).data.get_shape())
            if producer(node).op == "Const" or known:
                shape = constant(graph, node.out_port(0).data.get_value(), f"{name_of(node)}/folded")
                node.in_port(0).disconnect()
                take_place(node, shape)
