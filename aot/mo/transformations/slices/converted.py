"""Operations that become StridedSlice."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.formulas import take_place
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, move, name_of, nodes_of, value_of
from aot.mo.utils.arrays import int64_array
from aot.mo.utils.shape import (
    get_shape_and_rank_nodes_by_port,
    get_shape_values_by_range_idxs,
    new_shape_node_from_shape_nodes,
)

MARGIN = np.iinfo(np.int32)  # bounds beyond are those of a file's "to the end"


def _masks(rank: int, begin: Any, end: Any) -> dict[str, Any]:
    """Return the masks of StridedSlice: 1 for the axes that `begin` and `end` hold, 0 else."""
    masks = {"begin_mask": begin, "end_mask": end}
    empty = {name: int64_array([0] * rank) for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")}
    return {name: int64_array(np.isin(range(rank), axes)) for name, axes in masks.items()} | empty


@transformation("middle.SliceConverter")
class ConvertSlice:
    """Slice of the axes that an input names: StridedSlice with bounds for each dimension"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Slice"):
            if node.soft_get("type", None) == "Slice":
                continue  # that of the operation sets, whose inputs are in another order
            name, rank = name_of(node), len(node.in_port(0).data.get_shape())
            axes = [int(axis) % rank for axis in self._constant(node, 3, np.arange(rank), "axes")]
            bounds = [self._bound(node, idx, axes, rank) for idx in (1, 2)]
            strides = int64_array([1] * rank)
            strides[axes] = self._constant(node, 4, np.ones(len(axes)), "steps")
            new_node = add(graph, "strided_slice.StridedSlice", None, *bounds, strides, **_masks(rank, axes, axes))
            move(node, 0, new_node)
            for idx in (1, 2):
                node.in_port(idx).disconnect()
            rename = {1: "begin", 2: "end"}
            for idx, bound in zip(rename, bounds, strict=True):
                bound["name"] = f"{name}/{rename[idx]}"
            take_place(node, new_node)

    @staticmethod
    def _constant(node: Any, idx: int, default: Any, what: str) -> Any:
        """Return the value of an input, or the default if it is not connected."""
        if not node.is_in_port_connected(idx):
            return default
        value = value_of(node, idx)
        assert value is not None, f"{name_of(node)}: the {what} of Slice must be constants"
        return value

    @staticmethod
    def _bound(node: Any, idx: int, axes: list[int], rank: int) -> Any:
        """Return an operation that gives the bound of each dimension; 0 for those that are not sliced."""
        graph, name = node.graph, f"{name_of(node)}/bound_{idx}"
        limits = MARGIN.min, MARGIN.max
        clamped = add(graph, "clamp.Clamp", node.in_port(idx).get_source(), *limits, name=f"{name}/clamp")
        integers = add(graph, "Cast.Cast", clamped, dst_type=np.int64, name=f"{name}/integers")
        positions = {axis: i for i, axis in enumerate(axes)}
        parts = [
            add(graph, "gather.Gather", integers, int64_array([positions[i]]), int64_array(0), name=f"{name}/{i}")
            if i in positions
            else int64_array([0])
            for i in range(rank)
        ]
        return add(graph, "concat.Concat", *parts, axis=0, in_ports_count=rank, name=name)


@transformation("middle.SliceLikeToStridedSlice")
class SliceLikeToStridedSlice:
    """slice_like of MXNet, by the sizes of another tensor in some axes: StridedSlice"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="slice_like"):
            rank, other = (len(node.in_port(i).data.get_shape()) for i in (0, 1))
            sizes = node.in_port(1).get_source()
            if rank == other:
                end = add(graph, "shape.Shape", sizes, name=f"{name_of(node)}/end")
            else:
                last = node.axes[-1]
                shape, count = get_shape_and_rank_nodes_by_port(sizes)
                end = get_shape_values_by_range_idxs(shape, count, 0, last, include_end=True)
                if last != rank - 1:
                    shape, count = get_shape_and_rank_nodes_by_port(node.in_port(0).get_source())
                    rest = get_shape_values_by_range_idxs(shape, count, last, -1, False, True)
                    end = new_shape_node_from_shape_nodes([end, rest])
            masks = _masks(rank, [], node.axes)
            new_node = add(graph, "strided_slice.StridedSlice", None, int64_array([0] * rank), end, **masks)
            move(node, 0, new_node)
            node.in_port(1).disconnect()
            take_place(node, new_node)
