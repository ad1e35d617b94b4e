"""Images in another size: nearest neighbours, linear and cubic interpolation."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import Call, Size, aten
from aot.ir.graph import OutPort
from aot.opset.image.resize import ShapeFrom
from aot.opset.image.resize_weights import Coordinates, Mode, Rounding
from runtime.abi import DType

RANKS = {"1d": 1, "2d": 2, "3d": 3}


def _resized(
    node: Call,
    x: OutPort,
    sizes: Sequence[Size] | None,
    scales: Sequence[float] | None,
    mode: Mode,
    coordinates: Coordinates,
    rounding: Rounding = Rounding.FLOOR,
    antialias: bool = False,
) -> OutPort:
    """Resize the spatial axes: to sizes, or by factors, which then give the positions, too."""
    rank = x.type.rank - 2
    by_sizes = scales is None or any(s <= 0 for s in scales)
    if by_sizes and sizes is None:
        node.refuse(True, "output_size or scale factors must be given, got none")
    wanted = node.vector(sizes) if sizes is not None and by_sizes else node.list([1] * rank)
    factors = node.build.const([1.0] * rank if by_sizes else scales, DType.F32)
    return node.build.Interpolate_4(
        x,
        wanted,
        factors,
        node.list(range(2, 2 + rank)),
        mode=mode,
        shape_calculation_mode=ShapeFrom.SIZES if by_sizes else ShapeFrom.SCALES,
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
        antialias=antialias,
        pads_begin=(0,) * (2 + rank),
        pads_end=(0,) * (2 + rank),
        cube_coeff=-0.5 if mode is Mode.BICUBIC_PILLOW else -0.75,
    )


def _factors(*given: float | None) -> list[float] | None:
    """Factors of the axes if there is one for each."""
    found = [float(g) for g in given if g is not None]
    return found if found and len(found) == len(given) else None


@aten("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
@aten("_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec")
def nearest_vec(
    node: Call, x: OutPort, output_size: Sequence[Size] | None, scale_factors: Sequence[float] | None
) -> OutPort:
    exact = "exact" in node.kind
    coordinates = Coordinates.HALF_PIXEL if exact else Coordinates.ASYMMETRIC
    rounding = Rounding.ROUND_PREFER_CEIL if exact else Rounding.FLOOR
    return _resized(node, x, output_size, scale_factors, Mode.NEAREST, coordinates, rounding)


@aten("upsample_nearest1d.default", "upsample_nearest2d.default", "upsample_nearest3d.default")
@aten("_upsample_nearest_exact1d.default", "_upsample_nearest_exact2d.default", "_upsample_nearest_exact3d.default")
def nearest(
    node: Call,
    x: OutPort,
    output_size: Sequence[Size],
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> OutPort:
    given = [scales] if "1d" in node.kind else [scales_d, scales_h, scales_w][-(x.type.rank - 2) :]
    return nearest_vec(node, x, output_size, _factors(*given))


@aten("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec", "upsample_bicubic2d.vec")
@aten("_upsample_bilinear2d_aa.vec", "_upsample_bicubic2d_aa.vec")
def linear_vec(
    node: Call,
    x: OutPort,
    output_size: Sequence[Size] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None,
) -> OutPort:
    """Linear or cubic interpolation; `aa` weighs all pixels that a smaller image's pixel covers."""
    coordinates = Coordinates.ALIGN_CORNERS if align_corners else Coordinates.HALF_PIXEL
    cubic, smooth = "bicubic" in node.kind, "_aa" in node.kind
    mode = Mode.CUBIC if cubic else Mode.LINEAR_ONNX
    if smooth:
        node.refuse(align_corners, "antialias with align_corners is not supported")
        mode = Mode.BICUBIC_PILLOW if cubic else Mode.BILINEAR_PILLOW
    return _resized(node, x, output_size, scale_factors, mode, coordinates)


@aten("upsample_linear1d.default", "upsample_bilinear2d.default", "upsample_trilinear3d.default")
@aten("upsample_bicubic2d.default", "_upsample_bilinear2d_aa.default", "_upsample_bicubic2d_aa.default")
def linear(
    node: Call,
    x: OutPort,
    output_size: Sequence[Size],
    align_corners: bool,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> OutPort:
    given = [scales] if "1d" in node.kind else [scales_d, scales_h, scales_w][-(x.type.rank - 2) :]
    return linear_vec(node, x, output_size, align_corners, _factors(*given))
