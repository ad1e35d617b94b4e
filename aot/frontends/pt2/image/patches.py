"""Patches of images as columns, and columns summed back into images."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.arrays.movement import windows
from aot.frontends.pt2.arrays.padding import padded
from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.opset.movement.padding import PadMode


def pair(values: int | Sequence[int]) -> tuple[int, int]:
    """Two numbers; one stands for both."""
    pair_of_sizes = (values,) if isinstance(values, int) else tuple(values)
    return (pair_of_sizes[0], pair_of_sizes[-1])


@aten("im2col.default")
def im2col(
    node: AtenNode,
    x: OutPort,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> OutPort:
    """[.., C, H, W] -> [.., C kh kw, patches]"""
    build, rank = node.build, x.type.rank
    above, aside = pair(padding)
    if above or aside:
        x = padded(node, x, [aside, aside, above, above], PadMode.CONSTANT)
    for k, (size, gap, step) in enumerate(zip(pair(kernel_size), pair(dilation), pair(stride), strict=True)):
        x = windows(node, x, rank - 2 + k, size, step, gap)  # the elements of windows go to the end
    lead = list(range(rank - 3))
    c = rank - 3
    x = build.Transpose(x, node.list([*lead, c, c + 3, c + 4, c + 1, c + 2]))
    kernel = pair(kernel_size)
    channels = build.Multiply(node.dims(x, [c]), node.list([kernel[0] * kernel[1]]))
    count = build.Multiply(node.dims(x, [c + 3]), node.dims(x, [c + 4]))
    return build.Reshape(x, build.Concat(node.dims(x, lead), channels, count, axis=0))


@aten("col2im.default")
def col2im(
    node: AtenNode,
    x: OutPort,
    output_size: Sequence[Size],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> OutPort:
    """[.., C kh kw, patches] -> [.., C, H, W]; overlapping elements are summed."""
    fields = {"strides": pair(stride), "dilations": pair(dilation)}
    pads = {"pads_begin": pair(padding), "pads_end": pair(padding)}
    return node.build.Col2Im(x, node.vector(output_size), node.list(pair(kernel_size)), **fields, **pads)
