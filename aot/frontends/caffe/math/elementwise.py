"""Functions of elements."""

from __future__ import annotations

import math

from aot.frontends.caffe.registry import CaffeNode, caffe
from aot.ir.graph import OutPort
from aot.runtime.errors import ModelError

SAME = {"AbsVal": "Abs", "Sigmoid": "Sigmoid", "TanH": "Tanh", "BNLL": "SoftPlus"}
ELTWISE = {"PROD": "Multiply", "SUM": "Add", "MAX": "Maximum"}


@caffe(*SAME)
def same(node: CaffeNode, x: OutPort) -> OutPort:
    return getattr(node.build, SAME[node.kind])(x)


@caffe("ReLU", param="relu_param")
def relu(node: CaffeNode, x: OutPort, *, negative_slope: float) -> OutPort:
    return node.onnx("LeakyRelu", x, alpha=negative_slope) if negative_slope else node.build.Relu(x)


@caffe("ReLU6", param="relu6_param")
def relu6(node: CaffeNode, x: OutPort, *, n: float) -> OutPort:
    return node.build.Clamp(x, min=0.0, max=n)


@caffe("Clip", param="clip_param")
def clip(node: CaffeNode, x: OutPort, *, min: float, max: float) -> OutPort:
    return node.build.Clamp(x, min=min, max=max)


@caffe("ELU", param="elu_param")
def elu(node: CaffeNode, x: OutPort, *, alpha: float) -> OutPort:
    return node.build.Elu(x, alpha=alpha)


@caffe("Swish", param="swish_param")
def swish(node: CaffeNode, x: OutPort, *, beta: float) -> OutPort:
    return node.build.Swish(x, beta)


@caffe("PReLU", param="prelu_param")
def prelu(node: CaffeNode, x: OutPort, slope: OutPort) -> OutPort:
    """Multiply numbers below 0 by the slope of their channel, or by the one of all channels."""
    flat = node.flat(slope)
    return node.build.PRelu(x, flat if flat.shape == (1,) else node.along(flat, 1, x.type.rank))


@caffe("Power", param="power_param")
def power(node: CaffeNode, x: OutPort, *, power: float, scale: float, shift: float) -> OutPort:
    """(scale x + shift)^power"""
    y = _affine(node, x, scale, shift)
    return y if power == 1 else node.build.Power(y, power)


def _affine(node: CaffeNode, x: OutPort, scale: float, shift: float) -> OutPort:
    y = x if scale == 1 else node.build.Multiply(x, scale)
    return y if shift == 0 else node.build.Add(y, shift)


@caffe("Exp", param="exp_param")
def exp(node: CaffeNode, x: OutPort, *, base: float, scale: float, shift: float) -> OutPort:
    """base^(scale x + shift); base -1 is e."""
    factor = _logarithm(node, base)
    return node.build.Exp(_affine(node, x, scale * factor, shift * factor))


@caffe("Log", param="log_param")
def log(node: CaffeNode, x: OutPort, *, base: float, scale: float, shift: float) -> OutPort:
    """Take the logarithm of scale x + shift to a base; -1 is e."""
    y = node.build.Log(_affine(node, x, scale, shift))
    return y if base == -1 else node.build.Divide(y, _logarithm(node, base))


def _logarithm(node: CaffeNode, base: float) -> float:
    if base == -1:
        return 1.0
    if base <= 0 or base == 1:
        raise ModelError(f"{node.kind}: a base must be positive and not 1, or -1 for e, got {base}")
    return math.log(base)


@caffe("Threshold", param="threshold_param")
def threshold(node: CaffeNode, x: OutPort, *, threshold: float) -> OutPort:
    return node.cast(node.build.Greater(x, threshold), x.type.dtype)


@caffe("Eltwise", param="eltwise_param")
def eltwise(node: CaffeNode, *xs: OutPort, operation: str) -> OutPort:
    """Multiply, add with the factors `coeff`, or take the maximum."""
    factors = node.numbers("coeff", ())
    if factors and (len(factors) != len(xs) or operation != "SUM"):
        raise ModelError(f"{node.kind}: a sum must have a factor for each of {len(xs)} bottoms, got {len(factors)}")
    parts = [_affine(node, x, f, 0) for x, f in zip(xs, factors or [1.0] * len(xs), strict=True)]
    y = parts[0]
    for x in parts[1:]:
        y = getattr(node.build, ELTWISE[operation])(y, x)
    return y


@caffe("Reduction", param="reduction_param")
def reduction(node: CaffeNode, x: OutPort, *, operation: str, axis: int, coeff: float) -> OutPort:
    """Sum over the axes from `axis` on: x, |x| or x^2, or its mean, times `coeff`."""
    build = node.build
    data = build.Abs(x) if operation == "ASUM" else build.Multiply(x, x) if operation == "SUMSQ" else x
    axes = node.list(range(node.axis(axis, x.type.rank), x.type.rank))
    y = build.ReduceMean(data, axes) if operation == "MEAN" else build.ReduceSum(data, axes)
    return _affine(node, y, coeff, 0)
