"""Sizes of Interpolate that follow the sizes of other tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.ops.library import library_class
from aot.mo.transformations.nodes import add, name_of, nodes_of, source_of
from aot.mo.utils.arrays import int64_array, mo_array


def _may_vary(graph: Graph) -> bool:
    return not graph.graph["cmd_params"].static_shape


def _axes(node: Any) -> Any:
    return library_class("interpolate", "Interpolate").get_axes(node)


def _sizes_of(source: Any, axes: Any) -> Any:
    """Return an operation that gives the sizes of a tensor's axes."""
    graph = source.node.graph
    shape = add(graph, "shape.Shape", source, name=f"{name_of(source.node)}/shape_of")
    indices = mo_array(axes, dtype=np.int32)
    return add(graph, "gather.Gather", shape, indices, int64_array(0), name=f"{shape.name}/sizes")


def _read_sizes(node: Any, new_node: Any) -> None:
    node.in_port(1).get_connection().set_source(new_node.out_port(0))


def _has_constant_sizes(node: Any) -> bool:
    """True if input 1 is a constant and has sizes, as in versions 1 and 4; in later ones it may have scales."""
    source = source_of(node, 1)
    constant = source is not None and source.node.soft_get("type") == "Const"
    return constant and node.get_opset() in ("opset1", "opset4")


@transformation("front.interpolate_reshape")
class InterpolateWithConcat:
    """Concat(Interpolate(x, constant), y): the sizes are those of y"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Interpolate", version="opset1"):
            concat = self._consumer(node) if _has_constant_sizes(node) else None
            while concat is not None and concat.soft_get("type") != "Concat":
                concat = self._consumer(concat) if concat.has_and_set("identity") else None
            if concat is None:
                continue
            axes, axis = _axes(node), self.get_concat_axis(concat)
            if axes is None or axis is None or axis < 0 or np.any(axes < 0) or axis in axes:
                continue
            others = self._other_sources(concat)
            if others:
                _read_sizes(node, _sizes_of(others[0], axes))

    @staticmethod
    def get_concat_axis(concat: Any) -> Any:
        """Return the axis: an attribute, or TensorFlow's input `N`; None for one that is not known."""
        if concat.has_valid("axis"):
            return concat.axis
        axis_node = concat.in_port(concat.N).get_source().node if concat.has_valid("N") else None
        return axis_node.value.item(0) if axis_node is not None and axis_node.has_valid("value") else None

    @staticmethod
    def _consumer(node: Any) -> Any:
        """Return the only operation that reads a node, by output 0; None if there is another one."""
        ports = [port for port in node.out_ports().values() if not port.disconnected()]
        consumers: list[Any] = ports[0].get_destinations() if len(ports) == 1 and ports[0].idx == 0 else []
        return consumers[0].node if len(consumers) == 1 else None

    @staticmethod
    def _other_sources(concat: Any) -> list[Any]:
        """Return the inputs that no Interpolate makes, directly or through identities."""
        other_sources: list[Any] = []
        for idx in concat.in_ports():
            source = None if concat.has_valid("N") and idx == concat.N else source_of(concat, idx)
            if source is None:
                continue
            node = source.node
            while node.soft_get("type") != "Interpolate" and node.has_and_set("identity"):
                above = [p for p in node.in_ports().values() if not p.disconnected()]
                if len(above) != 1 or above[0].idx != 0:
                    break
                node = above[0].get_source().node
            if node.soft_get("type") != "Interpolate":
                other_sources.append(source)
        return other_sources


@transformation("back.InterpolateReshape")
class InterpolateConcat:
    """Concat(Interpolate(x, constant), y): the sizes are those of y"""

    graph_condition = (_may_vary,)
    force_shape_inference = True
    id = "reshape_interpolate_through_concat"

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Interpolate"):
            consumers = node.out_port(0).get_destinations()
            if not _has_constant_sizes(node) or len(consumers) != 1 or consumers[0].node.soft_get("type") != "Concat":
                continue
            concat, rank = consumers[0].node, len(node.out_port(0).data.get_shape())
            axes = [int(axis) % rank for axis in _axes(node)]
            sources = [source for i in concat.in_ports() if (source := source_of(concat, i)) is not None]
            others = [source for source in sources if source.node.soft_get("type") != "Interpolate"]
            if int(concat.axis) % rank not in axes and others:
                _read_sizes(node, _sizes_of(others[0], axes))


@transformation("back.InterpolateReshape")
class InterpolateReshapeWA:
    """Interpolate(x, constant), whose sizes are multiples of those of x: the sizes of x, times these factors"""

    graph_condition = (_may_vary,)
    force_shape_inference = True
    id = "reshape_interpolate_wa"

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Interpolate"):
            if not _has_constant_sizes(node):
                continue
            before, after, axes = node.in_port(0).data.get_shape(), node.out_port(0).data.get_shape(), _axes(node)
            if np.all(after % before == 0) or np.all(before % after == 0):
                sizes = _sizes_of(node.in_port(0).get_source(), axes)
                factors = after[axes] / before[axes]
                _read_sizes(node, add(graph, "elementwise.Mul", sizes, factors, name=f"{sizes.name}/scaled"))
