"""QuantizeLinear and DequantizeLinear of ONNX files as operations of the operation sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.formulas import take_place
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, constant, move, name_of, nodes_of
from aot.mo.utils.arrays import float_array, int64_array
from aot.mo.utils.error import Error
from aot.mo.utils.types import data_type_str_to_np

LEVELS = 256  # levels of 8 bits
BOUNDS = {np.dtype(np.int8): (-128.0, 127.0), np.dtype(np.uint8): (0.0, 255.0)}


def _is_nchw(graph: Graph) -> bool:
    return graph.graph["layout"] == "NCHW"


def _shape_along_axis(node: Any, tensor: Any) -> Any:
    """Return the shape of scales that belong to a node's axis: ones beside it. None for one scale of all elements."""
    scales = node.in_port(1).data.get_shape()
    assert scales is not None, f"{name_of(node)}: the shape of the scale must be known"
    axis = node.soft_get("axis", None)
    if axis is None or not len(scales) or scales[0] <= 1:
        return None
    shape = tensor.data.get_shape()
    target = np.ones(len(shape), np.int64)
    target[axis] = shape[axis]
    return int64_array(target)


def _shaped(node: Any, idx: int, shape: Any, name: str) -> None:
    """Put a Reshape before an input, unless `shape` is None."""
    if shape is not None:
        node.in_port(idx).get_connection().insert_node(add(node.graph, "reshape.Reshape", None, shape, name=name))


@transformation("middle.quantize_linear_resolver")
class QuantizeLinearResolver:
    """QuantizeLinear(x, s, zero): Convert(FakeQuantize(x, s * (low - zero), s * (high - zero), low, high))"""

    graph_condition = (_is_nchw,)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="QuantizeLinear"):
            if not node.has_and_set("isolated"):
                self.quantize_to_fakequantize(graph, node)

    @staticmethod
    def quantize_to_fakequantize(graph: Graph, quantize_node: Any, set_stop_value_propagation: bool = False) -> None:
        """Replace one node; `set_stop_value_propagation`: keep the FakeQuantize of a constant."""
        node, name = quantize_node, name_of(quantize_node)
        shape = _shape_along_axis(node, node.in_port(0))
        zero = node.in_port(2).get_source().node if node.is_in_port_connected(2) else None
        if zero is None:
            zero = constant(graph, np.array(0, np.uint8), f"{name}/zero_point")
        assert zero.soft_get("type") == "Const", f"{name}: the zero point of QuantizeLinear must be a constant"
        dtype = zero.value.dtype
        if dtype not in BOUNDS:
            raise Error("{}: a zero point is i8 or u8, got {}", name, dtype)
        bounds = [float_array(bound) for bound in BOUNDS[dtype]]
        fake_quantize = add(
            graph, "fakequantize.FakeQuantize", None, None, None, *bounds, levels=LEVELS, name=f"{name}/FakeQuantize"
        )
        if set_stop_value_propagation:
            fake_quantize["stop_compression"] = fake_quantize["stop_value_propagation"] = True
        move(node, 0, fake_quantize)
        scale = node.in_port(1).get_source()
        node.in_port(1).disconnect()
        for idx, (bound, side) in enumerate(zip(bounds, ("low", "high"), strict=True), 1):
            limit = add(graph, "elementwise.Mul", scale, float_array(bound - zero.value), name=f"{name}/{side}")
            limit.out_port(0).connect(fake_quantize.in_port(idx))
            _shaped(fake_quantize, idx, shape, f"{name}/{side}/shaped")
        take_place(node, add(graph, "Cast.Cast", fake_quantize, dst_type=dtype.type, name=f"{name}/convert"))


@transformation("middle.dequantize_linear_resolver")
class DequantizeLinearResolver:
    """DequantizeLinear(x, scale, zero): (Convert(x) - zero) * scale"""

    graph_condition = (_is_nchw,)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        dtype = data_type_str_to_np(graph.graph["cmd_params"].data_type)
        for node in nodes_of(graph, op="DequantizeLinear"):
            name = name_of(node)
            shape = _shape_along_axis(node, node.in_port(0))
            last = add(graph, "Cast.Cast", dst_type=dtype, name=f"{name}/convert")
            move(node, 0, last)
            if node.is_in_port_connected(2):
                shifted = add(graph, "elementwise.Sub", last, name=f"{name}/shifted", zero_point_sub=True)
                move(node, 2, shifted, 1)
                _shaped(shifted, 1, shape, f"{name}/zero_point/shaped")
                last = shifted
            new_node = add(graph, "elementwise.Mul", last, name=f"{name}/scaled", can_be_fused=False)
            move(node, 1, new_node, 1)
            _shaped(new_node, 1, shape, f"{name}/scale/shaped")
            take_place(node, new_node)


@transformation("middle.quantize_dequantize_linear_resolver")
class QuantizeDequantizeLinearResolver:
    """DequantizeLinear(QuantizeLinear(constant)): FakeQuantize that is not folded stands for QuantizeLinear"""

    graph_condition = (_is_nchw,)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="DequantizeLinear"):
            source = node.in_port(0).get_source().node
            if source.soft_get("op") != "QuantizeLinear" or not _is_constant(source, 0):
                continue
            parts = [(n, i) for n in (source, node) for i in (1, 2)]
            if not all(n.is_in_port_connected(i) for n, i in parts):
                continue
            values = [n.in_port(i).get_source().node.soft_get("value", None) for n, i in parts]
            equal = np.array_equal(values[0], values[2]) and np.array_equal(values[1], values[3])
            if equal or all(_is_constant(n, i) for n, i in parts):
                QuantizeLinearResolver.quantize_to_fakequantize(graph, source, True)
                source["isolated"] = True


def _is_constant(node: Any, idx: int) -> bool:
    return node.in_port(idx).get_source().node.soft_get("op") == "Const"
