"""Reductions over axes, running sums, and positions of extremes."""

from __future__ import annotations

from aot.frontends.conversion.table import renames
from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort

KINDS = renames("MEAN=Mean REDUCE_ALL=All REDUCE_ANY=Any REDUCE_MAX=Max REDUCE_MIN=Min REDUCE_PROD=Prod SUM=Sum")


@tflite("MEAN", "SUM")
@by_parts
def summed(node: TfliteNode, x: OutPort, axes: OutPort) -> OutPort:
    return reduced(node, x, axes)


@tflite(*(k for k in KINDS if k not in ("MEAN", "SUM")))
def reduced(node: TfliteNode, x: OutPort, axes: OutPort) -> OutPort:
    return node.tf(KINDS[node.kind], x, axes, keep_dims=node.flag("keep_dims"))


@tflite("ARG_MAX", "ARG_MIN", stored=True)
def arg_extreme(node: TfliteNode, x: OutPort, axis: OutPort) -> OutPort:
    kind = "ArgMax" if node.kind == "ARG_MAX" else "ArgMin"
    return node.tf(kind, x, axis, output_type=node.output_tensors[0].type)


@tflite("CUMSUM")
def cumsum(node: TfliteNode, x: OutPort, axis: OutPort) -> OutPort:
    return node.tf("Cumsum", x, axis, exclusive=node.flag("exclusive"), reverse=node.flag("reverse"))


@tflite("TOPK_V2", stored=True)
def top_k(node: TfliteNode, x: OutPort, k: OutPort) -> tuple[OutPort, OutPort]:
    return node.tf("TopKV2", x, k, index_type=node.output_type(1).value)
