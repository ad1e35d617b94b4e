"""Operations that TensorFlow's optimiser has fused: a product or a convolution with its epilogue."""

from __future__ import annotations

from aot.frontends.tf.neural.convolution import convolved, depthwise
from aot.frontends.tf.neural.layout import image
from aot.frontends.tf.neural.normalization import normalised
from aot.frontends.tf.neural.pooling import bias_add
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort

ACTIVATIONS = {"Relu": "Relu", "Elu": "Elu", "Tanh": "Tanh", "Sigmoid": "Sigmoid"}


def _followed(node: TfNode, y: OutPort, more: tuple[OutPort, ...]) -> OutPort:
    """`y` through the operations that `fused_ops` names, which take their operands in their order."""
    build, left = node.build, list(more)
    for name in node.texts("fused_ops"):
        needs = {"BiasAdd": 1, "Add": 1, "FusedBatchNorm": 4}.get(name, 0)
        taken, left = left[:needs], left[needs:]
        node.refuse(len(taken) < needs, f"{name} in fused_ops needs {needs} more inputs, got {len(taken)}")
        if name == "BiasAdd":
            y = bias_add(node, y, *taken)
        elif name == "Add":
            y = build.Add(y, *taken)
        elif name == "FusedBatchNorm":
            y = normalised(node, y, taken, node.number("epsilon"))
        elif name == "Relu6":
            y = build.Clamp(y, min=0.0, max=6.0)
        elif name == "LeakyRelu":
            y = build.PRelu(y, node.like(node.number("leakyrelu_alpha"), y))
        else:
            node.refuse(name not in ACTIVATIONS, f"{name} in fused_ops is not supported")
            y = getattr(build, ACTIVATIONS[name])(y)
    return y


@tf("_FusedConv2D")
def fused_conv(node: TfNode, x: OutPort, w: OutPort, *more: OutPort) -> OutPort:
    return _followed(node, convolved(node, image(node, x, 4), w), more)


@tf("_FusedDepthwiseConv2dNative")
def fused_depthwise(node: TfNode, x: OutPort, w: OutPort, *more: OutPort) -> OutPort:
    return _followed(node, depthwise(node, x, w), more)


@tf("_FusedMatMul")
def fused_matmul(node: TfNode, a: OutPort, b: OutPort, *more: OutPort) -> OutPort:
    transposes = {"transpose_a": node.flag("transpose_a"), "transpose_b": node.flag("transpose_b")}
    return _followed(node, node.build.MatMul(a, b, **transposes), more)
