"""Images in other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from aot.opset.grid import Outside, SampleMode
from aot.opset.resize import ShapeFrom
from aot.opset.resize_weights import Coordinates, Mode, Rounding
from runtime.abi import DType

MODES = {"nearest": Mode.NEAREST, "linear": Mode.LINEAR, "cubic": Mode.CUBIC}
PLACES = {c.value: c for c in Coordinates}
ROUNDINGS = {r.value: r for r in Rounding if r is not Rounding.SIMPLE}


@onnx("Upsample")
def upsample(node: Call, x: OutPort, scales: OutPort | None = None) -> OutPort:
    """As Resize of opset 10; scales are an attribute before opset 9."""
    if scales is None:
        scales = node.build.const(np.array(node.numbers("scales"), np.float32), DType.F32)
    return _old(node, x, scales)


@onnx("Resize")
def resize(
    node: Call, x: OutPort, roi: OutPort | None = None, scales: OutPort | None = None, sizes: OutPort | None = None
) -> OutPort:
    if node.opset == 10 and roi is not None:
        return _old(node, x, roi)
    kind = node.text("coordinate_transformation_mode", "half_pixel")
    node.refuse(kind not in PLACES, f"coordinate_transformation_mode {kind} is not supported")
    node.refuse(node.flag("exclude_outside"), "exclude_outside is not supported")
    antialias = node.flag("antialias")
    mode = node.choice("mode", MODES, "nearest")
    node.refuse(antialias and mode is not Mode.NEAREST, "antialias is not supported")
    axes = [node.axis(a, x.type.rank) for a in node.integers("axes", range(x.type.rank))]
    fields = {
        "mode": mode, "antialias": antialias, "coordinate_transformation_mode": PLACES[kind],
        "nearest_mode": node.choice("nearest_mode", ROUNDINGS, "round_prefer_floor"),
        "cube_coeff": node.number("cubic_coeff_a", -0.75),
    }  # fmt: skip
    if sizes is not None and sizes.type.dims != (0,):
        policy = node.text("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            return _kept_aspect(node, x, sizes, axes, policy, fields)
        return _interpolated(node, x, axes, sizes, ShapeFrom.SIZES, fields)
    node.refuse(scales is None, "scales or sizes must be given")
    assert scales is not None
    if kind == "align_corners":
        own = [x.shape[a] for a in axes]
        given = node.known(scales, "scales").reshape(-1).tolist()
        pairs = zip(own, given, strict=False)
        broken = any(not isinstance(n, int) or abs(n * s - round(n * s)) > 1e-4 for n, s in pairs)
        node.refuse(broken, "align_corners with scales that give broken sizes is not supported: give sizes")
    return _interpolated(node, x, axes, scales, ShapeFrom.SCALES, fields)


def _interpolated(
    node: Call, x: OutPort, axes: list[int], wanted: OutPort, kind: ShapeFrom, fields: dict[str, Any]
) -> OutPort:
    """Axes that keep their size are left out."""
    value = wanted.value
    if value is not None:
        given = value.reshape(-1).tolist()
        same = [(v == 1 if kind is ShapeFrom.SCALES else v == x.shape[a]) for v, a in zip(given, axes, strict=False)]
        kept = [i for i, s in enumerate(same) if not s] or [len(axes) - 1]
        if len(kept) < len(axes):
            axes = [axes[i] for i in kept]
            wanted = node.build.Gather(wanted, node.list(kept), node.scalar(0))
    return node.build.Interpolate_11(x, wanted, node.list(axes), shape_calculation_mode=kind, **fields)


def _kept_aspect(
    node: Call, x: OutPort, sizes: OutPort, axes: list[int], policy: str, fields: dict[str, Any]
) -> OutPort:
    """One scale for all axes: the largest that does not exceed the sizes, or the smallest that reaches them."""
    wanted, own = node.ints(sizes, "sizes"), x.type.static_shape
    ratios = [(m, own[a]) for m, a in zip(wanted, axes, strict=True)]
    pick = min if policy == "not_larger" else max
    up, down = pick(ratios, key=lambda r: r[0] / r[1])
    scale = up / down
    found = [int(np.floor(scale * own[a] + 0.5)) for a in axes]
    return _interpolated(node, x, axes, node.list(found), ShapeFrom.SIZES, fields)


def _old(node: Call, x: OutPort, scales: OutPort) -> OutPort:
    """Element i lies at i / scale; the nearest one is the one before it."""
    fields = {
        "mode": node.choice("mode", MODES, "nearest"), "coordinate_transformation_mode": Coordinates.ASYMMETRIC,
        "nearest_mode": Rounding.FLOOR,
    }  # fmt: skip
    return _interpolated(node, x, list(range(x.type.rank)), scales, ShapeFrom.SCALES, fields)


@onnx("GridSample")
def grid_sample(node: Call, x: OutPort, grid: OutPort) -> OutPort:
    modes = {
        "bilinear": SampleMode.BILINEAR, "linear": SampleMode.BILINEAR, "nearest": SampleMode.NEAREST,
        "bicubic": SampleMode.BICUBIC, "cubic": SampleMode.BICUBIC,
    }  # fmt: skip
    outside = {"zeros": Outside.ZEROS, "border": Outside.BORDER, "reflection": Outside.REFLECTION}
    node.refuse(x.type.rank != 4, f"images of two axes are supported, got rank {x.type.rank}")
    return node.build.GridSample(
        x, grid, align_corners=node.flag("align_corners"), mode=node.choice("mode", modes, "linear"),
        padding_mode=node.choice("padding_mode", outside, "zeros"),
    )  # fmt: skip


@onnx("AffineGrid")
def affine_grid(node: Call, theta: OutPort, size: OutPort) -> OutPort:
    """Places in -1..1 of each output element, times the matrices."""
    build, (batch, _, *extents) = node.build, node.ints(size, "size")
    aligned = node.flag("align_corners")

    def steps(n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.linspace(-1, 1, n) if aligned else (np.arange(n) * 2 + 1) / n - 1

    places = np.meshgrid(*map(steps, extents), indexing="ij")
    flat = np.stack([*(p.reshape(-1) for p in reversed(places)), np.ones(int(np.prod(extents)))], 1)
    found = build.MatMul(build.const(flat, theta.type.dtype), theta, transpose_b=True)
    return node.reshape(found, (batch, *extents, len(extents)))
