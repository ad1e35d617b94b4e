"""Normalisations as MVN, products and sums."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from aot.mo.formulas import Found, Term, replace_formulas, take_place, term
from aot.mo.graph.graph import Graph, Node
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, constant, move, name_of, nodes_of, value_of
from aot.mo.utils.arrays import int64_array, mo_array
from aot.mo.utils.error import Error
from aot.mo.utils.shape import (
    get_shape_and_rank_nodes_by_port,
    new_shape_node_from_shape_nodes,
    node_to_get_batch_value,
    node_to_get_features_dimension_value,
    node_to_get_spatial_dimensions_value,
)
from aot.mo.utils.types import data_type_str_to_np

SMALL = 1e-5  # greatest term beside the variance that MVN takes
INSIDE = {"eps_mode": "inside_sqrt", "normalize_variance": 1}
CENTRED = term("Sub", "x", term("ReduceMean", "x", "axes"))


@transformation("front.LayerNorm")
class LayerNorm:
    """(x - mean(x)) / (mean((x - mean(x))^2) + eps)^0.5: MVN"""

    formulas: ClassVar[list[Term]] = [
        term("Div", CENTRED, term("Pow", term("Add", term("ReduceMean", term("Pow", c, 2), "axes 2"), "eps"), 0.5))
        for c in (CENTRED, term("Cast", CENTRED))
    ]

    def find_and_replace_pattern(self, graph: Graph) -> None:
        replace_formulas(graph, self.formulas, self._made)

    @staticmethod
    def _made(graph: Graph, node: Node, operands: Found) -> Node | None:
        eps, axes, other = (operands[name].value for name in ("eps", "axes", "axes 2"))
        if eps is None or eps.size != 1 or eps.item() > SMALL or axes is None or not np.array_equal(axes, other):
            return None
        new_node: Node = add(graph, "mvn.MVN", operands["x"].port, axes, eps=eps.item(), **INSIDE)
        return new_node


@transformation("middle.layer_normalization")
class LayerNormalization:
    """LayerNorm of MXNet: MVN(x) * gamma + beta"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="LayerNorm"):
            name, rank = name_of(node), len(node.in_port(0).data.get_shape())
            assert node.has_valid("axis"), f"{name}: attribute axis must be given"
            if node.output_mean_var and any(node.is_out_port_connected(i) for i in (1, 2)):
                raise Error("{}: LayerNorm gives one output, got consumers of mean and variance", name)
            others = int64_array([i for i in range(rank) if i != node.axis % rank])
            attrs = {"eps": node.epsilon, "across_channels": 1, "name": f"{name}/normalized", **INSIDE}
            last = add(graph, "mvn.MVN", None, int64_array([node.axis]), **attrs)
            move(node, 0, last)
            for idx, kind in ((1, "Mul"), (2, "Add")):
                new_node = add(graph, f"elementwise.{kind}", last, name=f"{name}/{kind}")
                move(node, idx, new_node, 1)
                shaped = {"override_output_shape": True, "name": f"{name}/{kind}/unsqueezed"}
                new_node.in_port(1).get_connection().insert_node(
                    add(graph, "unsqueeze.Unsqueeze", None, others, **shaped)
                )
                last = new_node
            take_place(node, last)


def _is_nhwc(graph: Graph) -> bool:
    return graph.graph["layout"] == "NHWC"


@transformation("middle.FusedBatchNormTraining")
class FusedBatchNormTraining:
    """FusedBatchNorm in training, of NHWC: MVN over batch, height and width before it, and mean 0, variance 1 in it"""

    replacement_id = "Fused_Batch_Norm_is_training_true"
    force_shape_inference = force_clean_up = True
    graph_condition = (_is_nhwc,)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        kinds = {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}
        nodes = nodes_of(graph, is_training=True)
        for node in nodes:
            if node.soft_get("op") in kinds:
                self._normalize(graph, node)

    @staticmethod
    def _normalize(graph: Graph, node: Any) -> None:
        name, shape = name_of(node), node.in_port(1).data.get_shape()
        assert shape is not None, f"{name}: the shape of the scale must be known"
        node.is_training = False
        for idx, value in ((3, np.zeros), (4, np.ones)):
            statistics = constant(graph, value(shape, np.float32), f"{name}/{'mean' if idx == 3 else 'variance'}")
            statistics["override_output_shape"] = True
            node.in_port(idx).get_connection().set_source(statistics.out_port(0))
        source, rank = node.in_port(0).get_source(), len(node.in_port(0).data.get_shape())
        whole = add(graph, "shape.Shape", source, name=f"{name}/shape_of")
        limits = int64_array(1), int64_array(rank - 1), int64_array(1)
        axes = add(graph, "range.Range", *limits, name=f"{name}/axes", output_type=np.int64)
        attrs = {"override_output_shape": True}
        eps = node.soft_get("eps", 1e-6)
        new_node = add(graph, "mvn.MVN", None, axes, name=f"{name}/normalized", eps=eps, **INSIDE, **attrs)
        node.in_port(0).get_connection().insert_node(new_node)
        rows = add(graph, "reshape.Reshape", None, int64_array([1, -1, 0, 0]), name=f"{name}/batch_and_height", **attrs)
        new_node.in_port(0).get_connection().insert_node(rows)
        back = add(graph, "reshape.Reshape", None, whole, name=f"{name}/shaped", **attrs)
        new_node.out_port(0).get_connection().insert_node(back)


@transformation("middle.GroupNorm")
class GroupNormToMVN:
    """GroupNorm: Reshape to groups, MVN, Reshape back, times gamma, plus beta; these must be constants"""

    op = "GroupNorm"
    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="GroupNorm"):
            name, source, rank = name_of(node), node.in_port(0).get_source(), len(node.in_port(0).data.get_shape())
            whole = add(graph, "shape.Shape", source, name=f"{name}/shape_of")
            grouped = add(graph, "reshape.Reshape", None, self._grouped(node, whole), name=f"{name}/grouped")
            move(node, 0, grouped)
            _, count = get_shape_and_rank_nodes_by_port(grouped.out_port(0))
            limits = int64_array(1), count, int64_array(1)
            axes = add(graph, "range.Range", *limits, name=f"{name}/axes", output_type=np.int64)
            new_node = add(graph, "mvn.MVN", grouped, axes, name=f"{name}/normalized", eps=node.eps, **INSIDE)
            last = add(graph, "reshape.Reshape", new_node, whole, name=f"{name}/shaped")
            for idx, kind in ((1, "Mul"), (2, "Add")):
                value = value_of(node, idx)
                assert value is not None, f"{name}: gamma and beta of GroupNorm must be constants"
                node.in_port(idx).get_source().data.set_value(np.reshape(value, [1, -1, *[1] * (rank - 2)]))
                last = add(graph, f"elementwise.{kind}", last, name=f"{name}/{kind}")
                move(node, idx, last, 1)
            node.out_port(0).get_connection().set_source(last.out_port(0))

    @staticmethod
    def _grouped(node: Any, whole: Any) -> Any:
        """Return an operation that gives the shape [batch * groups, channels / groups, ..], computed as numbers."""
        graph, name = node.graph, name_of(node)
        dtype = data_type_str_to_np(graph.graph["cmd_params"].data_type)
        numbers = add(graph, "Cast.Cast", whole, dst_type=dtype, name=f"{name}/shape_of/numbers")
        batch, channels = node_to_get_batch_value(numbers), node_to_get_features_dimension_value(numbers)
        spatial = node_to_get_spatial_dimensions_value(whole)
        rest = add(graph, "Cast.Cast", spatial, dst_type=dtype, name=f"{name}/spatial/numbers")
        inverse = mo_array([1.0 / node.num_groups])
        part = add(graph, "elementwise.Mul", channels, inverse, name=f"{name}/channels_of_group")
        groups = add(graph, "elementwise.Mul", batch, int64_array([node.num_groups]), name=f"{name}/groups")
        joined = new_shape_node_from_shape_nodes([groups, part, rest])
        return add(graph, "Cast.Cast", joined, dst_type=np.int64, name=f"{name}/grouped/shape")


@transformation("front.onnx.MvnOnnxToMvn")
class MvnOnnxToMvn:
    """`axes` of MVN"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="MVNOnnx"):
            attrs = {name: node[name] for name in ("eps", "eps_mode", "normalize_variance")}
            new_node = add(graph, "mvn.MVN", None, node.axes, **attrs)
            move(node, 0, new_node)
            take_place(node, new_node)
            graph.remove_node(node.id)


@transformation("back.insert_compatibility_l2normalization")
class CompatibilityL2NormalizationPattern:
    """Normalize without weights: with ones"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Normalize"):
            if len(node.in_nodes()) < 2:
                ones = np.ones(node.in_node(0).shape[1], np.float32)
                node.add_input_port(1, skip_if_exist=True)
                constant(graph, ones, f"{name_of(node)}_weights").out_port(0).connect(node.in_port(1))
                node.in_port(1).bin = "weights"
