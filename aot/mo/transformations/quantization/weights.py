"""Constant weights after FakeQuantize as integers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from aot.ir.types import Array
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, constant, move, name_of, nodes_of
from aot.mo.utils.arrays import mo_array
from aot.mo.utils.types import PACKED, np_data_type_to_destination_type

NEAR = 1e-4  # distance of a zero point from an integer that is left out


@transformation("back.compress_quantized_weights")
class CompressQuantizeWeights:
    """FakeQuantize(constant): (Convert(integers) - zero point) * scale"""

    force_clean_up = True
    QUANTIZATION_MAP: ClassVar[dict[int, tuple[Any, str]]] = {256: (np.int8, "signed"), 16: (PACKED["i4"], "signed")}

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="FakeQuantize"):
            levels = node.soft_get("levels", None)
            if levels is None or not 2 < levels <= max(self.QUANTIZATION_MAP) or node.has_and_set("stop_compression"):
                continue
            source = node.in_port(0).get_source().node
            weights = source.in_port(0).get_source().node if source.soft_get("type") == "Convert" else source
            if weights.soft_get("type") != "Const":
                continue
            if source.id == weights.id:
                original = weights.value.dtype
            else:
                original = source.dst_type
                source["stop_value_propagation"] = False
                source["infer"](source)
            quantized, mode = self.QUANTIZATION_MAP[min(n for n in self.QUANTIZATION_MAP if n >= levels)]
            self.quantize_data(node, original, quantized, mode)
            self.dequantize_data(node, original, quantized)

    @staticmethod
    def quantize_data(fake_quantize: Any, dst_type: Any, quantized_type: Any, mode: str) -> None:
        """Put a copy of the node that gives integers, and a Convert to their type, before the node.

        `mode`, signed or unsigned, says which integers the levels are; the node maps them to its output range.
        """
        assert mode in ("signed", "unsigned"), f"mode is signed or unsigned, got {mode}"
        node, graph, name = fake_quantize, fake_quantize.graph, name_of(fake_quantize)
        copy = node.copy_node({"name": f"{name}/integers", "stop_value_propagation": False}, graph)
        for idx in range(3):
            move(node, idx, copy, idx)
        least = -(node.levels // 2) if mode == "signed" else 0
        shape = (1,) if copy.in_node(0).shape.size else ()
        for idx, bound in enumerate((least, least + node.levels - 1), 1):
            value = np.full(shape, bound, dst_type)
            limit = constant(graph, value, f"{name}/bound_{idx}")
            limit.out_port(0).connect(copy.in_port(idx + 2))
            limit.out_port(0).connect(node.in_port(idx))
        weights_name = name_of(copy.in_port(0).get_source().node)
        attrs = {"dst_type": quantized_type, "stop_value_propagation": False, "name": f"{weights_name}/quantized"}
        add(graph, "Cast.Cast", copy, **attrs).out_port(0).connect(node.in_port(0))

    @staticmethod
    def dequantize_data(fake_quantize: Any, dst_type: Any, quantized_type: Any) -> None:
        """Replace a FakeQuantize of integers by (Convert(integers) - zero point) * scale."""
        node, graph, name = fake_quantize, fake_quantize.graph, name_of(fake_quantize)
        integers = node.in_port(0).get_source().node
        rule = f"{name}: a Convert to {quantized_type} gives the integers"
        assert integers.soft_get("type") == "Convert" and integers.dst_type == quantized_type, rule
        kept = f"{name_of(integers)}/to_{np_data_type_to_destination_type(dst_type)}"
        data = add(graph, "Cast.Cast", name=kept, dst_type=dst_type, stop_value_propagation=True)
        move(node, 0, data)
        scale, zero_point = _scale_and_zero_point(node, dst_type)
        shifted = add(graph, "elementwise.Sub", data, zero_point, name=f"{name}/shifted")
        new_node = add(graph, "elementwise.Mul", shifted, scale, name=f"{name}/scaled")
        node.out_port(0).get_connection().set_source(new_node.out_port(0))
        graph.remove_nodes_from([node.id, *(data.id for data in node.out_nodes().values())])


def _scale_and_zero_point(node: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the operations that compute the two numbers of a FakeQuantize, in f32 at least.

    A scale of 0 has the zero point 0.
    """
    graph, name = node.graph, name_of(node)
    input_type = node.out_port(0).get_data_type() if node.out_port(0).is_data_type_defined() else None
    narrow = input_type is not None and np.dtype(input_type).itemsize < np.dtype(np.float32).itemsize

    def cast(operand: Any, label: str, dst: Any) -> Any:
        return add(graph, "Cast.Cast", operand, name=f"{name}/{label}", dst_type=dst) if narrow else operand

    limits = ("input_low", "input_high", "output_low", "output_high")
    low, high, out_low, out_high = (
        cast(node.in_port(i).get_source(), label, np.float32) for i, label in enumerate(limits, 1)
    )
    output_range = add(graph, "elementwise.Sub", out_high, out_low, name=f"{name}/output_range")
    input_range = add(graph, "elementwise.Sub", high, low, name=f"{name}/input_range")
    scale = add(graph, "elementwise.Div", output_range, input_range, name=f"{name}/scale")
    scaled_low = add(graph, "elementwise.Div", out_low, scale, name=f"{name}/output_low_of_integers")
    shift = add(graph, "elementwise.Sub", low, scaled_low, name=f"{name}/shift")
    zero = constant(graph, mo_array(0, dtype=dtype), f"{name}/zero")
    flat = add(graph, "elementwise.Equal", scale, zero, name=f"{name}/scale_is_zero")
    zero_point = add(graph, "select.Select", flat, zero, shift, name=f"{name}/zero_point")
    return cast(scale, "scale/narrowed", input_type), cast(zero_point, "zero_point/narrowed", input_type)


@transformation("back.compress_quantized_weights")
class ZeroPointOptimizer:
    """Convert(integers) - zero point: Convert(integers - zero point), where the zero point is an integer that fits"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Subtract"):
            convert, point = (node.in_port(i).get_source().node for i in (0, 1))
            if convert.soft_get("type") != "Convert" or point.soft_get("type") != "Const":
                continue
            weights = convert.in_port(0).get_source().node
            if weights.soft_get("type") == "Const" and self._is_absorbed(weights, point, convert):
                node.out_port(0).get_connection().set_source(convert.out_port(0))

    @staticmethod
    def _is_absorbed(held: Any, point: Any, convert: Any) -> bool:
        """True if the integers, changed where they must be, need no zero point."""
        zero_point: Any = point.out_port(0).data.get_value()
        if np.allclose(zero_point, 0):
            return True
        weights: Array | None = held.out_port(0).data.get_value()
        shared = any(len(n.out_port(0).get_destinations()) > 1 for n in (held, convert))
        if weights is None or weights.dtype != np.int8 or shared:
            return False
        integer_point: Any = np.asarray(np.round(zero_point), np.int64)
        shifted: Any = weights.astype(np.int64) - integer_point
        bounds = np.iinfo(np.int8)
        if (
            shifted.min() < bounds.min
            or shifted.max() > bounds.max
            or not np.allclose(zero_point, integer_point, rtol=0, atol=NEAR)
        ):
            return False
        changed = shifted.astype(np.int8)
        held["value"] = changed
        held.out_node(0)["value"] = changed
        return True
