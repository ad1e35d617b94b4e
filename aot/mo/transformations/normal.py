"""Operations of files in normal form: attributes become inputs, special operations general ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.formulas import take_place
from aot.mo.front.onnx.attributes import get_onnx_opset_version
from aot.mo.graph.graph import Graph, rename_nodes
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, constant, is_single, move, name_of, nodes_of, producer, source_of
from aot.mo.utils.arrays import int64_array, mo_array
from aot.mo.utils.error import Error
from aot.mo.utils.shape import new_shape_node_from_shape_nodes, node_to_get_shape_value_of_indices


def _count(node: Any) -> int:
    """Return the number of inputs that are connected."""
    return sum(not port.disconnected() for port in node.in_ports().values())


def _attribute_as_input(node: Any, name: str, kind: str) -> None:
    """Put an operation in the place of one with one input; its attribute becomes input 1. Error without it.

    The operation is new, for one of a framework has the inputs of its framework.
    """
    if _count(node) > 1:
        return
    if not node.has_valid(name):
        raise Error("{}: {} has input 1 or attribute {}, got neither", name_of(node), node.op, name)
    new_node = add(node.graph, kind, None, mo_array(node[name]))
    move(node, 0, new_node)
    take_place(node, new_node)
    node.graph.remove_node(node.id)


@transformation("front.SqueezeNormalize")
class SqueezeNormalize:
    """`squeeze_dims` of Squeeze"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Squeeze"):
            _attribute_as_input(node, "squeeze_dims", "squeeze.Squeeze")


@transformation("front.reshape_dim_normalizer")
class ReshapeDimNormalizer:
    """`dim` of Reshape"""

    force_shape_inference = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Reshape"):
            _attribute_as_input(node, "dim", "reshape.Reshape")


@transformation("front.TransposeOrderNormalizer")
class TransposeOrderNormalizer:
    """`order` of Transpose; with `reverse_order` it stays as it is"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Transpose"):
            if node.has_valid("order") or not node.has_and_set("reverse_order"):
                _attribute_as_input(node, "order", "transpose.Transpose")


@transformation("front.ExpandDimsToUnsqueeze")
class ExpandDimsToUnsqueeze:
    """ExpandDims: Unsqueeze, with the axes as an input"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="ExpandDims"):
            count = _count(node)
            if count not in (1, 2):
                raise Error("{}: ExpandDims has 1 or 2 inputs, got {}", name_of(node), count)
            if count == 2 and producer(node, 1).soft_get("op") != "Const":
                continue
            axes = int64_array(node.expand_axis).reshape(-1) if count == 1 else None
            new_node = add(graph, "unsqueeze.Unsqueeze", None, axes)
            move(node, 0, new_node)
            if count == 2:
                move(node, 1, new_node, 1)
            take_place(node, new_node)


@transformation("front.FillToBroadcast")
class FillToBroadcast:
    """Fill and ConstantFill: Broadcast of the value"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Fill"):
            new_node = add(graph, "broadcast.Broadcast", name=f"{name_of(node)}/broadcast")
            move(node, 1, new_node)
            move(node, 0, new_node, 1)
            node.out_port(0).get_connection().set_source(new_node.out_port(0))
        for node in nodes_of(graph, op="ConstantFill"):
            rule = f"{name_of(node)}: ConstantFill has fill_value and takes a shape"
            assert node.has_valid("fill_value") and node.has_and_set("input_as_shape"), rule
            _broadcast(graph, node)


@transformation("front.onnx.constant_of_shape_to_broadcast")
class ConstantOfShapeToBroadcast:
    """ConstantOfShape: Broadcast of `fill_value`"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="ConstantOfShape"):
            if node.has_valid("fill_value"):
                _broadcast(graph, node)


def _broadcast(graph: Graph, node: Any) -> None:
    """Put Broadcast of `fill_value` in the place of an operation with a shape as its input."""
    new_node = add(graph, "broadcast.Broadcast", mo_array(node.fill_value), name=f"{name_of(node)}/broadcast")
    move(node, 0, new_node, 1)
    node.out_port(0).get_connection().set_source(new_node.out_port(0))


@transformation("front.ArgOpsSqueeze")
class ArgOpsSqueeze:
    """ArgMax and ArgMin with `keepdims` 0: Squeeze after it"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in [*nodes_of(graph, op="ArgMax", keepdims=0), *nodes_of(graph, op="ArgMin", keepdims=0)]:
            axes = source_of(node, 1) if _count(node) == 2 else mo_array(node.axis)
            new_node = add(graph, "squeeze.Squeeze", None, axes, name=f"{name_of(node)}/squeezed")
            node.out_port(0).get_connection().set_source(new_node.out_port(0))
            node.out_port(0).connect(new_node.in_port(0))
            node["keepdims"] = 1


@transformation("front.PowerToEltwises")
class PowerToEltwises:
    """AttributedPower: (x * scale + shift)^power, without neutral steps"""

    op = "AttributedPower"
    force_clean_up = True
    graph_condition = (is_single,)

    def replace_sub_graph(self, graph: Graph, match: dict[str, Any]) -> None:
        node = match["op"]
        if node.has_valid("pb") and float(node.soft_get("power", 1)).is_integer():
            return  # Neg and Square are of integers, too
        last = node.in_port(0).get_source()
        for attribute, neutral, kind in (("scale", 1, "Mul"), ("shift", 0, "Add"), ("power", 1, "Pow")):
            value = node.soft_get(attribute, neutral)
            if value != neutral:
                new_node = add(
                    graph, f"elementwise.{kind}", last, mo_array(float(value)), name=f"{name_of(node)}/{kind}"
                )
                last = new_node.out_port(0)
        node.out_port(0).get_connection().set_source(last)


@transformation("front.onnx.flattenONNX_to_reshape")
class FlattenONNXToReshape:
    """Flatten of ONNX: Reshape to the product of the dimensions before `axis`, and the rest"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="FlattenONNX"):
            assert node.has_valid("axis"), f"{name_of(node)}: attribute axis must be given"
            new_node = add(graph, "reshape.Reshape", None, self._shape(graph, node), name=f"{name_of(node)}/reshaped")
            node.out_port(0).get_connection().set_source(new_node.out_port(0))
            move(node, 0, new_node)

    @staticmethod
    def _shape(graph: Graph, node: Any) -> Any:
        """Return the shape: a constant with 0 for the first dimension, or an operation."""
        axis, name = int(node.axis), name_of(node)
        if axis in (0, 1):
            return int64_array([axis ^ 1, -1])
        whole = add(graph, "shape.Shape", node.in_port(0).get_source(), name=f"{name}/shape_of")
        part = node_to_get_shape_value_of_indices(whole, list(range(axis) if axis > 0 else range(axis, 0)))
        attrs = {"keep_dims": True, "name": f"{name}/product"}
        known = add(graph, "ReduceOps.ReduceProd", part, int64_array([0]), **attrs)
        rest = constant(graph, int64_array([-1]), f"{name}/rest")
        return new_shape_node_from_shape_nodes([known, rest] if axis > 0 else [rest, known])


class _OfMatrix:
    """An operation of a matrix of the dimensions before and from `axis` on, and Reshape back."""

    kind: str

    def replace_op(self, graph: Graph, node: Any) -> list[str]:
        name, source = name_of(node), node.in_port(0).get_source()
        assert node.has_valid("axis"), f"{name}: attribute axis must be given"
        if node.has_valid("pb") and get_onnx_opset_version(node) >= 13:  # of one axis from there on
            new_node = add(graph, self.kind, source, axis=node.axis)
            rename_nodes([(node, f"{name}/replaced"), (new_node, name)])
            return [new_node.id]
        flat = add(graph, "flatten.FlattenONNX", source, axis=node.axis, name=f"{name}/flat")
        rows = add(graph, self.kind, flat, axis=1, name=f"{name}/rows")
        shape = add(graph, "shape.Shape", source, name=f"{name}/shape_of")
        new_node = add(graph, "reshape.Reshape", rows, shape)
        rename_nodes([(node, f"{name}/replaced"), (new_node, name)])
        return [new_node.id]


@transformation("front.onnx.softmaxONNX_to_softmax")
class SoftmaxONNXFrontReplacer(_OfMatrix):
    """Softmax of ONNX before version 13: of a matrix"""

    op = "SoftMaxONNX"
    kind = "softmax.Softmax"


@transformation("front.onnx.logsoftmaxONNX_to_logsoftmax")
class LogSoftmaxONNXFrontReplacer(_OfMatrix):
    """LogSoftmax of ONNX before version 13: of a matrix"""

    op = "LogSoftmaxONNX"
    kind = "log_softmax.LogSoftmax"


@transformation("front.onnx.one_hot_normalize")
class OneHotNormalize:
    """The values of OneHot in one tensor, off and on: two inputs, on and off"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="OneHot", split_values=True):
            if producer(node, 1).soft_get("op") != "Const":
                continue
            name, values = name_of(node), node.in_port(2).get_source()
            parts = add(graph, "split.Split", values, np.int64(0), num_splits=2, name=f"{name}/values")
            off, on = (add(graph, "squeeze.Squeeze", parts.out_port(i), int64_array([0])) for i in (0, 1))
            new_node = add(graph, "one_hot.OneHot", None, None, on, off, axis=node.soft_get("axis", -1))
            for idx in (0, 1):
                move(node, idx, new_node, idx)
            node.in_port(2).disconnect()
            take_place(node, new_node)
            graph.remove_node(node.id)
