"""Normalisation and softmax."""

from __future__ import annotations

from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort

SMALLEST = 1e-6  # LiteRT divides by the larger one of the length and this


@tflite("L2_NORMALIZATION")
def l2_normalization(node: TfliteNode, x: OutPort) -> OutPort:
    build = node.build
    square = build.ReduceSum(build.Multiply(x, x), node.list([x.type.rank - 1]), keep_dims=True)
    return build.Divide(x, build.Maximum(build.Sqrt(square), SMALLEST))


@tflite("LOCAL_RESPONSE_NORMALIZATION")
def lrn(node: TfliteNode, x: OutPort) -> OutPort:
    fields = {name: node.number(name, 0.0) for name in ("bias", "alpha", "beta")}
    return node.tf("LRN", x, depth_radius=node.integer("radius", 0), **fields)


@tflite("SOFTMAX")
def softmax(node: TfliteNode, x: OutPort) -> OutPort:
    beta = node.number("beta", 0.0)
    scaled = x if beta == 1 else node.build.Multiply(x, node.like(beta, x))
    return node.build.Softmax(scaled, axis=x.type.rank - 1)


@tflite("LOG_SOFTMAX")
def log_softmax(node: TfliteNode, x: OutPort) -> OutPort:
    return node.build.LogSoftmax(x, axis=x.type.rank - 1)
