"""Images in other sizes, boxes cut out of them, colours."""

import numpy as np
from make_op_cases import Known, Numbers, case

N = Numbers(15)
X = N.f32(2, 5, 7, 3)
SIZES = [(10, 14), (3, 4), (8, 5), (1, 1)]
FLAGS = [{}, {"align_corners": True}, {"half_pixel_centers": True}]
BOXES = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [0.8, 0.9, 0.1, 0.2], [-0.5, 0.25, 0.5, 1.5]], np.float32)
OWNERS = np.array([0, 1, 0, 1], np.int32)
RGB = N.f32(2, 3, 4, 3, low=0, high=1)


def i32(*values):
    return Known(np.array(values, np.int32))


CASES = [
    *(
        case(op, X, i32(*size), tolerance=1e-4, **flags)
        for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
        for size in SIZES
        for flags in FLAGS
        if not (op == "ResizeBicubic" and size == (1, 1))
    ),
    *(case("ResizeArea", X, i32(*size), **flags) for size in SIZES for flags in FLAGS[:2]),
    *(
        case(op, X, np.array([4, 9], np.int32), **flags, dynamic=False)
        for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea")
        for flags in FLAGS[:2]
    ),
    case("ResizeBilinear", N.ints(1, 3, 4, 2), i32(5, 5)),
    case("ResizeNearestNeighbor", N.ints(1, 3, 4, 2, low=0, dtype=np.uint8), i32(5, 5), half_pixel_centers=True),
    case("ResizeBilinear", N.ints(1, 3, 4, 2, low=0, dtype=np.uint8), i32(7, 2), half_pixel_centers=True),
    *(
        case("CropAndResize", X, BOXES, OWNERS, i32(*size), method=m)
        for size in ((3, 4), (1, 1), (6, 2))
        for m in ("bilinear", "nearest")
    ),
    case("CropAndResize", X, BOXES, OWNERS, i32(4, 4), extrapolation_value=-2.0),
    case("CropAndResize", X, BOXES, OWNERS, np.array([4, 3], np.int32), dynamic=False),
    case("RGBToHSV", RGB),
    case("HSVToRGB", RGB),
    case("AdjustHue", RGB, Known(0.3, np.float32)),
    case("AdjustHue", RGB, np.float32(-0.4)),
    case("AdjustSaturation", RGB, Known(0.5, np.float32)),
    case("AdjustSaturation", RGB, np.float32(2)),
    case("AdjustContrastv2", RGB, Known(1.75, np.float32)),
    case("RGBToHSV", np.array([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.25]], np.float32)),
    *(
        case(
            "ScaleAndTranslate",
            X,
            i32(*size),
            Known(scale, np.float32),
            Known(move, np.float32),
            kernel_type=kernel,
            tolerance=1e-4,
        )
        for kernel in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
        for size, scale, move in (((3, 4), [0.6, 0.55], [0.0, 0.0]), ((8, 9), [1.5, 1.25], [0.25, -0.5]))
    ),
    case(
        "ScaleAndTranslate",
        X,
        i32(3, 4),
        Known([0.6, 0.55], np.float32),
        Known([0, 0], np.float32),
        antialias=False,
        tolerance=1e-4,
    ),
]
