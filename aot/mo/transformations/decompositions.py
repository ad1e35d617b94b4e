"""Operations of frameworks that become others in the front phase."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.formulas import take_place
from aot.mo.graph.graph import Graph, rename_nodes
from aot.mo.implemented import transformation
from aot.mo.ops.const import Const
from aot.mo.transformations.nodes import add, is_single, move, name_of, producer
from aot.mo.utils.arrays import float_array, int64_array, mo_array
from aot.mo.utils.types import data_type_str_to_np

ELTWISE = {"sum": "Add", "min": "Minimum", "max": "Maximum", "mul": "Mul"}


@transformation("front.Pack")
class Pack:
    """Tensors along a new axis: Unsqueeze of each, Concat"""

    op = "Pack"

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        new_node = add(graph, "concat.Concat", axis=node.axis, in_ports_count=len(node.in_ports()))
        for idx in node.in_ports():
            part = add(graph, "unsqueeze.Unsqueeze", None, int64_array([node.axis]), name=f"{name_of(node)}/Unsqueeze")
            move(node, idx, part)
            part.out_port(0).connect(new_node.in_port(idx))
        name = name_of(node)
        rename_nodes([(node, f"{name}/replaced"), (new_node, name)])
        return [new_node.id]


def _is_computed(node: Any) -> bool:
    """True if both inputs are known: computations of shapes stay as they are."""
    return all(node.in_port(i).data.get_value() is not None for i in (0, 1))


def _by_inverse(node: Any, new_node: Any, inverse: Any) -> None:
    """Put `new_node` in the place of a node with two inputs; the second one goes through `inverse`."""
    for idx in (0, 1):
        move(node, idx, new_node, idx)
    take_place(node, new_node)
    new_node.in_port(1).get_connection().insert_node(inverse)


@transformation("front.sub")
class Sub:
    """a - b: a + b * -1"""

    @staticmethod
    def sub_to_add_replacement(sub: Any) -> None:
        if _is_computed(sub):
            return
        graph, name, minus = sub.graph, name_of(sub), mo_array(-1, dtype=sub.soft_get("data_type", np.float32))
        negated = add(graph, "elementwise.Mul", None, minus, name=f"{name}/negated")
        _by_inverse(sub, add(graph, "elementwise.Add", name=f"{name}/sum"), negated)

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
        graph, name = div.graph, name_of(div)
        inverse = add(graph, "elementwise.Pow", None, np.float64(-1), name=f"{name}/reciprocal")
        _by_inverse(div, add(graph, "elementwise.Mul", name=f"{name}/product"), inverse)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="Div"):
            self.div_to_mul_replacement(node)


@transformation("front.reciprocal")
class ReciprocalReplacer:
    """1 / x: x^-1"""

    op = "Reciprocal"
    graph_condition = (is_single,)

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        new_node = add(graph, "elementwise.Pow", None, mo_array(-1.0), name=f"{name_of(node)}/power")
        move(node, 0, new_node)
        return [new_node.id]


@transformation("front.eltwise_n")
class EltwiseNReplacement:
    """An elementwise operation with many inputs: operations with two"""

    op = "EltwiseN"

    def replace_op(self, graph: Graph, node: Any) -> list[Any]:
        if len(node.in_ports()) == 1:
            source = node.in_port(0).get_source()
            return [(source.node.id, source.idx)]
        kept = {"axis": node.axis} if node.has_valid("axis") else {}
        last = node.in_port(0).get_connection()
        new_node = node
        for idx in list(node.in_ports())[1:]:
            attrs = {"name": f"{name_of(node)}/{node.operation}_{idx}", **kept}
            new_node = add(graph, f"elementwise.{ELTWISE[node.operation]}", **attrs)
            last.set_destination(new_node.in_port(0))
            move(node, idx, new_node, 1)
            last = new_node.out_port(0).get_connection()
        return [new_node.id]


@transformation("front.rank_decomposer")
class RankDecomposer:
    """Rank: the one element of the shape of the shape"""

    op = "Rank"

    def replace_sub_graph(self, graph: Graph, match: dict[str, Any]) -> None:
        node = match["op"]
        name = name_of(node)
        assert node.has_valid("output_type"), f"{name}: attribute output_type must be given"
        shape, rank = (
            add(graph, "shape.Shape", name=f"{name}/{label}", output_type=node.output_type)
            for label in ("shape_of", "rank_of")
        )
        new_node = add(graph, "squeeze.Squeeze", None, int64_array(0), name=f"{name}/rank")
        move(node, 0, shape)
        shape.out_port(0).connect(rank.in_port(0))
        rank.out_port(0).connect(new_node.in_port(0))
        take_place(node, new_node)


@transformation("front.SizeReplacer")
class SizeFrontReplacer:
    """Number of elements: the product of the shape"""

    op = "Size"

    def replace_sub_graph(self, graph: Graph, match: dict[str, Any]) -> None:
        node = match["op"]
        name = name_of(node)
        assert node.has_valid("output_type"), f"{name}: attribute output_type must be given"
        shape = add(graph, "shape.Shape", name=f"{name}/shape_of", output_type=node.output_type)
        attrs = {"name": f"{name}/product", "keep_dims": False}
        new_node = add(graph, "ReduceOps.ReduceProd", None, int64_array([0]), **attrs)
        move(node, 0, shape)
        shape.out_port(0).connect(new_node.in_port(0))
        take_place(node, new_node)


@transformation("front.Log1p")
class Log1p:
    """log(1 + x)"""

    op = "Log1p"
    graph_condition = (is_single,)

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        name = name_of(node)
        one = mo_array([1], dtype=node.data_type if node.has_valid("data_type") else np.float32)
        shifted = add(graph, "elementwise.Add", one, name=f"{name}/shifted")
        new_node = add(graph, "activation_ops.Log", name=f"{name}/log")
        move(node, 0, shifted, 1)
        shifted.out_port(0).connect(new_node.in_port(0))
        rename_nodes([(node, f"{name}/replaced"), (new_node, name)])
        return [new_node.id]


@transformation("front.ThresholdedReluDecomposition")
class ThresholdedReluDecomposition:
    """x where x > alpha, else 0: x * cast(x > alpha)"""

    graph_condition = (is_single,)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="ThresholdedRelu"):
            dtype = data_type_str_to_np(graph.graph["cmd_params"].data_type)
            above = add(graph, "elementwise.Greater", None, float_array([node.alpha]))
            kept = add(graph, "Cast.Cast", dst_type=dtype)
            new_node = add(graph, "elementwise.Mul")
            for port in (above.in_port(0), new_node.in_port(0)):
                port.connect(node.in_port(0).get_source())
            above.out_port(0).connect(kept.in_port(0))
            kept.out_port(0).connect(new_node.in_port(1))
            take_place(node, new_node)
            graph.remove_node(node.id)


@transformation("front.instance_normalization")
class InstanceNormalization:
    """MVN over all dimensions but the batch and the channels, times scale, plus bias"""

    op = "InstanceNormalization"

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        name = name_of(node)
        attrs = {"eps": node.epsilon, "eps_mode": "inside_sqrt", "normalize_variance": 1, "name": f"{name}/normalized"}
        rank = add(graph, "rank.Rank", name=f"{name}/rank")
        axes = add(
            graph, "range.Range", int64_array(2), rank, int64_array(1), name=f"{name}/axes", output_type=np.int64
        )
        normalized = add(graph, "mvn.MVN", **attrs)
        scaled = add(graph, "elementwise.Mul", name=f"{name}/scaled")
        new_node = add(graph, "elementwise.Add", name=f"{name}/shifted")
        node.in_port(0).get_source().connect(rank.in_port(0))
        move(node, 0, normalized)
        behind = add(graph, "elementwise.Add", axes, int64_array(-1), name=f"{name}/axes/behind")
        for idx, consumer in ((1, scaled), (2, new_node)):
            part = add(graph, "unsqueeze.Unsqueeze", None, behind, name=f"{consumer.name}/unsqueezed")
            move(node, idx, part)
            part.out_port(0).connect(consumer.in_port(1))
        axes.out_port(0).connect(normalized.in_port(1))
        normalized.out_port(0).connect(scaled.in_port(0))
        scaled.out_port(0).connect(new_node.in_port(0))
        rename_nodes([(node, f"{name}/replaced"), (new_node, name)])
        return [new_node.id]


@transformation("front.OneHotDepthNormalizer")
class OneHotDepthNormalizer:
    """The depth of OneHot as a scalar"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(type="OneHot"):
            if producer(node, 1).soft_get("op") != "Const":
                continue
            new_node = add(graph, "reshape.Reshape", None, int64_array([]), name=f"{name_of(node)}/depth")
            node.in_port(1).get_connection().insert_node(new_node)


@transformation("front.RollWithEmptyAxesReplacer")
class RollWithEmptyAxesReplacer:
    """Roll without axes: of all elements in a row"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        nodes: list[Any] = graph.get_op_nodes(op="Roll")
        for node in nodes:
            if not node.in_port(2).disconnected():
                continue
            name = name_of(node)
            flat = add(graph, "reshape.Reshape", None, int64_array([-1]), name=f"{name}/flat")
            shape = add(graph, "shape.Shape", name=f"{name}/shape_of")
            new_node = add(graph, "reshape.Reshape")
            node.in_port(0).get_source().connect(shape.in_port(0))
            node.in_port(0).get_connection().insert_node(flat)
            axes = Const(graph, {"name": f"{name}/axes", "value": int64_array([0])}).create_node()
            axes.out_port(0).connect(node.in_port(2))
            shape.out_port(0).connect(new_node.in_port(1))
            rename_nodes([(node, f"{name}/roll"), (new_node, name)])
            node.out_port(0).get_connection().insert_node(new_node)
