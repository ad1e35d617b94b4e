"""Shifts by all bits and more, quotients of infinities, NaN and 0, and numbers in place of the first tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.pt2.case import Short, case, i

INFINITE, NAN = float("inf"), float("nan")
NUMBERS = np.array([0, -0.0, 1, -1, 2.5, -7.25, 0.1, 7, INFINITE, -INFINITE, NAN], np.float32)
ROWS, COLUMNS = (np.ascontiguousarray(v.reshape(-1)) for v in np.meshgrid(NUMBERS, NUMBERS, indexing="ij"))
INTEGERS = (np.int8, np.uint8, np.int16, np.int32, np.int64)


def floats(values: np.ndarray) -> list[Any]:
    """The same numbers in all types of floats."""
    return [*(values.astype(t) for t in (np.float32, np.float64, np.float16)), Short(values, "bfloat16")]


def shifted(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and places to shift them by: less than none, and more than all."""
    bits = 8 * np.dtype(dtype).itemsize
    by = np.array([0, 1, bits - 1, bits, bits + 1, 100, -1, -3]).astype(dtype)
    return np.repeat(np.array([5, 77, -3]).astype(dtype), len(by)), np.tile(by, 3)


SHIFTS = [case(f"__{side}shift__.Tensor", *shifted(t)) for t in INTEGERS for side in "lr"]
SHIFTS += [
    case(f"__{side}shift__.Scalar", shifted(t)[0], by) for t in INTEGERS for side in "lr" for by in (7, 8, 64, -1)
]
SHIFTS += [case(f"bitwise_{side}_shift.Scalar_Tensor", 77, shifted(np.int32)[1]) for side in ("left", "right")]
QUOTIENTS = [
    case(op, a, b, **mode)
    for op, mode in (
        ("floor_divide.default", {}),
        ("div.Tensor_mode", {"rounding_mode": "trunc"}),
        ("remainder.Tensor", {}),
        ("fmod.Tensor", {}),
    )
    for a, b in zip(floats(ROWS), floats(COLUMNS), strict=True)
]
QUOTIENTS += [case("floor_divide.Scalar", v, by) for v in floats(NUMBERS) for by in (1, 0.1)]
FIRST = [
    case(op, number, y, **mode)
    for op, mode in (
        ("floor_divide.default", {}),
        ("div.Tensor_mode", {"rounding_mode": "floor"}),
        ("div.Tensor_mode", {"rounding_mode": "trunc"}),
        ("div.Tensor", {}),
        ("add.Tensor", {"alpha": 2}),
        ("mul.Tensor", {}),
    )
    for number in (7, -2.5)
    for y in (np.array([2, 3, -3], np.int64), NUMBERS)
]
FIRST += [case("remainder.Scalar_Tensor", 7, y) for y in (i(4, low=1), NUMBERS)]

CASES = [*SHIFTS, *QUOTIENTS, *FIRST]
