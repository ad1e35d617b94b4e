"""Images resized: `upsample_*` by sizes or scales.

Element i is at (i + 1/2) / scale - 1/2, in `upsample_nearest*` at i / scale, with aligned corners at
i (n - 1) / (m - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.opset.image.resize import ShapeFrom
from aot.opset.image.resize_weights import Coordinates, Mode, Rounding
from aot.runtime.abi import DType

CUBIC = -0.75  # the `a` of Keys' cubic convolution; -0.5 in antialiased resizing, as in Pillow
NEAREST = {
    "mode": Mode.NEAREST,
    "coordinate_transformation_mode": Coordinates.ASYMMETRIC,
    "nearest_mode": Rounding.FLOOR,
}
NEAREST_EXACT = {"mode": Mode.NEAREST, "nearest_mode": Rounding.ROUND_PREFER_CEIL}
SMOOTH: dict[str, dict[str, Any]] = {
    "upsample_linear1d": {"mode": Mode.LINEAR},
    "upsample_bilinear2d": {"mode": Mode.LINEAR},
    "upsample_trilinear3d": {"mode": Mode.LINEAR},
    "upsample_bicubic2d": {"mode": Mode.CUBIC, "cube_coeff": CUBIC},
    "_upsample_bilinear2d_aa": {"mode": Mode.BILINEAR_PILLOW},
    "_upsample_bicubic2d_aa": {"mode": Mode.BICUBIC_PILLOW, "cube_coeff": -0.5},
}
AREAS = (Mode.BILINEAR_PILLOW, Mode.BICUBIC_PILLOW)


def resized(
    node: AtenNode, x: OutPort, sizes: Sequence[Size] | None, scales: Sequence[float | None] | None, how: dict[str, Any]
) -> OutPort:
    """Resize the spatial axes of `x` [N, C, ..]. Scales, where all are given, place the elements."""
    build, rank = node.build, x.type.rank
    axes = list(range(2, rank))
    known = [s for s in scales or () if s is not None]
    coordinates = how.get("coordinate_transformation_mode")
    if len(known) < len(axes) or (sizes and coordinates is Coordinates.ALIGN_CORNERS):
        node.refuse(not sizes, "sizes or scales must be given")
        target = node.vector(list(sizes or ()))
        kind = ShapeFrom.SIZES
    elif how["mode"] in AREAS:
        target, kind = _whole(node, x, known), ShapeFrom.SIZES
    else:
        target, kind = build.const(np.array(known), DType.F64), ShapeFrom.SCALES
    return build.Interpolate_11(x, target, node.list(axes), shape_calculation_mode=kind, **how)


def _whole(node: AtenNode, x: OutPort, scales: Sequence[float]) -> OutPort:
    """Return sizes by scales; they must come out even, since antialiased weights are by the sizes."""
    sizes: list[int] = []
    for k, scale in enumerate(scales):
        size = node.extent(x, 2 + k, "the size of an image that is resized with antialias by a scale") * scale
        node.refuse(abs(size - round(size)) > 1e-6, f"antialias with a scale that gives whole sizes, got {size}")
        sizes.append(round(size))
    return node.list(sizes)


@aten(*(f"upsample_nearest{n}d.{form}" for n in (1, 2, 3) for form in ("vec", "default")))
@aten(*(f"_upsample_nearest_exact{n}d.{form}" for n in (1, 2, 3) for form in ("vec", "default")))
def upsample_nearest(
    node: AtenNode,
    x: OutPort,
    output_size: Sequence[Size] | None = None,
    scale_factors: Sequence[float] | None = None,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> OutPort:
    factors = scale_factors or [scales, scales_d, scales_h, scales_w]
    return resized(node, x, output_size, factors, NEAREST_EXACT if "exact" in node.kind else NEAREST)


@aten(*(f"{name}.{form}" for name in SMOOTH for form in ("vec", "default")))
def upsample(
    node: AtenNode,
    x: OutPort,
    output_size: Sequence[Size] | None = None,
    align_corners: bool = False,
    scale_factors: Sequence[float] | None = None,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> OutPort:
    how = SMOOTH[node.kind.partition(".")[0]]
    if align_corners:
        node.refuse(how["mode"] in AREAS, "antialias with aligned corners is not supported")
        how = how | {"coordinate_transformation_mode": Coordinates.ALIGN_CORNERS}
    return resized(node, x, output_size, scale_factors or [scales, scales_d, scales_h, scales_w], how)
