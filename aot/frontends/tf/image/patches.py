"""Patches of images, and windows that are neither convolution nor pooling."""

from __future__ import annotations

from itertools import product

from aot.frontends.tf.neural.layout import image, to_channels_first, to_channels_last
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.movement.blocks import PatchPad

PADDING = {"SAME": PatchPad.SAME_UPPER, "VALID": PatchPad.VALID}


def _inner(node: TfNode, name: str) -> tuple[int, ...]:
    """Return the entries of height and width of an attribute of four numbers."""
    values = node.integers(name)
    node.refuse(
        len(values) != 4 or values[0] != 1 or values[-1] != 1, f"{name} must be [1, y, x, 1], got {list(values)}"
    )
    return values[1:-1]


@tf("ExtractImagePatches")
def extract_image_patches(node: TfNode, x: OutPort) -> OutPort:
    """[batch, rows, columns, (y, x, channel)]"""
    y = node.build.ExtractImagePatches(
        to_channels_first(node, image(node, x, 4), True),
        sizes=_inner(node, "ksizes"),
        strides=_inner(node, "strides"),
        rates=_inner(node, "rates"),
        auto_pad=node.choice("padding", PADDING),
    )
    return to_channels_last(node, y, True)


@tf("Dilation2D")
def dilation(node: TfNode, x: OutPort, w: OutPort) -> OutPort:
    """The maximum of x + w over windows, for each channel; weights [height, width, channels]."""
    build, lowest = node.build, node.like(float("-inf"), x)
    height, width = (node.extent(w, a, "the size of windows") for a in range(2))
    strides, rates = _inner(node, "strides"), _inner(node, "rates")
    reach = [(n - 1) * r + 1 for n, r in zip((height, width), rates, strict=True)]
    extents = [node.extent(image(node, x, 4), a, "the size of images") for a in (1, 2)]
    if node.text("padding") == "SAME":
        counts = [-(-n // s) for n, s in zip(extents, strides, strict=True)]
        paddings = [max((m - 1) * s + k - n, 0) for m, s, k, n in zip(counts, strides, reach, extents, strict=True)]
        x = build.Pad(
            x,
            node.list([0, *(p // 2 for p in paddings), 0]),
            node.list([0, *(p - p // 2 for p in paddings), 0]),
            lowest,
        )
    else:
        counts = [(n - k) // s + 1 for n, k, s in zip(extents, reach, strides, strict=True)]
    maximum: OutPort | None = None
    for at in product(range(height), range(width)):
        begins = [i * r for i, r in zip(at, rates, strict=True)]
        ends = [b + (m - 1) * s + 1 for b, m, s in zip(begins, counts, strides, strict=True)]
        part = build.Slice(x, node.list(begins), node.list(ends), node.list(strides), node.list([1, 2]))
        row = build.Gather(build.Gather(w, node.scalar(at[0]), node.scalar(0)), node.scalar(at[1]), node.scalar(0))
        part = build.Add(part, row)
        maximum = part if maximum is None else build.Maximum(maximum, part)
    node.refuse(maximum is None, "windows must have elements")
    assert maximum is not None
    return maximum
