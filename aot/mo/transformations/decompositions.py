"""Operations of frameworks that become others in the front phase."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.formulas import take_place
from aot.mo.front.tf.graph_utils import create_op_with_const_inputs
from aot.mo.graph.graph import Graph, rename_nodes
from aot.mo.implemented import transformation
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class
from aot.mo.utils.arrays import float_array, int64_array, mo_array
from aot.mo.utils.types import data_type_str_to_np

ELTWISE = {"sum": "Add", "min": "Minimum", "max": "Maximum", "mul": "Mul"}


def _op(graph: Graph, module: str, name: str, attrs: dict[str, Any], values: dict[int, Any] | None = None) -> Any:
    """Add an operation of the library, with constants at the inputs that `values` numbers."""
    return create_op_with_const_inputs(graph, library_class(module, name), values or {}, attrs)


def _name(node: Any) -> str:
    return node.soft_get("name", node.id)


def _move(node: Any, idx: int, made: Any, to: int = 0) -> None:
    """Let an input of a new operation read what an input of the old one read."""
    node.in_port(idx).get_connection().set_destination(made.in_port(to))


@transformation("front.Pack")
class Pack:
    """Tensors along a new axis: Unsqueeze of each, Concat"""

    op = "Pack"

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        made = _op(graph, "concat", "Concat", {"axis": node.axis, "in_ports_count": len(node.in_ports())})
        for idx in node.in_ports():
            part = _op(
                graph, "unsqueeze", "Unsqueeze", {"name": f"{_name(node)}/Unsqueeze"}, {1: int64_array([node.axis])}
            )
            _move(node, idx, part)
            part.out_port(0).connect(made.in_port(idx))
        name = _name(node)
        rename_nodes([(node, f"{name}/replaced"), (made, name)])
        return [made.id]


def _is_computed(node: Any) -> bool:
    """True if both inputs are known: what computes a shape stays as it is."""
    return all(node.in_port(i).data.get_value() is not None for i in (0, 1))


def _by_inverse(node: Any, made: Any, inverse: Any) -> None:
    """Put `made` in the place of a node with two inputs, whose second one goes through `inverse`."""
    for idx in (0, 1):
        _move(node, idx, made, idx)
    take_place(node, made)
    made.in_port(1).get_connection().insert_node(inverse)


@transformation("front.sub")
class Sub:
    """a - b: a + b * -1"""

    @staticmethod
    def sub_to_add_replacement(sub: Any) -> None:
        if _is_computed(sub):
            return
        graph, name, minus = sub.graph, _name(sub), mo_array(-1, dtype=sub.soft_get("data_type", np.float32))
        negated = _op(graph, "elementwise", "Mul", {"name": f"{name}/negated"}, {1: minus})
        _by_inverse(sub, _op(graph, "elementwise", "Add", {"name": f"{name}/sum"}), negated)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="Sub"):
            if not node.has_and_set("zero_point_sub"):
                self.sub_to_add_replacement(node)


@transformation("front.div")
class Div:
    """a / b: a * b^-1, except for integers"""

    @staticmethod
    def div_to_mul_replacement(div: Any) -> None:
        divisor = div.in_port(1).data.get_value()
        if _is_computed(div) or (divisor is not None and np.issubdtype(divisor.dtype, np.integer)):
            return
        graph, name = div.graph, _name(div)
        inverse = _op(graph, "elementwise", "Pow", {"name": f"{name}/reciprocal"}, {1: np.float64(-1)})
        _by_inverse(div, _op(graph, "elementwise", "Mul", {"name": f"{name}/product"}), inverse)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="Div"):
            self.div_to_mul_replacement(node)


@transformation("front.reciprocal")
class ReciprocalReplacer:
    """1 / x: x^-1"""

    op = "Reciprocal"

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        made = _op(graph, "elementwise", "Pow", {"name": f"{_name(node)}/power"}, {1: mo_array(-1.0)})
        _move(node, 0, made)
        return [made.id]


@transformation("front.eltwise_n")
class EltwiseNReplacement:
    """An elementwise operation with many inputs: operations with two"""

    op = "EltwiseN"

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        kept = {"axis": node.axis} if node.has_valid("axis") else {}
        last = node.in_port(0).get_connection()
        made = node
        for idx in list(node.in_ports())[1:]:
            attrs = {"name": f"{_name(node)}/{node.operation}_{idx}", **kept}
            made = _op(graph, "elementwise", ELTWISE[node.operation], attrs)
            last.set_destination(made.in_port(0))
            _move(node, idx, made, 1)
            last = made.out_port(0).get_connection()
        return [made.id]


@transformation("front.rank_decomposer")
class RankDecomposer:
    """Rank: the one element of the shape of the shape"""

    op = "Rank"

    def replace_sub_graph(self, graph: Graph, match: dict[str, Any]) -> None:
        node = match["op"]
        name = _name(node)
        assert node.has_valid("output_type"), f"{name}: attribute output_type must be given"
        shape, rank = (
            _op(graph, "shape", "Shape", {"name": f"{name}/{label}", "output_type": node.output_type})
            for label in ("shape_of", "rank_of")
        )
        made = _op(graph, "squeeze", "Squeeze", {"name": f"{name}/rank"}, {1: int64_array(0)})
        _move(node, 0, shape)
        shape.out_port(0).connect(rank.in_port(0))
        rank.out_port(0).connect(made.in_port(0))
        take_place(node, made)


@transformation("front.SizeReplacer")
class SizeFrontReplacer:
    """Number of elements: the product of the shape"""

    op = "Size"

    def replace_sub_graph(self, graph: Graph, match: dict[str, Any]) -> None:
        node = match["op"]
        name = _name(node)
        assert node.has_valid("output_type"), f"{name}: attribute output_type must be given"
        shape = _op(graph, "shape", "Shape", {"name": f"{name}/shape_of", "output_type": node.output_type})
        attrs = {"name": f"{name}/product", "keep_dims": False}
        made = _op(graph, "ReduceOps", "ReduceProd", attrs, {1: int64_array([0])})
        _move(node, 0, shape)
        shape.out_port(0).connect(made.in_port(0))
        take_place(node, made)


@transformation("front.Log1p")
class Log1p:
    """log(1 + x)"""

    op = "Log1p"

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        name = _name(node)
        one = mo_array([1], dtype=node.data_type if node.has_valid("data_type") else np.float32)
        shifted = _op(graph, "elementwise", "Add", {"name": f"{name}/shifted"}, {0: one})
        made = _op(graph, "activation_ops", "Log", {"name": f"{name}/log"})
        _move(node, 0, shifted, 1)
        shifted.out_port(0).connect(made.in_port(0))
        rename_nodes([(node, f"{name}/replaced"), (made, name)])
        return [made.id]


@transformation("front.ThresholdedReluDecomposition")
class ThresholdedReluDecomposition:
    """x where x > alpha, else 0: x * cast(x > alpha)"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="ThresholdedRelu"):
            dtype = data_type_str_to_np(graph.graph["cmd_params"].data_type)
            above = _op(graph, "elementwise", "Greater", {}, {1: float_array([node.alpha])})
            kept = _op(graph, "Cast", "Cast", {"dst_type": dtype})
            made = _op(graph, "elementwise", "Mul", {})
            for port in (above.in_port(0), made.in_port(0)):
                port.connect(node.in_port(0).get_source())
            above.out_port(0).connect(kept.in_port(0))
            kept.out_port(0).connect(made.in_port(1))
            take_place(node, made)
            graph.remove_node(node.id)


@transformation("front.instance_normalization")
class InstanceNormalization:
    """MVN over all dimensions but the batch and the channels, times scale, plus bias"""

    op = "InstanceNormalization"

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        name = _name(node)
        attrs = {"eps": node.epsilon, "eps_mode": "inside_sqrt", "normalize_variance": 1, "name": f"{name}/normalized"}
        rank = _op(graph, "rank", "Rank", {"name": f"{name}/rank"})
        limits = {0: int64_array(2), 2: int64_array(1)}
        axes = _op(graph, "range", "Range", {"name": f"{name}/axes", "output_type": np.int64}, limits)
        normalized = _op(graph, "mvn", "MVN", attrs)
        scaled = _op(graph, "elementwise", "Mul", {"axis": 1, "name": f"{name}/scaled"})
        made = _op(graph, "elementwise", "Add", {"axis": 1, "name": f"{name}/shifted"})
        node.in_port(0).get_source().connect(rank.in_port(0))
        for idx, reader in enumerate((normalized, scaled, made)):
            _move(node, idx, reader, min(idx, 1))
        rank.out_port(0).connect(axes.in_port(1))
        axes.out_port(0).connect(normalized.in_port(1))
        normalized.out_port(0).connect(scaled.in_port(0))
        scaled.out_port(0).connect(made.in_port(0))
        rename_nodes([(node, f"{name}/replaced"), (made, name)])
        return [made.id]


@transformation("front.OneHotDepthNormalizer")
class OneHotDepthNormalizer:
    """The depth of OneHot as a scalar"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(type="OneHot"):
            made = _op(graph, "reshape", "Reshape", {"name": f"{_name(node)}/depth"}, {1: int64_array([])})
            node.in_port(1).get_connection().insert_node(made)


@transformation("front.RollWithEmptyAxesReplacer")
class RollWithEmptyAxesReplacer:
    """Roll without axes: of all elements in a row"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        nodes: list[Any] = graph.get_op_nodes(op="Roll")
        for node in nodes:
            if not node.in_port(2).disconnected():
                continue
            name = _name(node)
            flat = _op(graph, "reshape", "Reshape", {"name": f"{name}/flat"}, {1: int64_array([-1])})
            shape = _op(graph, "shape", "Shape", {"name": f"{name}/shape_of"})
            made = _op(graph, "reshape", "Reshape", {})
            node.in_port(0).get_source().connect(shape.in_port(0))
            node.in_port(0).get_connection().insert_node(flat)
            axes = Const(graph, {"name": f"{name}/axes", "value": int64_array([0])}).create_node()
            axes.out_port(0).connect(node.in_port(2))
            shape.out_port(0).connect(made.in_port(1))
            rename_nodes([(node, f"{name}/roll"), (made, name)])
            node.out_port(0).get_connection().insert_node(made)
