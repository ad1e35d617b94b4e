"""Images resized."""

from __future__ import annotations

from aot.frontends.caffe.registry import CaffeNode, caffe
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

RESAMPLED = {"NEAREST": "nearest", "LINEAR": "linear", "CUBIC": "cubic"}


def _resized(node: CaffeNode, x: OutPort, sizes: OutPort, **attrs: str) -> OutPort:
    return node.onnx("Resize", x, None, None, sizes, axes=[2, 3], **attrs)


@caffe("Interp", param="interp_param")
def interp(
    node: CaffeNode,
    x: OutPort,
    like: OutPort | None = None,
    *,
    height: int,
    width: int,
    zoom_factor: int,
    shrink_factor: int,
    pad_beg: int,
    pad_end: int,
) -> OutPort:
    """Interpolate with aligned corners to given sizes, to the sizes of another bottom, or by factors."""
    build = node.build
    node.refuse(max(pad_beg, pad_end) > 0, f"images are cut, not padded, got {pad_beg} and {pad_end}")
    if pad_beg or pad_end:
        ends = build.Add(node.dims(x, [2, 3]), pad_end)
        x = build.Slice(x, node.list([-pad_beg] * 2), ends, node.list([1, 1]), node.list([2, 3]))
    if min(zoom_factor, shrink_factor) < 1:
        raise ModelError(f"{node.kind}: factors must be from 1 on, got {zoom_factor} and {shrink_factor}")
    sizes = node.dims(x, [2, 3])
    if like is not None:
        sizes = node.dims(like, [2, 3])
    elif height and width:
        sizes = node.list([height, width])
    else:
        if shrink_factor > 1:
            sizes = build.Add(build.Divide(build.Subtract(sizes, 1), shrink_factor), 1)
        if zoom_factor > 1:
            sizes = build.Add(sizes, build.Multiply(build.Subtract(sizes, 1), zoom_factor - 1))
    return _resized(node, x, sizes, mode="linear", coordinate_transformation_mode="align_corners")


@caffe("Resample", param="resample_param")
def resample(node: CaffeNode, x: OutPort, like: OutPort | None = None, *, type: str, factor: float) -> OutPort:
    """FlowNet's resampling to given sizes, to the sizes of another bottom, or by a factor."""
    mode = node.choice("type", RESAMPLED)
    size_values = [node.integer(name, 0) for name in ("height", "width")]
    if like is not None:
        sizes = node.dims(like, [2, 3])
    elif all(size_values):
        sizes = node.list(size_values)
    else:
        own = node.cast(node.dims(x, [2, 3]), DType.F32)
        sizes = node.cast(node.build.Floor(node.build.Multiply(own, factor)), DType.I64)
    known, larger = sizes.value, like is None and not all(size_values) and factor >= 1
    if known is not None and known.dtype != object:
        larger = all(isinstance(s, int) and n >= s for n, s in zip(known.tolist(), x.shape[2:], strict=True))
    node.refuse(type != "NEAREST" and not larger, "images are made larger, others lose what lies between")
    return _resized(node, x, sizes, mode=mode, coordinate_transformation_mode="half_pixel")


@caffe("Upsample", "Upsampling", param="upsample_param")
def upsample(node: CaffeNode, x: OutPort, *, scale: int) -> OutPort:
    """YOLO's: each element becomes a square. SegNet's has places of a pooling as a second bottom."""
    factors = [node.integer(f"scale_{letter}", 0) or scale for letter in "hw"]
    sizes = node.build.Multiply(node.dims(x, [2, 3]), node.list(factors))
    attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return _resized(node, x, sizes, **attrs)
