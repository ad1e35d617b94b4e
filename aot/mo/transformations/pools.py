"""Pools."""

from __future__ import annotations

from typing import Any

from aot.mo.formulas import take_place
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, move, name_of, nodes_of, value_of
from aot.mo.utils.arrays import int64_array

REDUCTIONS = {"max": "ReduceMax", "avg": "ReduceMean"}
KEPT = "pad spatial_dims auto_pad output_spatial_shape pad_spatial_shape pool_method permute_attrs".split()


@transformation("front.global_pooling_to_reduce")
class GlobalPoolingToReduce:
    """A pool of all pixels: ReduceMax or ReduceMean of all dimensions after the channels"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Pooling", global_pool=True):
            name, source = name_of(node), node.in_port(0).get_source()
            assert graph.graph["layout"] != "NHWC", f"{name}: a global pool reads NCHW, got NHWC"
            method = node.soft_get("pool_method", None)
            assert method in REDUCTIONS, f"{name}: pool_method is max or avg, got {method}"
            rank = add(graph, "rank.Rank", source, name=f"{name}/rank")
            axes = add(graph, "range.Range", int64_array(2), rank, int64_array(1), name=f"{name}/axes")
            attrs = {"name": f"{name}/reduced", "keep_dims": True}
            new_node = add(graph, f"ReduceOps.{REDUCTIONS[method]}", source, axes, **attrs)
            node.out_port(0).get_connection().set_source(new_node.out_port(0))


@transformation("middle.PoolV2ToAttributedPool")
class PoolV2ToAttributedPool:
    """A pool whose window and stride are inputs: attributes"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="PoolingV2"):
            attrs = {name: node[name] for name in KEPT}
            new_node = add(graph, "pooling.Pooling", window=value_of(node, 1), stride=value_of(node, 2), **attrs)
            move(node, 0, new_node)
            take_place(node, new_node)


@transformation("back.MaxPool")
class MaxPool:
    """Pooling with `pool_method` max: MaxPool, whose outputs all have consumers"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, type="Pooling", pool_method="max"):
            node["type"] = "MaxPool"
            for name in ("pool_method", "exclude_pad"):
                if node.has(name):
                    del node[name]
            self.normalize_outputs(node)

    @staticmethod
    def normalize_outputs(node: Any) -> None:
        """Give a Result to an output without consumers; version 1 has one output, 8 has two."""
        for idx in (0, 1):
            if node.has_port("out", idx) and node.out_port(idx).disconnected():
                kept = node.has_and_set("remove_values_output")
                attrs = {"name": f"{name_of(node)}/Result_port_{idx}/", "keep_output_port": kept}
                new_node = add(node.graph, "result.Result", **attrs)
                node.out_port(idx).get_connection().set_destination(new_node.in_port(0))
