"""Operations that change nothing: slices that are joined again, empty parts, padding by 0; and known values."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from aot.ir.types import Array
from aot.mo.formulas import take_place
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, constant, name_of, nodes_of, only_consumer, producer, source_of, value_of
from aot.mo.utils.arrays import is_fully_defined, mo_array
from aot.mo.utils.error import Error


@transformation("middle.ConcatOptimization")
class ConcatOdInputEraserAndPortsReconnect:
    """Concat without the inputs that have no elements; its inputs are numbered from 0 on"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Concat"):
            kept_ports: list[Any] = []
            for idx in sorted(node.in_ports()):
                source = source_of(node, idx)
                empty = source is not None and 0 in source.data.get_shape()
                kept_ports += [idx] if source is not None and not empty else []
                if source is None or empty:
                    node.delete_input_port(idx)
            assert kept_ports, f"{name_of(node)}: Concat has an input with elements, got none"
            for position, idx in enumerate(kept_ports):
                if position != idx:
                    node.add_input_port(position, skip_if_exist=True)
                    node.in_port(idx).get_connection().set_destination(node.in_port(position))
                    node.delete_input_port(idx)


@transformation("middle.CutInputHavingZeroDimFromConcat")
class CutInputHavingZeroDimFromConcat:
    """Concat of tensors and constants without elements: Concat of the tensors, or the one that is left"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Concat"):
            sources = {idx: source for idx in sorted(node.in_ports()) if (source := source_of(node, idx)) is not None}
            if not all(source.node.has_valid("type") for source in sources.values()):
                continue
            empty = [idx for idx, source in sources.items() if self._is_empty(source.node)]
            kept_ports = [idx for idx in sources if idx not in empty]
            if not empty or not kept_ports:
                continue
            if len(kept_ports) == 1:
                node.out_port(0).get_connection().set_source(sources[kept_ports[0]])
                continue
            attrs = {"axis": node.axis, "in_ports_count": len(kept_ports), "name": f"{name_of(node)}/kept"}
            new_node = add(graph, "concat.Concat", **attrs)
            for position, idx in enumerate(kept_ports):
                node.in_port(idx).get_connection().set_destination(new_node.in_port(position))
            for idx in empty:
                node.in_port(idx).disconnect()
            node.out_port(0).get_connection().set_source(new_node.out_port(0))

    @staticmethod
    def _is_empty(node: Any) -> bool:
        return node.soft_get("type") == "Const" and len(node.shape) > 1 and 0 in node.shape


@transformation("middle.RemoveUselessConcatSplit")
class RemoveUselessConcatSplitPattern:
    """Split(Concat(a, b, ..)) into parts of the same shapes: a, b, .."""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for split in nodes_of(graph, op="Split"):
            concat = producer(split)
            if concat is None or concat.soft_get("op") != "Concat" or only_consumer(concat) is None:
                continue
            inputs, outputs = list(concat.in_ports().values()), list(split.out_ports().values())
            pairs = list(zip(inputs, outputs, strict=False))
            equal = all(np.array_equal(i.data.get_shape(), o.data.get_shape()) for i, o in pairs)
            if len(inputs) == len(outputs) and equal:
                for i, o in pairs:
                    o.get_connection().set_source(i.get_source())
                    i.disconnect()


@transformation("middle.RemoveUselessCrops")
class RemoveUselessCropsPattern:
    """Concat(Crop(x), Crop(x), ..) of parts that follow each other and are all of x: x"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for concat in nodes_of(graph, op="Concat"):
            first = producer(concat)
            if first is not None and first.soft_get("op") == "Crop" and only_consumer(first) is not None:
                self._remove(concat, first)

    @staticmethod
    def _remove(concat: Any, first: Any) -> None:
        source, axis = first.in_port(0).get_source(), first["axis"]
        consumers = [port.node for port in source.get_destinations()]
        crops = [n for n in consumers if n.op == "Crop" and n["axis"] == axis and _reads_alone(concat, n)]
        ranges = [_range(node) for node in crops]
        if any(span is None for span in ranges):
            return
        end = 0
        for start, size in sorted(span for span in ranges if span is not None):
            if start != end:
                return
            end += size
        if end != source.data.get_shape()[axis]:
            return
        ids = {node.id for node in crops}
        inputs = [i for i in concat.in_ports() if source_of(concat, i) is not None]
        cut = [i for i in inputs if producer(concat, i).id in ids]
        for i in cut:
            producer(concat, i).out_port(0).disconnect()
        if len(cut) < len(inputs):
            source.connect(concat.in_port(cut[-1]))
            return
        for port in concat.out_port(0).get_destinations():
            port.disconnect()
            source.connect(port)


def _reads_alone(concat: Any, node: Any) -> bool:
    port = only_consumer(node)
    return port is not None and port.node.id == concat.id


def _range(crop: Any) -> tuple[int, int] | None:
    """Return offset and size of the kept part of a Crop, in any of its three forms; None for unknown sizes."""
    if crop.has_valid("dim"):
        begins_and_sizes = crop["offset"], crop["dim"]
    elif crop.has_valid("crop_begin") and crop.has_valid("crop_end"):
        begins_and_sizes = crop["crop_begin"], crop["crop_end"] - crop["crop_begin"]
    else:
        begins_and_sizes = crop["offset"], value_of(crop, 1)
    if begins_and_sizes[1] is None:
        return None
    offset, size = (int(np.reshape(n, -1)[0]) for n in begins_and_sizes)
    return offset, size


@transformation("middle.RemoveUselessPad")
class RemoveUselessPad:
    """Pad by constants that are 0: its input"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="Pad"):
            pads = [producer(node, i) for i in (1, 2)]
            values = [pad.soft_get("value", None) if pad.soft_get("type") == "Const" else None for pad in pads]
            if all(value is not None and np.all(value == 0) for value in values):
                node.out_port(0).get_connection().set_source(node.in_port(0).get_source())
                graph.remove_nodes_from([node.id, *(data.id for data in node.out_nodes().values())])


@transformation("middle.sparse_reshape")
class SparseReshapeMiddleReplacer:
    """SparseReshape to the shape that the tensor has: its inputs. Error for another shape"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="SparseReshape"):
            before, shape = value_of(node, 1), value_of(node, 2)
            after: Any = node.out_port(1).data.get_value() if node.is_out_port_connected(1) else None
            if after is None and before is not None and shape is not None:
                after = _completed(before, shape)
            if before is None or after is None or not np.array_equal(before, after):
                raise Error("{}: SparseReshape keeps a known shape, got {} and {}", name_of(node), before, after)
            data = [data.id for data in node.out_nodes().values()]
            for idx in (0, 1):
                if node.is_out_port_connected(idx):
                    node.out_port(idx).get_connection().set_source(node.in_port(idx).get_source())
            graph.remove_nodes_from([node.id, *data])


def _completed(before: Array, shape: Array) -> Array:
    """Return a shape with the size that -1 stands for."""
    rest = prod(map(int, before)) // max(prod(map(int, shape[shape != -1])), 1)
    return np.array([rest if size == -1 else size for size in shape])


@transformation("middle.SharedWeightsDuplication")
class SharedWeightsDuplication:
    """A constant with several consumers: one for each"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Const"):
            value, consumers = node.out_port(0).data.get_value(), node.out_port(0).get_destinations()
            for port in consumers[1:] if value is not None else ():
                copy = constant(graph, mo_array(value), f"{name_of(node)}/copy")
                port.disconnect()
                copy.out_port(0).connect(port)
                copy["infer"](copy)


@transformation("back.ShapeOfConstFolding")
class ShapeOfConstFolding:
    """ShapeOf of a constant: its shape; with `allow_fold`, of all tensors of known shape"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        nodes = nodes_of(graph, op="ShapeOf")
        for node in nodes:
            known = node.has_and_set("allow_fold") and is_fully_defined(node.in_port(0).data.get_shape())
            if producer(node).op == "Const" or known:
                shape = constant(graph, node.out_port(0).data.get_value(), f"{name_of(node)}/folded")
                node.in_port(0).disconnect()
                take_place(node, shape)
