"""Convolutions."""

from __future__ import annotations

from aot.frontends.conversion.windowing import Windowing
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.ir.types import Dim, simplify
from aot.opset.products.pool_windows import AutoPad
from aot.runtime.errors import ModelError

AUTO_PAD = {
    "NOTSET": AutoPad.EXPLICIT,
    "VALID": AutoPad.VALID,
    "SAME_UPPER": AutoPad.SAME_UPPER,
    "SAME_LOWER": AutoPad.SAME_LOWER,
}


def windowing(node: OnnxNode, rank: int) -> Windowing:
    """Return the attributes; ModelError for lists of a wrong length. An empty `auto_pad` is none."""
    auto = node.choice("auto_pad", AUTO_PAD, "NOTSET") if node.text("auto_pad", "") else AutoPad.EXPLICIT
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * 2 * rank) if auto is AutoPad.EXPLICIT else (0,) * 2 * rank
    if len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank:
        raise ModelError(
            f"{node.kind}: {rank} spatial axes need {rank} strides and dilations and {2 * rank} pads, "
            f"got {len(strides)}, {len(dilations)} and {len(pads)}"
        )
    return Windowing(strides, dilations, pads[:rank], pads[rank:], auto)


def spatial_rank(node: OnnxNode, x: OutPort) -> int:
    rank = x.type.rank - 2
    if rank < 1:
        raise ModelError(f"{node.kind}: inputs must have a batch, channels and spatial axes, got {x.type}")
    node.refuse(rank > 3, f"1 to 3 spatial axes are supported, got {rank}")
    return rank


def weights_of_kernel(node: OnnxNode, w: OutPort) -> OutPort:
    """Weights [.., .., *kernel] with the spatial sizes `kernel_shape`; ModelError for other sizes.

    Sizes that vary are checked at run time. Without the attribute the weights say what the kernel is.
    """
    if not node.has("kernel_shape"):
        return w
    kernel, sizes = node.integers("kernel_shape"), w.shape[2:]
    rule = "the weights' spatial sizes are kernel_shape"
    if len(kernel) != len(sizes) or any(isinstance(n, int) and n != k for n, k in zip(sizes, kernel, strict=True)):
        raise ModelError(f"{node.kind}: {rule} {list(kernel)}, got {list(sizes)}")
    for a, k in enumerate(kernel, 2):
        if not isinstance(w.shape[a], int):
            w = node.within(node.dims(w, [a]), k, k, rule, w)
    return w


@onnx("Conv")
def conv(node: OnnxNode, x: OutPort, w: OutPort, b: OutPort | None = None) -> OutPort:
    return node.biased(convolved(node, x, w), b)


def convolved(node: OnnxNode, x: OutPort, w: OutPort) -> OutPort:
    fields, w = windowing(node, spatial_rank(node, x)).fields(), weights_of_kernel(node, w)
    groups = node.integer("group", 1)
    if groups == 1:
        return node.build.Convolution(x, w, **fields)
    return node.build.GroupConvolution(x, grouped(node, w, groups), **fields)


def grouped(node: OnnxNode, w: OutPort, groups: int) -> OutPort:
    """Reshape [a, b, ..] to [groups, a / groups, b, ..]."""
    first = w.shape[0]
    if groups < 1 or (isinstance(first, int) and first % groups):
        raise ModelError(f"{node.kind}: group must divide the weights' {first} channels, got {groups}")
    return node.reshape(w, (groups, first // groups, *w.shape[1:]))


@onnx("ConvTranspose")
def conv_transpose(node: OnnxNode, x: OutPort, w: OutPort, b: OutPort | None = None) -> OutPort:
    rank, w = spatial_rank(node, x), weights_of_kernel(node, w)
    windows, extra = windowing(node, rank), node.integers("output_padding", (0,) * rank)
    output_size = _transposed_size(node, windows, x, extra)
    pads = (
        (windows.begins, windows.ends) if output_size is None else _transposed_pads(windows, x, w, extra, output_size)
    )
    fields, size = windows.fields("auto_pad") | {"output_padding": extra}, list[OutPort]()
    if pads is not None:  # padding at the end beyond the kernel's reach: output elements that no input reaches
        fields |= {"pads_begin": pads[0], "pads_end": pads[1]}
    elif (
        output_size is not None
    ):  # the remainder is cut as in `_transposed_pads`; the operation names the ends the other way
        upper = windows.auto_pad is AutoPad.SAME_UPPER
        fields |= {"auto_pad": AutoPad.SAME_LOWER if upper else AutoPad.SAME_UPPER}
        node.refuse(
            not all(isinstance(n, int) for n in output_size), "sizes must be known where the kernel's size is not"
        )
        size.append(node.list([n for n in output_size if isinstance(n, int)]))
    groups = node.integer("group", 1)
    if groups == 1:
        y = node.build.ConvolutionBackpropData(x, w, *size, **fields)
    else:
        y = node.build.GroupConvolutionBackpropData(x, grouped(node, w, groups), *size, **fields)
    return node.biased(y, b)


def _transposed_size(node: OnnxNode, windows: Windowing, x: OutPort, extra: tuple[int, ...]) -> tuple[Dim, ...] | None:
    """Return the requested spatial size; None if the node has none."""
    if node.has("output_shape"):
        return node.integers("output_shape")[-len(extra) :]
    if windows.auto_pad in (AutoPad.SAME_UPPER, AutoPad.SAME_LOWER):
        return tuple(n * s for n, s in zip(x.shape[2:], windows.strides, strict=True))
    return None


def _transposed_pads(
    windows: Windowing, x: OutPort, w: OutPort, extra: tuple[int, ...], output_size: tuple[Dim, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the padding for the requested size; the odd remainder is cut at the end for SAME_UPPER, else at the start.

    None if it depends on dynamic sizes; for SAME_* the input's size cancels out.
    """
    begins: list[int] = []
    ends: list[int] = []
    for a, size in enumerate(output_size):
        reach = (w.shape[2 + a] - 1) * windows.dilations[a] + 1
        total = simplify(windows.strides[a] * (x.shape[2 + a] - 1) + extra[a] + reach - size)
        if not isinstance(total, int):
            return None
        small, large = total // 2, total - total // 2
        upper = windows.auto_pad is AutoPad.SAME_UPPER
        begins.append(small if upper else large)
        ends.append(large if upper else small)
    return tuple(begins), tuple(ends)


@onnx("DeformConv")
def deform_conv(
    node: OnnxNode, x: OutPort, w: OutPort, offset: OutPort, b: OutPort | None = None, mask: OutPort | None = None
) -> OutPort:
    fields = windowing(node, 2).fields() | {
        "group": node.integer("group", 1),
        "deformable_group": node.integer("offset_group", 1),
        "bilinear_interpolation_pad": True,
    }
    w = weights_of_kernel(node, w)
    inputs = (x, offset, w) if mask is None else (x, offset, w, mask)
    return node.biased(node.build.DeformableConvolution(*inputs, **fields), b)
