"""Images: resizing, sampling, patches, boxes."""

import numpy as np

from tests.frontends.pt2.case import case, f, i, p

X = f(1, 2, 5, 6)
SIZES = {1: [7], 2: [7, 4], 3: [7, 4, 5]}
IMAGES = {1: f(2, 2, 5), 2: f(1, 2, 5, 6), 3: f(1, 2, 3, 4, 3)}
SMOOTH = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
GRID = f(1, 4, 3, 2, low=-1.3, high=1.3)
KERNEL = ([3, 2], [2, 1], [1, 2], [2, 1])

CASES = [
    *(
        case(f"{name}{n}d.vec", IMAGES[n], size, scale)
        for name in ("upsample_nearest", "_upsample_nearest_exact")
        for n in (1, 2, 3)
        for size, scale in ((SIZES[n], None), (None, [2.0] * n), (None, [1.7] * n))
    ),
    *(
        case(f"upsample_{name}{n}d.vec", IMAGES[n], size, aligned, scale, tolerance=1e-5)
        for name, n in SMOOTH.items()
        for aligned in (False, True)
        for size, scale in ((SIZES[n], None), (None, [2.0] * n), (None, [1.7] * n))
    ),
    case("upsample_bilinear2d.default", X, [7, 9], False, 1.5, 1.6),
    *(
        case(f"_upsample_{name}2d_aa.{form}", X, *rest, tolerance=1e-5, fixed=True)
        for name in ("bilinear", "bicubic")
        for form, rest in (("default", ([3, 9], False)), ("vec", (None, False, [2.0, 0.5])))
    ),
    # samples
    *(
        case("grid_sampler.default", X, GRID, mode, outside, aligned, tolerance=1e-4)
        for mode in range(3)
        for outside in range(3)
        for aligned in (False, True)
    ),
    case("grid_sampler_2d.default", X, GRID, 0, 0, False, tolerance=1e-4),
    *(
        case("grid_sampler_3d.default", IMAGES[3], f(1, 2, 3, 2, 3), mode, 1, True, tolerance=1e-4, fixed=True)
        for mode in (0, 1)
    ),
    *(
        case("affine_grid_generator.default", f(2, 2, 3), [2, 3, 4, 5], aligned, fixed=True)
        for aligned in (False, True)
    ),
    case("max_unpool2d.default", p(1, 2, 2, 2), np.array([[[[0, 6], [9, 11]]] * 2]), [4, 4]),
    case(
        "max_unpool3d.default",
        p(2, 1, 2, 2),
        i(2, 1, 1, 1, low=3, high=4) + 5 * np.arange(4).reshape(1, 1, 2, 2),
        [2, 4, 4],
        [2, 2, 2],
        [0, 0, 0],
    ),
    # patches
    case("im2col.default", f(2, 3, 7, 8), *KERNEL),
    case("im2col.default", f(3, 7, 8), [2, 2], [1, 1], [0, 0], [1, 1]),
    case("col2im.default", f(2, 12, 20), [4, 5], [2, 2], [1, 1], [1, 0], [1, 1]),
    case("col2im.default", f(12, 18), [3, 5], [2, 2], [2, 1], [1, 1], [1, 1]),
]
