"""Torchvision's operations on boxes; made with torchvision 0.29."""

import numpy as np

from tests.frontends.pt2.case import case, f, p

BOXES = np.concatenate([f(12, 2, low=0, high=5), f(12, 2, low=5, high=9)], 1)
ROIS = np.concatenate([np.array([[0], [1], [0]], np.float32), f(3, 2, low=0, high=4), f(3, 2, low=4, high=9)], 1)
X = f(2, 8, 6, 7)

CASES = [
    *(case("torchvision::nms", BOXES, f(12), limit, fixed=True) for limit in (0.3, 0.6)),
    *(
        case("torchvision::roi_align", X, ROIS, 0.7, 2, 3, ratio, aligned, tolerance=1e-5)
        for ratio in (-1, 2)
        for aligned in (False, True)
    ),
    *(
        case(
            "torchvision::deform_conv2d",
            X,
            f(4, 4, 3, 2),
            f(2, 24, 6, 6),
            p(2, 12, 6, 6),
            f(4),
            1,
            1,
            1,
            0,
            1,
            1,
            2,
            2,
            masked,
            tolerance=1e-5,
        )
        for masked in (False, True)
    ),
]
