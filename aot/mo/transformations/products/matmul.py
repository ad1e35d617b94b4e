"""MatMul: transposed weights, and shapes before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, constant, name_of, nodes_of, only_consumer, producer, value_of
from aot.mo.utils.arrays import int64_array
from aot.mo.utils.shape import new_shape_node_from_shape_nodes, node_to_get_shape_value_of_indices


@transformation("back.MatMulNormalizer")
class MatMulConstTransposesExtraction:
    """a @ constant: MatMul(a, Transpose(constant)) with `transpose_b`"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="MatMul"):
            shape = node.in_port(1).data.get_shape()
            is_fixed = value_of(node, 1) is not None or producer(node, 1).has_and_set("stop_value_propagation")
            if not node.has_and_set("transpose_b") and is_fixed and np.count_nonzero(shape != 1) <= 2:
                self.insert_transpose(node, 1)
                node["transpose_b"] = True

    @staticmethod
    def insert_transpose(node: Any, in_port_idx: int) -> None:
        """Put a Transpose of the last two dimensions before an input."""
        assert node.is_in_port_connected(in_port_idx), f"{name_of(node)}: input {in_port_idx} must be connected"
        shape = node.in_port(in_port_idx).data.get_shape()
        assert shape is not None, f"{name_of(node)}: the shape of input {in_port_idx} must be known"
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        name = f"{name_of(node)}/input_{in_port_idx}/transposed"
        source = node.in_port(in_port_idx).get_source()
        new_node = add(node.graph, "transpose.Transpose", source, int64_array(order), name=name)
        node.in_port(in_port_idx).get_connection().set_source(new_node.out_port(0))
        new_node["override_output_shape"] = True


@transformation("back.MatMulNormalizer")
class PullTransposeThroughFQUp:
    """Transpose(FakeQuantize(constant, ..)): FakeQuantize of transposed inputs"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Transpose"):
            quantize = producer(node)
            if quantize.soft_get("type") != "FakeQuantize" or only_consumer(quantize) is None:
                continue
            if producer(quantize).soft_get("type") == "Const":
                self._pull(node, quantize)

    @staticmethod
    def _pull(node: Any, quantize: Any) -> None:
        graph, rank = node.graph, len(node.in_port(0).data.get_shape())
        node.out_port(0).get_connection().set_source(quantize.out_port(0))
        node.in_port(0).disconnect()
        for idx, port in quantize.in_ports().items():
            source, missing = port.get_source(), rank - len(port.data.get_shape())
            if missing:
                name = f"{name_of(quantize)}/input_{idx}/unsqueezed"
                source = add(graph, "unsqueeze.Unsqueeze", source, int64_array(range(missing)), name=name)
            copy = node.copy_node({"override_output_shape": True})
            node.in_port(1).get_source().connect(copy.in_port(1))
            port.get_connection().set_source(copy.out_port(0))
            (source.out_port(0) if missing else source).connect(copy.in_port(0))


@transformation("back.MatMulNormalizer")
class SmartReshape_HC_Reshape_MatMul:  # noqa: N801  (Model Optimizer's name, which extensions give)
    """Reshape to a constant matrix before MatMul: the inner size is that of the other operand"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="MatMul"):
            for side in (0, 1):
                reshape, other = producer(node, side), producer(node, 1 - side)
                if reshape.soft_get("type") != "Reshape" or other.soft_get("type") in ("Reshape", "Transpose"):
                    continue
                target = value_of(reshape, 1)
                if producer(reshape, 1).soft_get("type") == "Const" and len(target) == 2:
                    self._relax(node, reshape, side)

    @staticmethod
    def _relax(node: Any, reshape: Any, side: int) -> None:
        source = node.in_port(1 - side).get_source()
        name = name_of(source.node)
        of_other, of_own = ("transpose_b", "transpose_a") if side == 0 else ("transpose_a", "transpose_b")
        inner_of_other = (-1 if node[of_other] else -2) if side == 0 else (-2 if node[of_other] else -1)
        rank = len(source.data.get_shape())
        shape = add(node.graph, "shape.Shape", source, name=f"{name}/shape_of")
        inner = node_to_get_shape_value_of_indices(shape, [inner_of_other % rank])
        rest = constant(node.graph, int64_array([-1]), f"{name}/rest")
        inner_last = bool(node[of_own]) == (side == 1)
        sizes = [rest, inner] if inner_last else [inner, rest]
        new_node = new_shape_node_from_shape_nodes(sizes)
        reshape.in_port(1).get_connection().set_source(new_node.out_port(0))
