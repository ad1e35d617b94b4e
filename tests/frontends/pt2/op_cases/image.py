"""Images in another size, read at positions, as columns."""

from tests.frontends.pt2.case import case, f

X, LINE, VOLUME = f(1, 2, 5, 6), f(1, 2, 5), f(1, 2, 3, 4, 5)

CASES = [
    case("upsample_nearest1d.vec", LINE, [8], None),
    case("upsample_nearest2d.vec", X, None, [2.0, 1.5]),
    case("upsample_nearest2d.vec", X, [8, 4], None),
    case("upsample_nearest2d.default", X, [10, 9], 2.0, 1.5),
    case("upsample_nearest3d.vec", VOLUME, [5, 4, 7], None),
    case("_upsample_nearest_exact2d.vec", X, [8, 4], None),
    case("upsample_linear1d.vec", LINE, [8], False, None),
    case("upsample_bilinear2d.vec", X, None, False, [2.0, 1.5]),
    case("upsample_bilinear2d.vec", X, [3, 9], True, None),
    case("upsample_bilinear2d.vec", X, [1, 9], False, None),
    case("upsample_bilinear2d.default", X, [3, 9], False),
    case("upsample_trilinear3d.vec", VOLUME, [5, 4, 7], False, None),
    case("upsample_bicubic2d.vec", X, [7, 9], False, None),
    case("upsample_bicubic2d.vec", X, [7, 9], True, None),
    case("_upsample_bilinear2d_aa.vec", f(1, 2, 9, 8), [4, 5], False, None, fixed=True),
    case("_upsample_bicubic2d_aa.vec", f(1, 2, 9, 8), [4, 5], False, None, fixed=True),
    *(
        case("grid_sampler_2d.default", X, f(1, 3, 4, 2, low=-1.2, high=1.2), mode, outside, corners, fixed=True)
        for mode, outside, corners in ((0, 0, False), (0, 1, True), (1, 0, False), (2, 2, False))
    ),
    case("affine_grid_generator.default", f(2, 2, 3), [2, 1, 3, 4], False, fixed=True),
    case("affine_grid_generator.default", f(2, 2, 3), [2, 1, 3, 4], True, fixed=True),
    case("im2col.default", X, [2, 3], [1, 2], [1, 0], [2, 1]),
    case("im2col.default", f(2, 5, 6), [2, 3], [1, 1], [0, 0], [1, 1], fixed=True),
    case("col2im.default", f(1, 8, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1], fixed=True),
]
