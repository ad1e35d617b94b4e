"""Single operations that become others, in all phases."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.formulas import take_place
from aot.mo.graph.graph import Graph, rename_nodes
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, constant, move, name_of, nodes_of, producer, source_of, value_of
from aot.mo.utils.arrays import int64_array, mo_array
from aot.mo.utils.shape import get_canonical_axis_index_node, get_shape_values_by_indices_node

FEW, MANY = 5, 500  # elements of a constant that becomes a Range: more than FEW, fewer than MANY


@transformation("front.image_scaler")
class ImageScaler:
    """ImageScaler: x * scale + bias, without neutral steps"""

    op = "ImageScaler"

    def replace_sub_graph(self, graph: Graph, match: dict[str, Any]) -> None:
        node = match["op"]
        assert len(node.in_ports()) == 1, f"{name_of(node)}: ImageScaler has one input, got {len(node.in_ports())}"
        last = node.in_port(0).get_source()
        for value, neutral, kind in ((node.scale, 1, "Mul"), (node.bias, 0, "Add")):
            if np.any(np.asarray(value) != neutral):
                new_node = add(graph, f"elementwise.{kind}", last, mo_array(value), name=f"{name_of(node)}/{kind}")
                last = new_node.out_port(0)
        node.in_port(0).disconnect()
        node.out_port(0).get_connection().set_source(last)


@transformation("front.binary_quantize_normalization")
class BinaryFakeQuantizeNormalization:
    """FakeQuantize of two levels: its threshold is the mean of inputs 1 and 2"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="FakeQuantize", levels=2):
            sources = [node.in_port(i).get_source() for i in (1, 2)]
            total = add(graph, "elementwise.Add", *sources, name=f"{name_of(node)}/limits")
            mean = add(graph, "elementwise.Mul", total, mo_array(0.5), name=f"{name_of(node)}/threshold")
            for i in (1, 2):
                node.in_port(i).disconnect()
                mean.out_port(0).connect(node.in_port(i))


@transformation("front.broadcast_with_range")
class ExpandRangeConstant:
    """Broadcast of a constant 0, 1, 2, ..: of a Range, whose length follows the target shape"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Broadcast"):
            range_node = producer(node)
            if range_node.soft_get("type") == "Const" and self._is_range(range_node):
                self._replace(graph, node, range_node)

    @staticmethod
    def _is_range(node: Any) -> bool:
        """True for a constant of one dimension beside ones, which counts."""
        value = np.asarray(node.value)
        alone = sum(size != 1 for size in value.shape) == 1 and FEW < value.size < MANY
        return alone and np.array_equal(value.reshape(-1), np.arange(value.size))

    @staticmethod
    def _replace(graph: Graph, node: Any, range_node: Any) -> None:
        value, name, label = np.asarray(range_node.value), name_of(range_node), name_of(node)
        (axis,) = (i for i, size in enumerate(value.shape) if size != 1)
        axis_inputs = int64_array(axis - value.ndim), int64_array(0)
        target_size = add(graph, "gather.Gather", node.in_port(1).get_source(), *axis_inputs, name=f"{label}/size")
        shape = add(graph, "shape.Shape", range_node, name=f"{name}/shape_of")
        given = add(graph, "gather.Gather", shape, *axis_inputs, name=f"{name}/size")
        one = add(graph, "elementwise.Equal", target_size, int64_array(1), name=f"{label}/is_one")
        size = add(graph, "select.Select", one, given, target_size, name=f"{label}/chosen", auto_broadcast="numpy")
        limits = mo_array(0, dtype=value.dtype), size, mo_array(1, dtype=value.dtype)
        new_node = add(graph, "range.Range", *limits, name=f"{name}/range", dtype=value.dtype)
        node.in_port(0).get_connection().set_source(new_node.out_port(0))
        if value.ndim > 1:
            axes = int64_array([i for i in range(value.ndim) if i != axis])
            whole = add(graph, "unsqueeze.Unsqueeze", None, axes, name=f"{name}/shaped")
            new_node.out_port(0).get_connection().insert_node(whole)
            new_node = whole
        rename_nodes([(range_node, f"{name}/replaced"), (new_node, name)])


@transformation("front.ATenToEmbeddingBag")
class AtenToEmbeddingBag:
    """ATen embedding_bag that sums: EmbeddingBagOffsetsSum, or EmbeddingBagPackedSum without offsets"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="ATen", operator="embedding_bag"):
            name = name_of(node)
            assert node.soft_get("mode") == 0, f"{name}: mode 0, sum, is there, got {node.soft_get('mode')}"
            packed = 2 not in node.in_ports() or source_of(node, 2) is None
            kind = "EmbeddingBagPackedSum" if packed else "EmbeddingBagOffsetsSum"
            new_node = add(graph, f"embedding_bag.{kind}", name=f"{name}/sum")
            for idx in (0, 1) if packed else (0, 1, 2):
                move(node, idx, new_node, idx)
            if 3 in node.in_ports() and source_of(node, 3) is not None:
                move(node, 3, new_node, 2 if packed else 4)
                if not packed:
                    self._add_row_of_zeros(graph, new_node, name)
            take_place(node, new_node)

    @staticmethod
    def _add_row_of_zeros(graph: Graph, new_node: Any, name: str) -> None:
        """Append a row of zeros to the table, and let empty bags read it: weights need the index of a row for them."""
        table = new_node.in_port(0).get_source()
        shape = add(graph, "shape.Shape", table, name=f"{name}/table/shape_of")
        rank = add(graph, "rank.Rank", table, name=f"{name}/table/rank")
        width = get_shape_values_by_indices_node(shape, get_canonical_axis_index_node(rank, -1))
        zeros = add(graph, "broadcast.Broadcast", int64_array([0]), width, name=f"{name}/zeros")
        row = add(graph, "unsqueeze.Unsqueeze", zeros, int64_array(0), name=f"{name}/zeros/row")
        attrs = {"axis": 0, "in_ports_count": 2, "name": f"{name}/table"}
        whole = add(graph, "concat.Concat", table, row, **attrs)
        new_node.in_port(0).disconnect()
        whole.out_port(0).connect(new_node.in_port(0))
        height = add(graph, "gather.Gather", shape, int64_array([0]), int64_array(0), name=f"{name}/height")
        height.out_port(0).connect(new_node.in_port(3))


@transformation("middle.ArgOpsToTopK")
class ArgOpsToTopK:
    """ArgMax and ArgMin: TopK sorted by index"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in [*nodes_of(graph, op="ArgMax"), *nodes_of(graph, op="ArgMin")]:
            name = name_of(node)
            axis = value_of(node, 1) if 1 in node.in_ports() and source_of(node, 1) is not None else node.axis
            assert axis is not None, f"{name}: the axis of {node.op} must be known"
            assert node.has_and_set("output_type"), f"{name}: attribute output_type must be given"
            attrs = {"axis": axis, "mode": "max" if node.op == "ArgMax" else "min", "sort": "index"}
            attrs["remove_values_output"] = node.has_and_set("remove_values_output")
            new_node = add(graph, "topk.TopK", index_element_type=node.output_type, **attrs)
            move(node, 0, new_node)
            constant(graph, node.top_k, f"{name}/k").out_port(0).connect(new_node.in_port(1))
            result = new_node.out_port(1)
            if node.has_and_set("out_max_val"):
                pair = add(graph, "concat.Concat", new_node.out_port(0), result, axis=1, name=f"{name}/pairs")
                result = pair.out_port(0)
            if not node.out_port(0).disconnected():
                node.out_port(0).get_connection().set_source(result)
            graph.remove_nodes_from([node.id, *(data.id for data in node.out_nodes().values())])


@transformation("middle.MXTileReplacer")
class MXTileReplacer:
    """Tile to more dimensions: Unsqueeze before it"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Tile"):
            ranks = [len(port.data.get_shape()) for port in (node.in_port(0), node.out_port(0))]
            assert ranks[1] >= ranks[0], f"{name_of(node)}: Tile keeps its {ranks[0]} dimensions, got {ranks[1]}"
            if ranks[1] > ranks[0]:
                axes = int64_array(range(ranks[1] - ranks[0]))
                attrs = {"name": f"{name_of(node)}/unsqueezed", "override_output_shape": True}
                node.in_port(0).get_connection().insert_node(add(graph, "unsqueeze.Unsqueeze", None, axes, **attrs))


@transformation("middle.ReverseTransposeNormalization")
class ReverseTransposeNormalization:
    """Transpose with `reverse_order`: with the order as an input"""

    force_shape_inference = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Transpose", reverse_order=True):
            assert len(node.in_nodes()) == 1, f"{name_of(node)}: one input, got {len(node.in_nodes())}"
            order = int64_array(range(len(node.in_port(0).data.get_shape()))[::-1])
            node.add_input_port(1, skip_if_exist=True)
            constant(graph, order, f"{name_of(node)}/order").out_port(0).connect(node.in_port(1))
            node["reverse_order"] = False


@transformation("back.ClampNormalizer")
class ClampNormalizer:
    """Clamp with constants: with attributes `min` and `max`; with other limits: Maximum, Minimum"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Clamp"):
            name = name_of(node)
            limits = {i: source_of(node, i) for i in (1, 2) if node.has_port("in", i)}
            used = [i for i, source in limits.items() if source is not None]
            if not used:
                continue
            known = [value_of(node, i) if producer(node, i).soft_get("type") == "Const" else None for i in used]
            if len(used) == 2 and all(value is not None for value in known):
                new_node = add(graph, "clamp.AttributedClamp", name=f"{name}/clamp", min=known[0], max=known[1])
                move(node, 0, new_node)
                take_place(node, new_node)
                continue
            first, *rest = (self._limit(node, i) for i in used)
            move(node, 0, first)
            node.out_port(0).get_connection().set_source(first.out_port(0))
            for new_node in rest:
                first.out_port(0).get_connection().insert_node(new_node)
            rename_nodes([(node, f"{name}/replaced"), ((rest or [first])[0], name)])

    @staticmethod
    def _limit(node: Any, idx: int) -> Any:
        """Return Maximum or Minimum that reads the limit at an input."""
        kind = "Maximum" if idx == 1 else "Minimum"
        result = add(node.graph, f"elementwise.{kind}", name=f"{name_of(node)}/{kind}")
        move(node, idx, result, 1)
        return result


@transformation("back.GatherNormalizer")
class GatherTreeNormalizer:
    """GatherTree whose end token has one dimension: Squeeze of it"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="GatherTree"):
            shape = node.in_port(3).data.get_shape() if node.is_in_port_connected(3) else None
            assert shape is not None, f"{name_of(node)}: input 3 of GatherTree must have a known shape"
            if len(shape) == 1:
                attrs = {"name": f"{name_of(node)}/end_token", "override_output_shape": True}
                new_node = add(graph, "squeeze.Squeeze", None, int64_array([0]), **attrs)
                node.in_port(3).get_connection().insert_node(new_node)
