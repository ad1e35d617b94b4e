"""StridedSlice in the form that layouts can be changed in: a bound for each dimension, and no ellipsis."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.front.tf.graph_utils import create_op_with_const_inputs
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class
from aot.mo.ops.permutations import PermuteAttrs
from aot.mo.ops.permute_inputs import PermuteInputs
from aot.mo.ops.strided_slice import MASKS, StridedSlice
from aot.mo.utils.arrays import (
    dynamic_dimension,
    dynamic_dimension_value,
    int64_array,
    is_a,
    is_dynamic_slice,
    mo_array,
)
from aot.mo.utils.error import Error

BOUNDS = {1: "begin", 2: "end", 3: "strides"}  # inputs of StridedSlice


@transformation("middle.StridedSliceNormalizer")
class StridedSliceNormalizer:
    """Bounds get an element for each dimension that they leave out, and for each that an ellipsis stands for."""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(type="StridedSlice"):
            self.normalize_strided_slice(graph, node)
            PermuteAttrs.create_permute_attrs(node, attrs=[(mask, "input:0") for mask in MASKS])
            for port in _bounds(node):
                data = node.in_node(port)
                PermuteInputs().set_input_permutation(data, node, f"input:{port}", "slice", "dim_size")
            if np.any(node.new_axis_mask) or np.any(node.shrink_axis_mask):
                node["reinterp_shape"] = node["nchw_layout"] = True

    @staticmethod
    def normalize_strided_slice(graph: Graph, node: Any) -> None:
        """Change the bounds, the masks and attribute `slices` of a node."""
        rank = len(node.in_port(0).data.get_shape())
        count = int(node.in_port(1).data.get_shape()[0])
        StridedSlice.align_mask_with_slice_rank(node, count)
        StridedSliceNormalizer.normalize_slices_attr(node)
        missing = rank - count + int(np.count_nonzero(node.new_axis_mask))
        assert missing >= 0, f"StridedSlice: bounds of at most {rank} dimensions, got {rank - missing}"
        ellipses = np.flatnonzero(node.ellipsis_mask)
        assert len(ellipses) < 2, f"StridedSlice: one ellipsis at most, got {len(ellipses)}"
        position = count
        if len(ellipses):
            first = int(ellipses[0])
            for mask in ("begin_mask", "end_mask", "ellipsis_mask"):
                node[mask][first] = 0  # a full range, as the ones that are put in behind it
            StridedSliceNormalizer.unroll_ellipsis_for_inputs(graph, node, first, missing)
            position = first + 1
        elif missing:
            StridedSliceNormalizer.extend_inputs(node, missing)
        for mask in MASKS if missing else ():
            node[mask] = np.insert(node[mask], position, [0] * missing).astype(int)

    @staticmethod
    def unroll_ellipsis_for_inputs(graph: Graph, node: Any, ellipsis_start: int, num_insertions: int) -> None:
        """Put elements into each bound, before the element at `ellipsis_start`."""
        for port in _bounds(node):
            made, blank = _concat(node, port, 3 if ellipsis_start else 2), _blank(node, port, num_insertions, "unroll")
            connection = node.in_port(port).get_connection()
            if ellipsis_start:
                attrs = {"name": f"{_name(node)}/{BOUNDS[port]}/parts", "out_ports_count": 2}
                lengths = {1: int64_array(0), 2: int64_array([ellipsis_start, -1])}
                parts = create_op_with_const_inputs(graph, library_class("split", "VariadicSplit"), lengths, attrs)
                connection.set_destination(parts.in_port(0))
                made.in_port(0).connect(parts.out_port(0))
                made.in_port(2).connect(parts.out_port(1))
                made.in_port(1).connect(blank.out_port(0))
            else:
                connection.set_destination(made.in_port(1))
                made.in_port(0).connect(blank.out_port(0))
            made.out_port(0).connect(node.in_port(port))

    @staticmethod
    def extend_inputs(node: Any, num_insertions: int) -> None:
        """Append elements to each bound; where a Concat makes it, that gets an input more."""
        for port in _bounds(node):
            blank = _blank(node, port, num_insertions, "extend")
            source = node.in_port(port).get_source().node
            if source.soft_get("type") == "Concat":
                source["override_output_shape"] = True
                last = max(source.in_ports()) + 1
                source.add_input_port(last)
                source.in_port(last).connect(blank.out_port(0))
                continue
            concat = _concat(node, port, 2)
            node.in_port(port).get_connection().set_destination(concat.in_port(0))
            concat.in_port(1).connect(blank.out_port(0))
            concat.out_port(0).connect(node.in_port(port))

    @staticmethod
    def normalize_slices_attr(node: Any) -> None:
        """Make attribute `slices` a list of slices with bounds from the front, where these are known."""
        shape = node.in_port(0).data.get_shape()
        given_slices = list(node["slices"])
        steps = (
            node.in_port(3).data.get_value() if node.is_in_port_connected(3) else np.ones(len(given_slices), np.int64)
        )
        if steps is None:
            raise Error("StridedSlice: the steps of {} must be known", _name(node))
        covered = len(shape) - len(given_slices) + int(np.count_nonzero(node.new_axis_mask)) + 1
        slices: list[Any] = []
        axis = 0
        for i, s in enumerate(given_slices):
            if node.new_axis_mask[i]:
                slices.append(slice(0, 1, 1))
            elif node.ellipsis_mask[i] and not node.shrink_axis_mask[i]:
                slices += [slice(0, size, 1) for size in shape[axis : axis + covered]]
                axis += covered
            else:
                whole = slice(s, s + 1, steps[i]) if node.shrink_axis_mask[i] else s
                slices.append(_from_front(whole, shape[axis]))
                axis += 1
        node["slices"] = mo_array(slices)


def _from_front(s: Any, size: Any) -> Any:
    """Return a slice with its bounds counted from the front; unknown bounds stay."""
    if not is_a(s, slice) or is_dynamic_slice(s) or s.start == dynamic_dimension_value or size is dynamic_dimension:
        return s
    return slice(*s.indices(int(size)))


def _name(node: Any) -> str:
    return node.soft_get("name", node.id)


def _bounds(node: Any) -> list[int]:
    return [port for port in BOUNDS if node.is_in_port_connected(port)]


def _blank(node: Any, port: int, count: int, why: str) -> Any:
    """Return a constant that leaves `count` dimensions as they are."""
    value = np.ones(count, np.int64) if BOUNDS[port] == "strides" else np.zeros(count, np.int64)
    return Const(node.graph, {"name": f"{_name(node)}/{BOUNDS[port]}/{why}", "value": value}).create_node()


def _concat(node: Any, port: int, count: int) -> Any:
    attrs = {"name": f"{_name(node)}/{BOUNDS[port]}", "axis": 0, "in_ports_count": count}
    return library_class("concat", "Concat")(node.graph, attrs).create_node()
