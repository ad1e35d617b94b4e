"""Upsample, repeated slices and Interpolate operations in a row, which become one Interpolate."""

from __future__ import annotations

from math import isclose
from typing import Any

import numpy as np

from aot.mo.formulas import take_place
from aot.mo.front.common.layout import get_depth_dim, get_height_dim, get_width_dim
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.ops.library import library_class
from aot.mo.transformations.nodes import add, constant, move, name_of, nodes_of, source_of, value_of
from aot.mo.utils.arrays import float32_array, int64_array, mo_array, shape_array
from aot.mo.utils.shape import node_to_get_shape_value_of_indices

NEAR = 1e-5  # difference of a scale from 1 that is none
BY_SCALES: dict[str, Any] = {
    "antialias": 0,
    "pads_begin": int64_array([0]),
    "pads_end": int64_array([0]),
    "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "round_prefer_floor",
    "cube_coeff": -0.75,
    "shape_calculation_mode": "scales",
    "version": "opset4",
    "in_ports_count": 4,
}
ATTRIBUTES: dict[str, dict[str, Any]] = {  # attributes that merged operations must share, with their defaults
    "opset1": {"mode": None, "align_corners": 0, "antialias": 0, "pads_begin": 0, "pads_end": 0},
    "opset4": {
        "mode": None,
        "shape_calculation_mode": None,
        **{name: value for name, value in BY_SCALES.items() if name not in ("version", "in_ports_count")},
    },
}


def _sizes(graph: Graph, source: Any, axes: list[int], name: str, *stride: Any) -> Any:
    """Return the sizes of neighbouring axes of a tensor in f32."""
    ones, zeros = int64_array([1]), int64_array([0])
    masks = {"begin_mask": ones, "end_mask": ones}
    masks |= {"new_axis_mask": zeros, "shrink_axis_mask": zeros, "ellipsis_mask": zeros}
    shape = add(graph, "shape.Shape", source, name=f"{name}/shape_of")
    bounds = int64_array([axes[0]]), int64_array([axes[-1] + 1])
    part = add(graph, "strided_slice.StridedSlice", shape, *bounds, *stride, name=f"{name}/sizes", **masks)
    return add(graph, "Cast.Cast", part, dst_type=np.float32, name=f"{name}/sizes/float")


@transformation("middle.UpsampleToResample")
class UpsampleToResample:
    """Upsample of 4 or 5 dimensions by known scales: Interpolate"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Upsample"):
            shape = node.in_port(0).data.get_shape()
            if len(shape) in (4, 5) and node.out_nodes():
                axes = _spatial(graph.graph["layout"], len(shape))
                scales = _scales(node, axes)
                if scales is not None:
                    self._replace(node, axes, float32_array(scales))

    @staticmethod
    def _replace(node: Any, axes: list[int], scales: Any) -> None:
        graph, name, source = node.graph, name_of(node), node.in_port(0).get_source()
        if node.is_in_port_connected(1):
            node.in_port(1).disconnect()
        factor = add(
            graph,
            "elementwise.Mul",
            _sizes(graph, source, axes, name, int64_array([1])),
            scales,
            name=f"{name}/scaled",
        )
        sizes = add(graph, "Cast.Cast", factor, dst_type=np.int64, name=f"{name}/scaled/integers")
        attrs = {**BY_SCALES, "mode": node["mode"], "name": f"{name}/interpolate"}
        new_node = add(graph, "interpolate.Interpolate", None, sizes, scales, int64_array(axes), **attrs)
        move(node, 0, new_node)
        take_place(node, new_node)


def _spatial(layout: str, rank: int) -> list[int]:
    """Return the axes of depth, height and width."""
    plane = [get_height_dim(layout, rank), get_width_dim(layout, rank)]
    return plane if rank == 4 else [get_depth_dim(layout, rank), *plane]


def _scales(node: Any, axes: list[int]) -> list[float] | None:
    """Return the scale of each axis; None if they are unknown, or if the first two dimensions change."""
    if not node.is_in_port_connected(1):
        return [node["height_scale"], node["width_scale"]] if len(axes) == 2 else None
    scales = value_of(node, 1)
    if scales is None or not all(isclose(scale, 1, rel_tol=NEAR) for scale in scales[:2]):
        return None
    rule = f"{name_of(node)}: Upsample has a scale for each of {len(axes) + 2} dimensions, got {len(scales)}"
    assert len(scales) == len(axes) + 2, rule
    return [scales[axis] for axis in axes]


@transformation("middle.SplitConcatPairToInterpolate")
class SplitConcatPairToInterpolate:
    """Concat that repeats each part of a Split n times: Interpolate, nearest, by n; of 4 or 5 dimensions"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        pairs = [(n, c) for n in nodes_of(graph, op="Split") if (c := self._concat(n)) is not None]
        for split, concat in pairs:
            name, source = name_of(split), split.in_port(0).get_source()
            axis = int(split.in_port(1).get_source().node.value)
            count = sum(len(port.get_destinations()) for port in split.out_ports().values())
            scale = constant(graph, float32_array([count // len(split.out_ports())]), f"{name}/scale")
            sizes = _sizes(graph, source, [axis], name)
            scaled = add(graph, "elementwise.Mul", sizes, scale, name=f"{name}/scaled")
            whole = add(graph, "activation_ops.Floor", scaled, name=f"{name}/floor")
            wanted = add(graph, "Cast.Cast", whole, dst_type=np.int64, name=f"{name}/integers")
            attrs = {**BY_SCALES, "mode": "nearest", "name": f"{name}/interpolate", "maybe_part_of_sequence": True}
            new_node = add(graph, "interpolate.Interpolate", None, wanted, scale, int64_array([axis]), **attrs)
            concat.out_port(0).get_connection().set_source(new_node.out_port(0))
            move(split, 0, new_node)

    @staticmethod
    def _concat(split: Any) -> Any:
        """Return the one consumer, if it is a Concat of all outputs in their order, each as often."""
        if len(split.in_port(0).data.get_shape()) not in (4, 5):
            return None
        groups = [port.get_destinations() for port in split.out_ports().values()]
        port_numbers = [port.idx for group in groups for port in group]
        consumers = {port.node.id: port.node for group in groups for port in group}
        if (
            len(consumers) != 1
            or len({len(group) for group in groups}) != 1
            or port_numbers != list(range(len(port_numbers)))
        ):
            return None
        (consumer,) = consumers.values()
        sources = {source.node.id for i in consumer.in_ports() if (source := source_of(consumer, i)) is not None}
        alone = len(sources) == (1 if consumer.has_valid("axis") else 2)  # TensorFlow's has the axis as an input
        return consumer if consumer.soft_get("type") == "Concat" and alone else None


@transformation("middle.UnsqueezeTileReshapeBlockToInterpolate")
class UnsqueezeTileReshapeBlockToInterpolate:
    """Reshape(Tile(Unsqueeze(x, axis))), which repeats the elements of an axis: Interpolate, nearest"""

    force_shape_inference = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Reshape"):
            tile = node.in_port(0).get_source().node
            unsqueeze = tile.in_port(0).get_source().node if tile.soft_get("op") == "Tile" else tile
            if unsqueeze.soft_get("op") != "Unsqueeze":
                continue
            repeated = self._repeated(node, tile, unsqueeze)
            if repeated is not None:
                self._replace(node, unsqueeze, *repeated)

    @staticmethod
    def _repeated(node: Any, tile: Any, unsqueeze: Any) -> tuple[int, Any] | None:
        """Return an axis and how often its elements are repeated; None for another block of three operations."""
        rank = len(unsqueeze.in_port(0).data.get_shape())
        constants = [n.in_port(1).get_source().node.soft_get("value", None) for n in (unsqueeze, tile)]
        target = value_of(node, 1)
        if rank not in (4, 5) or any(v is None for v in constants) or target is None:
            return None
        axes, times = constants
        if np.size(axes) != 1 or np.size(times) != rank + 1 or len(target) != rank:
            return None
        axis = int(np.reshape(axes, -1)[0])
        if axis == 0 or not np.array_equal(np.delete(times, axis), np.ones(rank)):
            return None
        return axis - 1, times[axis]

    @staticmethod
    def _replace(node: Any, unsqueeze: Any, axis: int, times: Any) -> None:
        graph, name, source = node.graph, name_of(unsqueeze), unsqueeze.in_port(0).get_source()
        shape = add(graph, "shape.Shape", source, name=f"{name}/shape_of")
        size = node_to_get_shape_value_of_indices(shape, [axis])
        sizes = add(graph, "elementwise.Mul", size, int64_array([times]), name=f"{name}/scaled")
        attrs = {**BY_SCALES, "mode": "nearest", "maybe_part_of_sequence": True, "name": f"{name}/interpolate"}
        scale = float32_array([times])
        new_node = add(graph, "interpolate.Interpolate", None, sizes, scale, int64_array([axis]), **attrs)
        move(unsqueeze, 0, new_node)
        take_place(node, new_node)


@transformation("middle.InterpolateSequenceToInterpolate")
class InterpolateSequenceToInterpolate:
    """Interpolate operations in a row, of different axes and equal attributes: one"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        runs: list[list[Any]] = []
        passed: set[int] = set()  # axes of the last run
        for node in graph.pseudo_topological_sort():
            if node.kind != "op" or node.op != "Interpolate":
                continue
            axes = set(_axes(node).tolist())
            if runs and not passed & axes and self._continues(runs[-1][-1], node):
                runs[-1].append(node)
                passed |= axes
            else:
                runs.append([node])
                passed = axes
        for run in runs:
            if len(run) > 1:
                self._join(graph, run)

    @staticmethod
    def _continues(first: Any, second: Any) -> bool:
        """True if nothing but `second` reads the values of `first`, and their attributes are equal."""
        consumers = [port.node.id for port in first.out_port(0).get_destinations()]
        shape_too = 2 if first.has_and_set("maybe_part_of_sequence") else 1  # a ShapeOf that computes sizes
        if second.id not in consumers or len(consumers) > shape_too:
            return False
        version = first.get_opset()
        return version == second.get_opset() and all(
            np.array_equal(first.soft_get(name, value), second.soft_get(name, value))
            for name, value in ATTRIBUTES.get(version, {"version": None}).items()
        )

    @staticmethod
    def _join(graph: Graph, run: list[Any]) -> None:
        version = run[0].get_opset()
        ports = range(1, 2 if version == "opset1" else 3)  # sizes, and scales
        given = [[value_of(node, i) for i in ports] for node in run]
        if version not in ATTRIBUTES or any(value is None for values in given for value in values):
            return
        rows = sorted(
            (row for node, values in zip(run, given, strict=True) for row in zip(_axes(node), *values, strict=True)),
            key=lambda row: row[0],
        )
        axes, sizes, *scales = map(list, zip(*rows, strict=True))
        attrs = {name: run[0].soft_get(name, value) for name, value in ATTRIBUTES[version].items()}
        attrs |= {"version": version, "name": f"{name_of(run[-1])}/joined"}
        operands = [None, shape_array(sizes)]
        if version == "opset1":
            attrs["axes"] = int64_array(axes)
        else:
            operands += [mo_array(scales[0]), int64_array(axes)]
            attrs["in_ports_count"] = 4
        new_node = add(graph, "interpolate.Interpolate", *operands, **attrs)
        move(run[0], 0, new_node)
        take_place(run[-1], new_node)


def _axes(node: Any) -> Any:
    return library_class("interpolate", "Interpolate").get_axes(node)
