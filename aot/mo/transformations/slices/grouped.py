"""Slices of one tensor that divide it: VariadicSplit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.ops.op import Op
from aot.mo.ops.strided_slice import MASKS
from aot.mo.transformations.nodes import add, name_of
from aot.mo.utils.arrays import int64_array, is_a, shape_array
from aot.mo.utils.small_functions import unique_by


class _Part(NamedTuple):
    """A slice that takes elements `start` to `stop` of the axis that is divided."""

    start: int
    stop: int
    node: Any


def _bounds(node: Any) -> list[tuple[Any, Any, Any]]:
    return [(s.start, s.stop, s.step) for s in node.slices]


@transformation("middle.ConvertGroupedStridedSlice")
class ConvertGroupedStridedSlice:
    """Slices of one axis of a tensor, which do not overlap: VariadicSplit; parts that none takes get a Result"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for data in list(graph.get_data_nodes()):
            if data.value is None and data.shape is not None:
                self._divide(graph, data)

    def _divide(self, graph: Graph, data: Any) -> None:
        consumers = [n for n in data.out_nodes() if n.op == "StridedSlice" and n.in_node(0).id == data.id]
        if not all(is_a(s, slice) for node in consumers for s in node.slices):
            return  # sizes are not known
        nodes = unique_by(sorted(consumers, key=_bounds), _are_equal)
        split = _parts(nodes, shape_array(data.shape)) if len(nodes) > 1 else None
        if split is None:
            return
        axis, parts = split
        for node in nodes:
            if np.any(node["shrink_axis_mask"]):
                self.add_squeeze_for_shrink(graph, node)
            if np.any(node["new_axis_mask"]):
                self.add_unsqueeze_for_new(graph, node)
        self._replace(graph, data, axis, parts)

    @staticmethod
    def _replace(graph: Graph, data: Any, axis: int, parts: list[_Part]) -> None:
        first = name_of(parts[0].node)
        ends = [0, *(part.stop for part in parts)]
        pieces: list[tuple[int, _Part | None]] = []
        for part, end in zip(parts, ends, strict=False):
            pieces += [(part.start - end, None)] if part.start > end else []
            pieces.append((part.stop - part.start, part))
        rest = data.shape[axis] - ends[-1]
        pieces += [(rest, None)] if rest else []
        attrs = {"name": f"{first}/split", "out_ports_count": len(pieces)}
        sizes = int64_array([size for size, _ in pieces])
        source = parts[0].node.in_port(0).get_source()
        new_node = add(graph, "split.VariadicSplit", source, int64_array(axis), sizes, **attrs)
        for i, (_, part) in enumerate(pieces):
            if part is not None:
                new_node.add_output_port(i, skip_if_exist=True)
                part.node.out_port(0).get_connection().set_source(new_node.out_port(i))
                graph.remove_node(part.node.id)
        Op.normalize_outputs(new_node)
        new_node["infer"](new_node)

    @staticmethod
    def add_squeeze_for_shrink(graph: Graph, ss_node: Any) -> None:
        """Put Squeeze after a slice for the dimensions that it removes; it keeps them then."""
        node, mask = ss_node, np.array(ss_node["shrink_axis_mask"], bool)
        # the channels are gone: the rest has no layout
        kept = graph.graph["layout"] == "NCHW" or (graph.graph["layout"] == "NHWC" and bool(mask[-1]))
        attrs = {"nchw_layout": kept, "correct_data_layout": kept}
        shape = node.out_node().shape
        sizes = iter(shape)
        whole = [1 if removed else next(sizes) for removed in mask]
        _put_behind(node, "squeeze.Squeeze", mask, shape_array([*whole, *sizes]), attrs)
        node["shrink_axis_mask"] = np.zeros_like(node["shrink_axis_mask"])

    @staticmethod
    def add_unsqueeze_for_new(graph: Graph, ss_node: Any) -> None:
        """Put Unsqueeze after a slice for the dimensions that it adds; it adds none then."""
        node, mask = ss_node, np.array(ss_node["new_axis_mask"], bool)
        shape = [size for i, size in enumerate(node.out_node().shape) if i >= len(mask) or not mask[i]]
        _put_behind(node, "unsqueeze.Unsqueeze", mask, shape_array(shape), {})
        node["new_axis_mask"] = np.zeros_like(node["new_axis_mask"])


def _put_behind(node: Any, kind: str, mask: Any, shape: Any, attrs: dict[str, Any]) -> None:
    """Put an operation on the axes of a mask after a node; its output then has `shape`."""
    last = node.out_node().shape
    axes = int64_array(np.flatnonzero(mask))
    new_node = add(node.graph, kind, None, axes, name=f"{name_of(node)}/{kind.partition('.')[0]}", **attrs)
    node.out_port(0).data.set_shape(shape)
    node.out_port(0).get_connection().insert_node(new_node)
    new_node.out_port(0).data.set_shape(last)


def _are_equal(one: Any, other: Any) -> bool:
    """True if two slices take the same elements."""
    return all(np.array_equal(one[name], other[name]) for name in ("slices", *MASKS))


def _parts(nodes: list[Any], shape: Any) -> tuple[int, list[_Part]] | None:
    """Return the axis and the ranges in order; None if slices are of several axes, have steps, or overlap."""
    rank = len(nodes[0].slices)
    if any(len(node.slices) != rank for node in nodes) or any(s.step != 1 for node in nodes for s in node.slices):
        return None
    axes = {i for node in nodes for i, s in enumerate(node.slices) if not _is_whole(s, shape[i])}
    if len(axes) != 1:
        return None
    (axis,) = axes
    parts = sorted((_Part(n.slices[axis].start, n.slices[axis].stop, n) for n in nodes), key=lambda part: part[:2])
    limits = [bound for part in parts for bound in part[:2]]
    return (axis, parts) if limits == sorted(limits) and limits[-1] <= shape[axis] else None


def _is_whole(taken: Any, size: Any) -> bool:
    return taken == slice(0, size, 1) or (taken.start is None and taken.stop is None)
