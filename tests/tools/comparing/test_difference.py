"""The measure of all comparisons: the largest error over the largest expected number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from aot.runtime.abi import DType
from aot.tools.comparing import difference as module
from aot.tools.comparing.difference import bound_of, difference, numbers

NAN, INF = math.nan, math.inf
CASES: dict[str, tuple[Any, Any, float, tuple[int, ...], int]] = {  # expected, actual, error, place, beyond 0.01
    "equal": ([1.0, -2.0], [1.0, -2.0], 0.0, (0,), 0),
    "over the largest": ([[0.0, -4.0]], [[1.0, -4.0]], 0.25, (0, 0), 1),
    "all zeros: absolute": ([0.0, 0.0], [0.0, 0.5], 0.5, (1,), 1),
    "nan where nan": ([NAN, 2.0], [NAN, 2.0], 0.0, (0,), 0),
    "nan lost": ([NAN, 2.0], [1.0, 2.0], INF, (0,), 1),
    "nan made": ([1.0, 2.0], [1.0, NAN], INF, (1,), 1),
    "same infinity": ([INF, 2.0], [INF, 2.0], 0.0, (0,), 0),
    "other infinity": ([INF, 2.0], [-INF, 2.0], INF, (0,), 1),
    "infinity is no scale": ([INF, 2.0], [INF, 1.0], 0.5, (1,), 1),
    "other shape": ([1.0, 2.0], [[1.0, 2.0]], INF, (), 2),
    "empty": ([], [], 0.0, (), 0),
    "integers": ([100, 50], [100, 49], 0.01, (1,), 0),
    "booleans": ([True, False], [True, True], 1.0, (1,), 1),
    "texts": (["a", "b"], ["a", "c"], INF, (1,), 1),
    "number": (2.0, 3.0, 0.5, (), 1),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_error_place_and_count(case: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    expected, actual, error, place, beyond = CASES[case]
    found = difference(np.array(expected), np.array(actual), 0.01)
    assert (found.error, found.place, found.beyond) == (error, place, beyond)
    assert found.agrees is (beyond == 0)
    assert str(found) == "equal" if error == 0 else str(found).count("expected") == 1


def test_bits_of_bf16_are_numbers() -> None:
    assert numbers(np.array([0x3F80, 0xC000], np.uint16), DType.BF16).tolist() == [1.0, -2.0]
    assert numbers(np.array([3], np.uint16), DType.U16).tolist() == [3]


@pytest.mark.parametrize(
    ("dtype", "given", "precision", "bound"),
    [
        (DType.F32, None, DType.F32, 1e-4),
        (DType.F32, None, DType.BF16, 5e-2),
        (DType.F32, 1e-6, DType.BF16, 1e-6),
        (DType.F16, None, DType.F32, 1e-2),
        (DType.I64, 1e-3, DType.F32, 0.0),
        (DType.STRING, None, DType.F32, 0.0),
    ],
)
def test_bounds_are_those_of_the_type(dtype: DType, given: float | None, precision: DType, bound: float) -> None:
    assert bound_of(dtype, given, precision) == bound
