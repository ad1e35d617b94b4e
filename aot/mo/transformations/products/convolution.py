"""Convolutions of MO's form, with attributes `group` and `output`, as those of the operation sets."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, constant, name_of, nodes_of, only_consumer, producer
from aot.mo.utils.arrays import int64_array, is_fully_defined, mo_array, shape_array


def _grouped(graph: Graph) -> list[Any]:
    """Return the convolutions with several groups, and those of single channels."""
    nodes = nodes_of(graph, type="Convolution")
    grouped = [node for node in nodes if node.soft_get("group", None) is not None]
    return [node for node in grouped if node.group != 1 or node.soft_get("op") == "DepthwiseConv2dNative"]


def _weights_of(node: Any) -> Any:
    """Return the shape of the weights with the first dimension divided by the groups."""
    shape = node.in_port(1).data.get_shape()
    group = int(np.reshape(node.group, -1)[0])
    rule = f"{name_of(node)}: weights have 3 to 5 dimensions, the first of them a multiple of {group}, got {shape}"
    assert shape is not None and len(shape) in (3, 4, 5) and shape[0] % group == 0, rule
    return shape


def _reshape_weights(node: Any, target: Any, **attrs: Any) -> None:
    name = f"{name_of(node)}/weights"
    new_node = add(node.graph, "reshape.Reshape", None, target, override_output_shape=True, name=name, **attrs)
    node.in_port(1).get_connection().insert_node(new_node)


@transformation("back.ConvolutionNormalizer")
class ConvolutionNormalizer:
    """Convolution without attribute `kernel_spatial`"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Convolution"):
            if node.has_valid("kernel_spatial"):
                del node["kernel_spatial"]


@transformation("back.ConvolutionNormalizer")
class V7ConvolutionWithGroupsResolver:
    """Weights of grouped convolutions as [G * O, I, X, Y]"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in _grouped(graph):
            shape = _weights_of(node)
            if shape[0] != node.output:
                _reshape_weights(node, shape_array([node.output, -1, *[0] * (len(shape) - 2)]))  # 0: as it was


@transformation("back.ConvolutionNormalizer")
class V10ConvolutionWithGroupsResolver:
    """Convolution with `group`: GroupConvolution, with weights [G, O, I, X, Y]"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in _grouped(graph):
            shape, name = _weights_of(node), name_of(node)
            group = int(np.reshape(node.group, -1)[0])
            source = node.in_port(1).get_source()
            whole = add(graph, "shape.Shape", source, name=f"{name}/weights/shape_of", allow_fold=True)
            spatial = int64_array(range(2, len(shape)))
            kept = add(graph, "gather.Gather", whole, spatial, int64_array(0), name=f"{name}/weights/spatial")
            parts = int64_array([group, node.output // group, -1]), kept
            attrs = {"axis": 0, "in_ports_count": 2, "name": f"{name}/weights/shape"}
            _reshape_weights(node, add(graph, "concat.Concat", *parts, **attrs), special_zero=True)
            del node["group"]
            node["type"] = "GroupConvolution"


@transformation("back.ConvolutionNormalizer")
class PullReshapeThroughFQ:
    """Reshape(FakeQuantize(weights)): FakeQuantize(Reshape(weights)), where the limits are single numbers"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in [*nodes_of(graph, type="Convolution"), *nodes_of(graph, type="GroupConvolution")]:
            reshape = producer(node, 1)
            quantize = producer(reshape) if reshape is not None and reshape.soft_get("type") == "Reshape" else None
            if quantize is None or quantize.soft_get("type") != "FakeQuantize":
                continue
            alone = only_consumer(quantize) is not None and only_consumer(reshape) is not None
            if alone and all(prod(map(int, quantize.in_port(i).data.get_shape())) == 1 for i in range(1, 5)):
                self._pull(node, reshape, quantize)

    @staticmethod
    def _pull(node: Any, reshape: Any, quantize: Any) -> None:
        ranks = [len(port.data.get_shape()) for port in (reshape.in_port(0), reshape.out_port(0))]
        reshape.in_port(0).disconnect()
        reshape.out_port(0).disconnect()
        quantize.out_port(0).connect(node.in_port(1))
        quantize.in_port(0).get_connection().insert_node(reshape)
        for changed in (reshape, quantize):
            changed["need_shape_inference"] = changed["override_output_shape"] = True
        for i in range(1, 5) if ranks[0] != ranks[1] else ():
            name = f"{name_of(quantize)}/limit_{i}"
            target = int64_array([1] * ranks[1])
            new_node = add(node.graph, "reshape.Reshape", None, target, override_output_shape=True, name=name)
            quantize.in_port(i).get_connection().insert_node(new_node)


@transformation("back.ConvolutionNormalizer")
class ConvolutionWithGroupsResolver:
    """Convolution with `group`, its weights maybe after FakeQuantize: GroupConvolution"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for step in (V7ConvolutionWithGroupsResolver, PullReshapeThroughFQ, V10ConvolutionWithGroupsResolver):
            step().find_and_replace_pattern(graph)


@transformation("back.ConvolutionNormalizer")
class DeconvolutionNormalizer:
    """Deconvolution: ConvolutionBackpropData or GroupConvolutionBackpropData, with spatial sizes as input 2"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Deconvolution"):
            if node.is_in_port_connected(2):
                self._cut_shape(node)
            elif node.has_valid("original_output_spatial_shape"):
                sizes = int64_array(node.original_output_spatial_shape)
                node.add_input_port(2, skip_if_exist=True)
                constant(graph, sizes, f"{name_of(node)}/sizes").out_port(0).connect(node.in_port(2))
                del node["pad"]
            self._group_weights(node)

    @staticmethod
    def _cut_shape(node: Any) -> None:
        """Let input 2 be the spatial sizes, without batch and channels; the padding follows from them."""
        masks = ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
        attrs = {"begin_mask": [1], "end_mask": [0], **{mask: [0] for mask in masks}}
        rank = len(node.in_port(0).data.get_shape())
        bounds = [mo_array([n], dtype=np.int32) for n in (2, rank, 1)]
        arrays = {name: mo_array(mask, dtype=np.int32) for name, mask in attrs.items()}
        source = node.in_port(2).get_source()
        node.in_port(2).disconnect()
        new_node = add(
            node.graph, "strided_slice.StridedSlice", source, *bounds, name=f"{name_of(node)}/sizes", **arrays
        )
        new_node.out_port(0).connect(node.in_port(2))
        del node["pad"]

    @staticmethod
    def _group_weights(node: Any) -> None:
        group = int(node.soft_get("group", 1))
        if group == 1:
            node["type"] = "ConvolutionBackpropData"
            return
        shape, channels = node.in_port(1).data.get_shape(), node.in_port(0).data.get_shape()[1]
        rule = f"{name_of(node)}: {group} groups divide the channels, got {channels} and {node.output}"
        assert shape is not None and channels % group == 0 and node.output % group == 0, rule
        target = shape_array([group, channels // group, node.output // group, *shape[2:]])
        known = is_fully_defined(target) and is_fully_defined(shape)
        rule = f"{name_of(node)}: weights have as many elements as {target}, got {shape}"
        assert not known or np.prod(shape) == np.prod(target), rule
        name = f"{name_of(node)}/weights"
        source = node.in_port(1).get_source()
        new_node = add(node.graph, "reshape.Reshape", source, target, override_output_shape=True, name=name)
        node.in_port(1).get_connection().set_source(new_node.out_port(0))
        node["type"] = "GroupConvolutionBackpropData"
