"""Images resized: Resize, Upsample."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.frontends.onnx.arrays.axes import OPEN_END
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.image.resize import ShapeFrom
from aot.opset.image.resize_taps import Sampling, axes_of, resampled
from aot.opset.image.resize_weights import Coordinates, Mode, Rounding
from aot.runtime.abi import DType

MODES = {"nearest": Mode.NEAREST, "linear": Mode.LINEAR, "cubic": Mode.CUBIC}
COORDINATE_MODES = {c.value: c for c in Coordinates}
NEAREST_MODES = {r.value: r for r in Rounding if r is not Rounding.SIMPLE}


@onnx("Upsample")
def upsample(node: OnnxNode, x: OutPort, scales: OutPort | None = None) -> OutPort:
    """Convert like Resize of opset 10; scales are an attribute before opset 9."""
    if scales is None:
        scales = node.build.const(np.array(node.numbers("scales"), np.float32), DType.F32)
    return _old(node, x, scales)


@onnx("Resize")
def resize(
    node: OnnxNode, x: OutPort, roi: OutPort | None = None, scales: OutPort | None = None, sizes: OutPort | None = None
) -> OutPort:
    if node.opset == 10 and roi is not None:
        return _old(node, x, roi)
    axes = [node.axis(a, x.type.rank) for a in node.integers("axes", range(x.type.rank))]
    by_size = sizes is not None and sizes.type.dims != (0,)
    sizes_or_scales = sizes if by_size else scales
    node.refuse(sizes_or_scales is None, "scales or sizes must be given")
    assert sizes_or_scales is not None
    sizes_or_scales = _demanded(node, sizes_or_scales, by_size)
    scale: OutPort | None = None
    exact = True
    if by_size and node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        sizes_or_scales, scale, exact = _uniform_scale(node, x, sizes_or_scales, axes)
    kind = ShapeFrom.SIZES if by_size else ShapeFrom.SCALES
    if not exact or _needs_taps(node, sizes_or_scales):
        crop = roi if node.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" else None
        resized_axes = axes_of(node.build, x, axes, sizes_or_scales, by_size, crop, common=scale)
        return resampled(node.build, x, resized_axes, _sampling(node))
    fields = {
        "mode": node.choice("mode", MODES, "nearest"),
        "antialias": node.flag("antialias"),
        "coordinate_transformation_mode": node.choice("coordinate_transformation_mode", COORDINATE_MODES, "half_pixel"),
        "nearest_mode": node.choice("nearest_mode", NEAREST_MODES, "round_prefer_floor"),
        "cube_coeff": node.number("cubic_coeff_a", -0.75),
    }
    return _interpolated(node, x, axes, sizes_or_scales, kind, fields)


def _demanded(node: OnnxNode, sizes_or_scales: OutPort, by_size: bool) -> OutPort:
    """Return dynamic sizes or scales, checked."""
    if sizes_or_scales.value is not None:
        return sizes_or_scales
    if by_size:
        return node.within(sizes_or_scales, 0, OPEN_END, "sizes must not be negative")
    build = node.build
    positive = build.LogicalAnd(
        build.IsFinite(sizes_or_scales), build.Greater(sizes_or_scales, node.like(0, sizes_or_scales))
    )
    return node.demand(positive, "scales must be positive and finite", sizes_or_scales)


def _needs_taps(node: OnnxNode, scales: OutPort) -> bool:
    """True for weights that Interpolate does not have, for invalid sizes, and for dynamic scales."""
    if scales.value is None or scales.value.dtype == object:
        return True
    mode = node.text("coordinate_transformation_mode", "half_pixel")
    smooth = node.text("mode", "nearest") != "nearest"
    return mode not in COORDINATE_MODES or (smooth and (node.flag("exclude_outside") or node.flag("antialias")))


def _sampling(node: OnnxNode) -> Sampling:
    return Sampling(
        node.text("mode", "nearest"),
        node.text("coordinate_transformation_mode", "half_pixel"),
        node.text("nearest_mode", "round_prefer_floor"),
        node.number("cubic_coeff_a", -0.75),
        node.flag("antialias"),
        node.flag("exclude_outside"),
        node.number("extrapolation_value", 0.0),
    )


def _interpolated(
    node: OnnxNode, x: OutPort, axes: list[int], sizes_or_scales: OutPort, kind: ShapeFrom, fields: dict[str, Any]
) -> OutPort:
    """Build Interpolate over the axes that change in size."""
    value = sizes_or_scales.value
    if value is not None:
        numbers = value.reshape(-1).tolist()
        same = [(v == 1 if kind is ShapeFrom.SCALES else v == x.shape[a]) for v, a in zip(numbers, axes, strict=False)]
        changed = [i for i, s in enumerate(same) if not s] or [len(axes) - 1]
        if len(changed) < len(axes):
            axes = [axes[i] for i in changed]
            sizes_or_scales = node.build.Gather(sizes_or_scales, node.list(changed), node.scalar(0))
    return node.build.Interpolate_11(x, sizes_or_scales, node.list(axes), shape_calculation_mode=kind, **fields)


def _uniform_scale(node: OnnxNode, x: OutPort, sizes: OutPort, axes: list[int]) -> tuple[OutPort, OutPort, bool]:
    """Return sizes by one scale for all axes, that scale [1] in f64, and True if sizes are exactly scale * extent."""
    build = node.build
    own = node.cast(node.dims(x, axes), DType.F64)
    pick = build.ReduceMin if node.text("keep_aspect_ratio_policy", "stretch") == "not_larger" else build.ReduceMax
    scale = pick(build.Divide(node.cast(sizes, DType.F64), own), node.list([0]), keep_dims=True)
    scaled = build.Multiply(scale, own)
    rounded = build.Floor(build.Add(scaled, 0.5))
    known = scaled.value is not None and scaled.value.dtype != object
    exact = known and bool(np.abs(np.asarray(scaled.value) - np.asarray(rounded.value)).max(initial=0) < 1e-9)
    return node.cast(rounded, DType.I64), scale, exact


def _old(node: OnnxNode, x: OutPort, scales: OutPort) -> OutPort:
    """Build a resize with asymmetric coordinates: element i is at i / scale, the nearest one is rounded down."""
    if scales.value is None:
        scales = _demanded(node, scales, False)
        how = Sampling(node.text("mode", "nearest"), "asymmetric", "floor", -0.75, False, False, 0.0)
        return resampled(node.build, x, axes_of(node.build, x, range(x.type.rank), scales, False, None), how)
    fields = {
        "mode": node.choice("mode", MODES, "nearest"),
        "coordinate_transformation_mode": Coordinates.ASYMMETRIC,
        "nearest_mode": Rounding.FLOOR,
    }
    return _interpolated(node, x, list(range(x.type.rank)), scales, ShapeFrom.SCALES, fields)
