"""NaN among numbers: which element and which place is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.pt2.case import Case, Short, case

INFINITE, NAN = float("inf"), float("nan")
ROWS = np.array(
    [
        [NAN, 4.5, 2, NAN, 1],
        [1, NAN, 3, 3, NAN],
        [1, 2, NAN, 2, 1],
        [NAN, NAN, NAN, NAN, NAN],
        [1, 3, 3, 2, 1],
        [INFINITE, -INFINITE, NAN, INFINITE, 2],
        [-INFINITE, -INFINITE, -INFINITE, -INFINITE, -INFINITE],
        [NAN, NAN, 1, 1, 2],
    ],
    np.float32,
)
LINE = np.array([NAN, -INFINITE, -1, 0, 1, 1.5, 2, 3, INFINITE], np.float32)
BOUNDS = np.array([-1, 1, 2], np.float32)
ENDLESS = np.array([1, 2, 2, NAN, NAN], np.float32)
REPEATED = np.array([NAN, 2, 1, NAN, 2, 1, 3, NAN, NAN, 3], np.float32)
A, B = (np.ascontiguousarray(v.reshape(-1)) for v in np.meshgrid(LINE, LINE, indexing="ij"))

TYPES = ("float32", "float64", "float16", "bfloat16")


def of(values: np.ndarray, kind: str) -> Any:
    return Short(values, kind) if kind == "bfloat16" else values.astype(kind)


def planes(*shape: int) -> np.ndarray:
    """Small numbers, a quarter of them NaN and a few the least there is."""
    rng = np.random.default_rng(len(shape))
    x = rng.integers(0, 4, shape).astype(np.float32)
    x[rng.random(shape) < 0.25] = NAN
    x[rng.random(shape) < 0.1] = -INFINITE
    return x


def along(kind: str, rows: np.ndarray, dim: int) -> list[Case]:
    """Selections along an axis."""
    x = of(rows, kind)
    names = ("min.dim", "max.dim", "median.dim", "mode", "cummax", "cummin", "argmin", "argmax")
    found = [case(f"{name}{'' if '.' in name else '.default'}", x, dim) for name in names]
    some = of(np.delete(rows, 3, 1 - dim), kind)  # the place of the median of nothing is any
    return [*found, case("nanmedian.dim", some, dim, fixed=True), case("aminmax.default", x, dim=dim)]


def of_type(kind: str) -> list[Case]:
    x, line = of(ROWS, kind), of(LINE, kind)
    pools = ((1, planes(2, 2, 9)), (2, planes(2, 2, 6, 6)), (3, planes(1, 2, 4, 4, 4)))
    found = [*along(kind, ROWS, 1), *along(kind, ROWS.T, 0)]
    found += [case(f"{name}.default", x) for name in ("min", "max", "median", "nanmedian", "argmin", "argmax")]
    found += [case("sort.stable", x, stable=True, dim=1, descending=d) for d in (False, True)]
    found += [case("topk.default", x, k, 1, largest, first=True) for k in (1, 4) for largest in (False, True)]
    found += [case("kthvalue.default", x, 4, 1, first=True)]
    for right in (False, True):
        rows, values = of(np.stack([BOUNDS, BOUNDS + 1]), kind), of(np.stack([LINE, LINE]), kind)
        found += [
            case("bucketize.Tensor", line, of(BOUNDS, kind), right=right),
            case("bucketize.Tensor", line, of(ENDLESS, kind), right=right),
            case("searchsorted.Tensor", rows, values, right=right),
            case("searchsorted.Scalar", of(ENDLESS, kind), 2.0, right=right),
        ]
    found += [case(f"{name}.default", line) for name in ("sign", "sgn", "relu", "hardtanh", "relu6", "hardswish")]
    found += [case("clamp.default", line, *ends) for ends in ((-1, 1), (None, 1), (NAN, 1.0), (0.0, NAN))]
    found += [case(f"{name}.default", of(A, kind), of(B, kind)) for name in ("maximum", "minimum", "fmax", "fmin")]
    found += [case("_unique2.default", of(REPEATED, kind), True, True, True, fixed=kind == "float16")]
    found += [case("unique_consecutive.default", of(REPEATED, kind), True, True)]
    for rank, plane in pools:
        data = of(plane, kind)
        found += [case(f"max_pool{rank}d_with_indices.default", data, [3] * rank, [2] * rank, [1] * rank)]
        found += [case(f"adaptive_max_pool{rank}d.default", data, [3] * rank)]
    return found


CASES = [
    *(c for kind in TYPES for c in of_type(kind)),
    case("max_pool2d_with_indices.default", planes(2, 2, 6, 6), [2, 2], [2, 2], [1, 1], [2, 2], True),
    case("xlogy.Tensor", A, B, tolerance=1e-5),
    case("unique_consecutive.default", np.array([[1, NAN], [1, 2], [1, 2], [NAN, 1]], np.float32), True, True, 0),
]
