"""Images resized, sampled and folded."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.onnx.case import Case, case, known, row
from tests.frontends.onnx.models import Numbers

N = Numbers(8)
IMAGE, VOLUME = N.f32(1, 2, 6, 8), N.f32(1, 2, 3, 4, 5)
SIZES, SCALES = known([1, 2, 9, 3]), known([1, 1, 2, 1.5], np.float32)
PARTS = np.array([1, 1, 1.5, 0.8], np.float32)  # scales that give no whole size
ALIGNED = {"coordinate_transformation_mode": "align_corners"}
COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")
GRID = np.clip(N.f32(1, 4, 5, 2), -1.2, 1.2)


def kept(shape: tuple[int, ...], sizes: tuple[int, ...], policy: str, mode: str = "linear", **attrs: Any) -> Case:
    fields = {"mode": mode, "keep_aspect_ratio_policy": policy, **attrs}
    return case("Resize", row(N.f32(*shape), 0, 1), None, None, known(sizes), tolerance=1e-4, **fields)


KEPT = [  # one scale for all axes
    kept((1, 2, 7, 6), (11, 9), "not_larger", "cubic", axes=[2, 3], coordinate_transformation_mode="asymmetric"),
    kept((1, 2, 6, 3), (12, 3), "not_larger", axes=[3, 2], coordinate_transformation_mode="half_pixel_symmetric"),
    kept((1, 2, 5, 3), (7, 5), "not_smaller", "nearest", axes=[2, 3], nearest_mode="round_prefer_ceil"),
    kept((1, 2, 6, 8), (1, 2, 8, 9), "not_larger", "nearest", nearest_mode="floor"),
    kept((1, 2, 7, 5), (11, 9), "not_larger", axes=[2, 3], coordinate_transformation_mode="align_corners"),
    kept((1, 2, 6, 7), (7, 10), "not_smaller", axes=[2, 3], coordinate_transformation_mode="pytorch_half_pixel"),
    kept((1, 2, 9, 7), (4, 5), "not_larger", axes=[2, 3], antialias=1),
    kept((1, 1, 20, 21), (21, 21), "not_larger", "cubic", axes=[2, 3]),  # sizes stay, the scale is exact
    kept((1, 1, 20, 30), (21, 31), "not_larger", axes=[2, 3]),
]
CASES = [
    *(
        case("Resize", row(IMAGE, 1), None, None, SIZES, mode=mode, coordinate_transformation_mode=how)
        for mode in ("nearest", "linear", "cubic")
        for how in COORDINATES
    ),
    *(case("Resize", row(IMAGE, 1), None, SCALES, mode=mode) for mode in ("nearest", "linear", "cubic")),
    *(
        case("Resize", row(IMAGE, 1), None, SCALES, nearest_mode=how)
        for how in ("floor", "ceil", "round_prefer_ceil", "round_prefer_floor")
    ),
    *(case("Resize", row(IMAGE, 1), None, None, known([1, 2, 4, 3]), mode=m, antialias=1) for m in ("linear", "cubic")),
    case("Resize", row(IMAGE, 1), None, None, SIZES, mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5),
    case("Resize", row(IMAGE, 1), None, None, known([9, 3]), axes=[2, 3], mode="linear"),
    case(
        "Resize", row(IMAGE, 1), known([0, 0, 0.2, 0.1, 1, 1, 0.8, 1.1], np.float32), None, SIZES, mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=2.0,
    ),
    *KEPT,
    *(
        case("Resize", row(N.f32(1, 2, 7, 9), 0, 1), None, s, mode=m, tolerance=1e-4, **ALIGNED)
        for m in ("nearest", "linear", "cubic")
        for s in (known(PARTS), row(PARTS, 0))
    ),
    case("Resize", IMAGE, SCALES, version=10, mode="linear"),
    case("Resize", IMAGE, SCALES, version=10),
    case("Upsample", IMAGE, SCALES, version=9),
    case("Upsample", IMAGE, version=8, scales=[1.0, 1.0, 2.0, 3.0], mode="linear"),
    *(
        case("GridSample", row(IMAGE), GRID, mode=mode, padding_mode=outside, align_corners=aligned, tolerance=1e-4)
        for mode in ("linear", "nearest", "cubic")
        for outside, aligned in (("zeros", 0), ("border", 1), ("reflection", 0))
    ),
    *(
        case("GridSample", VOLUME, N.f32(1, 3, 4, 4, 3), **attrs, open=False)
        for attrs in (
            {"mode": "linear", "padding_mode": "border"},
            {"mode": "nearest", "align_corners": 1},
            {"mode": "linear", "padding_mode": "reflection"},
        )
    ),
    *(
        case("AffineGrid", N.f32(2, 2, 3), known([2, 3, 4, 5]), align_corners=aligned, open=False) for aligned in (0, 1)
    ),
    case("AffineGrid", N.f32(2, 3, 4), known([2, 1, 3, 4, 5]), open=False),
    case("Col2Im", N.f32(1, 8, 20), known([5, 6]), known([2, 2]), open=False),
    case(
        "Col2Im", N.f32(1, 12, 9), known([5, 6]), known([2, 3]), strides=[2, 2], pads=[1, 0, 1, 1],
        open=False,
    ),
    case("Col2Im", N.f32(1, 8, 8), known([4, 3, 2]), known([1, 2, 2]), open=False),
]  # fmt: skip
