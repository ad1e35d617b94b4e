"""Gradients of layers."""

from __future__ import annotations

import numpy as np

from tests.frontends.pt2.case import case, f, i, p

POOL = [3, 3], [2, 2], [0, 0], [1, 1], False
PLACES = np.array([[[[12, 12], [12, 19]]] * 3, [[[0, 3], [10, 24]]] * 3])
ALL = [True, True, True]

CASES = [
    case("embedding_dense_backward", f(2, 4, 3), i(2, 4, low=0, high=5), 5, -1, False, fixed=True),
    case("embedding_dense_backward", f(4, 3), np.array([1, 2, 1, 0]), 5, 1, False, fixed=True),
    case(
        "native_layer_norm_backward",
        f(3, 4, 5),
        f(3, 4, 5),
        [5],
        f(3, 4, 1),
        p(3, 4, 1),
        f(5),
        f(5),
        ALL,
        tolerance=1e-5,
    ),
    case(
        "native_layer_norm_backward",
        f(3, 4),
        f(3, 4),
        [4],
        f(3, 1),
        p(3, 1),
        None,
        None,
        [True, False, False],
        first=True,
    ),
    case(
        "native_group_norm_backward",
        f(2, 6, 5),
        f(2, 6, 5),
        f(2, 3),
        p(2, 3),
        f(6),
        2,
        6,
        5,
        3,
        ALL,
        fixed=True,
        tolerance=1e-5,
    ),
    case("max_pool2d_with_indices_backward", f(2, 3, 2, 2), f(2, 3, 5, 5), *POOL, PLACES, fixed=True),
    case("_adaptive_avg_pool2d_backward", f(2, 3, 4, 5), f(2, 3, 7, 5), fixed=True),
]
