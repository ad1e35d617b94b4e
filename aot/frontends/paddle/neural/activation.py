"""Activations."""

from __future__ import annotations

from aot.frontends.conversion.table import renames
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.opset.elementwise.activation import Approximation

SAME = renames("relu=Relu silu=Swish softsign=SoftSign")


@paddle(*SAME)
def one(node: PaddleNode, x: OutPort) -> OutPort:
    return getattr(node.build, SAME[node.kind.rstrip("_")])(x)


@paddle("relu6")
def relu6(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.Clamp(x, min=0.0, max=6.0)


@paddle("leaky_relu")
def leaky_relu(node: PaddleNode, x: OutPort, *, negative_slope: float = 0.02) -> OutPort:
    return node.build.PRelu(x, node.like(negative_slope, x))


@paddle("prelu")
def prelu(node: PaddleNode, x: OutPort, slope: OutPort, *, mode: str = "all", data_format: str = "NCHW") -> OutPort:
    """Multiply negative elements by a slope: one for all, one for each channel, or one for each element."""
    if mode == "channel" and data_format == "NCHW":
        slope = node.reshape(slope, (-1, *[1] * (x.type.rank - 2)))
    factor = node.reshape(slope, (-1,)) if mode == "all" else slope
    scaled = node.build.Multiply(node.build.Minimum(x, node.like(0, x)), factor)
    return node.build.Add(node.build.Relu(x), scaled)


@paddle("elu", "celu")
def elu(node: PaddleNode, x: OutPort, *, alpha: float = 1.0) -> OutPort:
    return node.onnx("Elu" if node.kind.startswith("elu") else "Celu", x, alpha=alpha)


@paddle("selu")
def selu(
    node: PaddleNode,
    x: OutPort,
    *,
    scale: float = 1.0507009873554804934193349852946,
    alpha: float = 1.67326324235437728481,
) -> OutPort:
    return node.onnx("Selu", x, alpha=alpha, gamma=scale)


@paddle("gelu")
def gelu(node: PaddleNode, x: OutPort, *, approximate: bool = False) -> OutPort:
    return node.build.Gelu(x, approximation_mode=Approximation.TANH if approximate else Approximation.ERF)


@paddle("swish")
def swish(node: PaddleNode, x: OutPort, *, beta: float = 1.0) -> OutPort:
    return node.build.Swish(x) if beta == 1 else node.build.Swish(x, node.like(beta, x))


@paddle("hardswish")
def hardswish(
    node: PaddleNode, x: OutPort, *, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0
) -> OutPort:
    """Return x min(max(x + offset, 0), threshold) / scale."""
    if (threshold, scale, offset) == (6, 6, 3):
        return node.build.HSwish(x)
    gate = node.build.Clamp(node.build.Add(x, node.like(offset, x)), min=0.0, max=threshold)
    return node.build.Divide(node.build.Multiply(x, gate), node.like(scale, x))


@paddle("hardsigmoid")
def hardsigmoid(node: PaddleNode, x: OutPort, *, slope: float = 0.2, offset: float = 0.5) -> OutPort:
    return node.onnx("HardSigmoid", x, alpha=slope, beta=offset)


@paddle("mish")
def mish(node: PaddleNode, x: OutPort) -> OutPort:
    """Return x tanh(ln(1 + e^x)); beyond its threshold x is the softplus of x to the last bit."""
    return node.build.Mish(x)


@paddle("softplus")
def softplus(node: PaddleNode, x: OutPort, *, beta: float = 1.0, threshold: float = 20.0) -> OutPort:
    """Return ln(1 + e^(beta x)) / beta, and x where beta x is beyond the threshold."""
    build = node.build
    wide = x if beta == 1 else build.Multiply(x, node.like(beta, x))
    y = build.SoftPlus(wide)
    y = y if beta == 1 else build.Divide(y, node.like(beta, x))
    return build.Select(build.Greater(wide, node.like(threshold, x)), x, y)


@paddle("softshrink", "hardshrink")
def shrink(node: PaddleNode, x: OutPort, *, threshold: float = 0.5) -> OutPort:
    """Clear elements near 0, and bring others nearer by the threshold if the operation is soft."""
    return node.onnx("Shrink", x, lambd=threshold, bias=threshold if node.kind.startswith("soft") else 0.0)


@paddle("tanh_shrink")
def tanh_shrink(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.Subtract(x, node.build.Tanh(x))


@paddle("stanh")
def stanh(node: PaddleNode, x: OutPort, *, scale_a: float = 0.67, scale_b: float = 1.7159) -> OutPort:
    """Return b tanh(a x)."""
    return node.build.Multiply(node.build.Tanh(node.build.Multiply(x, node.like(scale_a, x))), node.like(scale_b, x))


@paddle("thresholded_relu")
def thresholded_relu(node: PaddleNode, x: OutPort, *, threshold: float = 1.0, value: float = 0.0) -> OutPort:
    return node.build.Select(node.build.Greater(x, node.like(threshold, x)), x, node.like(value, x))


@paddle("logsigmoid")
def logsigmoid(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.Negative(node.build.SoftPlus(node.build.Negative(x)))


@paddle("softmax", "log_softmax")
def softmax(node: PaddleNode, x: OutPort, *, axis: int = -1) -> OutPort:
    make = node.build.Softmax if node.kind.startswith("softmax") else node.build.LogSoftmax
    return make(x, axis=node.axis(axis, x.type.rank)) if x.type.rank else node.build.Subtract(x, x)


@paddle("dropout")
def dropout(
    node: PaddleNode,
    x: OutPort,
    seed: OutPort | None = None,
    p: OutPort | None = None,
    *,
    is_test: bool = False,
    mode: str = "downgrade_in_infer",
) -> OutPort:
    """Drop nothing: it is for training; in one mode the elements are scaled then."""
    del seed
    node.refuse(not is_test, "the network is exported for training: call eval() before it is saved")
    if mode == "upscale_in_train" or p is None:
        return x
    return node.build.Multiply(x, node.like(1 - float(node.one(p, "p")), x))


@paddle("maxout")
def maxout(node: PaddleNode, x: OutPort, *, groups: int, axis: int = 1) -> OutPort:
    """Take the largest of each group of channels."""
    along = node.axis(axis, x.type.rank)
    count = node.extent(x, along, "the number of channels")
    sizes = [*[0] * along, count // groups, groups]
    if along + 1 == x.type.rank:
        split = node.build.Reshape(x, node.list(sizes), special_zero=True)
    else:
        rest = node.dims(x, range(along + 1, x.type.rank))
        split = node.build.Reshape(x, node.build.Concat(node.list(sizes), rest, axis=0), special_zero=True)
    return node.build.ReduceMax(split, node.list([along + 1]))


@paddle("swiglu")
def swiglu(node: PaddleNode, x: OutPort, y: OutPort | None = None) -> OutPort:
    """Return swish(x) y; both are halves of one tensor if there is none."""
    if y is None:
        halves = node.build.Split(x, node.scalar(x.type.rank - 1), num_splits=2, outputs=2).node
        x, y = halves.out_ports().values()
    return node.build.Multiply(node.build.Swish(x), y)
