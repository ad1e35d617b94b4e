"""Colours of images with red, green and blue along the last axis."""

from __future__ import annotations

from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort


def _channels(node: TfNode, x: OutPort) -> tuple[OutPort, ...]:
    last = node.scalar(x.type.rank - 1)
    return tuple(node.build.Split(x, last, num_splits=3, outputs=3).node.out_ports().values())


def _joined(node: TfNode, *parts: OutPort) -> OutPort:
    return node.build.Concat(*parts, axis=parts[0].type.rank - 1)


@tf("RGBToHSV")
def rgb_to_hsv(node: TfNode, x: OutPort) -> OutPort:
    """Hue, saturation and value, all in 0..1."""
    build = node.build
    r, g, b = _channels(node, x)
    value = build.Maximum(build.Maximum(r, g), b)
    span = build.Subtract(value, build.Minimum(build.Minimum(r, g), b))
    zero = node.like(0, x)
    saturation = build.Select(build.Greater(value, zero), build.Divide(span, value), zero)
    norm = build.Divide(node.like(1 / 6, x), span)

    def towards(a: OutPort, c: OutPort, start: float) -> OutPort:
        return build.Add(build.Multiply(norm, build.Subtract(a, c)), start)

    rest = build.Select(build.Equal(g, value), towards(b, r, 2 / 6), towards(r, g, 4 / 6))
    hue = build.Select(build.Equal(r, value), towards(g, b, 0.0), rest)
    hue = build.Select(build.Greater(span, zero), hue, zero)
    hue = build.Select(build.Less(hue, zero), build.Add(hue, 1.0), hue)
    return _joined(node, hue, saturation, value)


@tf("HSVToRGB")
def hsv_to_rgb(node: TfNode, x: OutPort) -> OutPort:
    build = node.build
    hue, saturation, value = _channels(node, x)
    angle = build.Multiply(hue, 6.0)

    def channel(centre: float, sign: float, offset: float) -> OutPort:
        steep = build.Add(build.Multiply(build.Abs(build.Subtract(angle, centre)), sign), offset)
        bounded = build.Minimum(build.Maximum(steep, node.like(0, x)), node.like(1, x))
        kept = build.Multiply(saturation, build.Subtract(bounded, 1.0))
        return build.Multiply(build.Add(kept, 1.0), value)

    return _joined(node, channel(3.0, 1.0, -1.0), channel(2.0, -1.0, 2.0), channel(4.0, -1.0, 2.0))


@tf("AdjustHue")
def adjust_hue(node: TfNode, x: OutPort, delta: OutPort) -> OutPort:
    build = node.build
    hue, saturation, value = _channels(node, rgb_to_hsv(node, x))
    shifted_hue = build.FloorMod(build.Add(hue, node.cast(delta, x.type.dtype)), node.like(1, x))
    return hsv_to_rgb(node, _joined(node, shifted_hue, saturation, value))


@tf("AdjustSaturation")
def adjust_saturation(node: TfNode, x: OutPort, scale: OutPort) -> OutPort:
    build = node.build
    hue, saturation, value = _channels(node, rgb_to_hsv(node, x))
    wide = build.Multiply(saturation, node.cast(scale, x.type.dtype))
    bounded = build.Minimum(build.Maximum(wide, node.like(0, x)), node.like(1, x))
    return hsv_to_rgb(node, _joined(node, hue, bounded, value))


@tf("AdjustContrastv2")
def adjust_contrast(node: TfNode, x: OutPort, factor: OutPort) -> OutPort:
    """(x - mean) factor + mean, with the mean of each channel of each image."""
    build, rank = node.build, x.type.rank
    mean = build.ReduceMean(x, node.list([rank - 3, rank - 2]), keep_dims=True)
    return build.Add(build.Multiply(build.Subtract(x, mean), node.cast(factor, x.type.dtype)), mean)
