"""Activations."""

from __future__ import annotations

from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.opset.elementwise.activation import Approximation
from aot.opset.movement.movement import Split
from aot.runtime.abi import DType

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
PLAIN = {
    "relu.default": "Relu",
    "hardswish.default": "HSwish",
    "hardsigmoid.default": "HSigmoid",
    "mish.default": "Mish",
    "silu.default": "Swish",
}


@aten(*PLAIN)
def plain(node: AtenNode, x: OutPort) -> OutPort:
    return getattr(node.build, PLAIN[node.kind])(x)


@aten("relu6.default")
def relu6(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.Clamp(x, min=0.0, max=6.0)


@aten("hardtanh.default")
def hardtanh(node: AtenNode, x: OutPort, min_val: float = -1.0, max_val: float = 1.0) -> OutPort:
    return node.build.Clamp(x, min=float(min_val), max=float(max_val))


@aten("gelu.default")
def gelu(node: AtenNode, x: OutPort, approximate: str = "none") -> OutPort:
    node.refuse(approximate not in ("none", "tanh"), f"approximate is none or tanh, got {approximate!r}")
    return node.build.Gelu(x, approximation_mode=Approximation.ERF if approximate == "none" else Approximation.TANH)


@aten("leaky_relu.default")
def leaky_relu(node: AtenNode, x: OutPort, negative_slope: Number = 0.01) -> OutPort:
    return node.build.PRelu(x, node.same(negative_slope, x))


@aten("prelu.default", "_prelu_kernel.default")
def prelu(node: AtenNode, x: OutPort, weight: OutPort) -> OutPort:
    """A vector of slopes has those of the channels, of axis 1."""
    if weight.type.rank == 1 and x.type.rank > 2:
        weight = node.build.Reshape(weight, node.list([-1, *[1] * (x.type.rank - 2)]))
    return node.build.PRelu(x, weight)


@aten("elu.default")
def elu(node: AtenNode, x: OutPort, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> OutPort:
    """scale x where x > 0, else scale alpha (e^(input_scale x) - 1)"""
    build = node.build
    if input_scale == 1.0:
        y = build.Elu(x, alpha=float(alpha))
    else:
        inner = build.Elu(build.Multiply(x, node.like(input_scale, x)), alpha=float(alpha))
        y = build.Select(build.Greater(x, node.like(0, x)), x, inner)
    return y if scale == 1.0 else build.Multiply(y, node.like(scale, x))


@aten("celu.default")
def celu(node: AtenNode, x: OutPort, alpha: float = 1.0) -> OutPort:
    return elu(node, x, alpha, 1.0, 1.0 / alpha)


@aten("selu.default")
def selu(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.Selu(x, node.like(SELU_ALPHA, x), node.like(SELU_SCALE, x))


@aten("softplus.default")
def softplus(node: AtenNode, x: OutPort, beta: Number = 1, threshold: Number = 20) -> OutPort:
    """ln(1 + e^(beta x)) / beta; x itself above the threshold."""
    build, factor = node.build, node.same(beta, x)
    scaled = x if beta == 1 else build.Multiply(x, factor)
    y = build.SoftPlus(scaled)
    y = y if beta == 1 else build.Divide(y, factor)
    return build.Select(build.Greater(scaled, node.same(threshold, x)), x, y)


@aten("log_sigmoid.default")
def log_sigmoid(node: AtenNode, x: OutPort) -> OutPort:
    build = node.build
    return build.Negative(build.SoftPlus(build.Negative(x)))


@aten("softshrink.default", "hardshrink.default")
def shrink(node: AtenNode, x: OutPort, lambd: Number = 0.5) -> OutPort:
    """0 from -lambd to lambd; the soft one is shifted towards 0 elsewhere."""
    build, zero, bound = node.build, node.like(0, x), node.same(lambd, x)
    if node.kind.startswith("hard"):
        inside = build.LessEqual(build.Abs(x), bound)
        return build.Select(inside, zero, x)
    above, below = build.Subtract(x, bound), build.Add(x, bound)
    low = build.Select(build.Less(x, build.Negative(bound)), below, build.Multiply(x, zero))
    return build.Select(build.Greater(x, bound), above, low)


@aten("threshold.default")
def threshold(node: AtenNode, x: OutPort, threshold: Number, value: Number) -> OutPort:
    return node.build.Select(node.build.LessEqual(x, node.same(threshold, x)), node.same(value, x), x)


@aten("glu.default")
def glu(node: AtenNode, x: OutPort, dim: int = -1) -> OutPort:
    axis = node.scalar(node.axis(dim, x.type.rank))
    halves = list(node.build.node(Split(num_splits=2), x, axis, outputs=2).out_ports().values())
    return node.build.Multiply(halves[0], node.build.Sigmoid(halves[1]))


@aten("softmax.int", "_softmax.default", "special_softmax.int", "_safe_softmax.default")
def softmax(node: AtenNode, x: OutPort, dim: int, dtype: DType | None = None, half_to_float: bool = False) -> OutPort:
    x = node.cast(x, dtype or node.dtype())
    if not x.type.rank:
        return node.like(1, x)
    y = node.build.Softmax(x, axis=node.axis(dim, x.type.rank))
    return y if not node.kind.startswith("_safe") else without_nothing(node, y, x, dim)


def without_nothing(node: AtenNode, y: OutPort, scores: OutPort, dim: int) -> OutPort:
    """`y`, 0 where all scores along an axis are -inf."""
    build = node.build
    top = build.ReduceMax(scores, node.list([node.axis(dim, scores.type.rank)]), keep_dims=True)
    return build.Select(build.Equal(top, node.like(-float("inf"), scores)), node.like(0, y), y)


@aten("log_softmax.int", "_log_softmax.default", "special_log_softmax.int")
def log_softmax(
    node: AtenNode, x: OutPort, dim: int, dtype: DType | None = None, half_to_float: bool = False
) -> OutPort:
    x = node.cast(x, dtype or node.dtype())
    return node.build.LogSoftmax(x, axis=node.axis(dim, x.type.rank)) if x.type.rank else node.like(0, x)


@aten("dropout.default", "feature_dropout.default", "alpha_dropout.default", "feature_alpha_dropout.default")
@aten("native_dropout.default")
def dropout(node: AtenNode, x: OutPort, p: float, train: bool | None = False) -> tuple[OutPort, ...]:
    """`x` in inference; the mask of the native one is true."""
    node.refuse(bool(train) and p > 0, "dropout in training is not supported: export model.eval()")
    if len(node.outputs) == 1:
        return (x,)
    return x, node.build.Broadcast(node.port(True), node.dims(x, range(x.type.rank)))
