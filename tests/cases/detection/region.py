"""Cases of aot/opset/detection/region.py."""

from __future__ import annotations

from aot.opset.detection.region import RegionYolo
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

F32, F16 = DType.F32, DType.F16

CASES = [
    *(Case(RegionYolo((), 1, 4, 2, end, 3, True), [(F32, (2, 21, 4, 5))], LOOSE) for end in (1, 2, 3)),
    Case(RegionYolo((), 1, 4, 3, 3, 6, False, (0, 2)), [(F32, (1, 16, 4, 5))], LOOSE),
    Case(RegionYolo((), 1, 4, 2, 3, 3, True), [(F16, (1, 21, 4, 5))], LOOSE),
    Case(RegionYolo((), 1, 4, 2, 3, 3, True), [(F32, ("n=2", 21, "h=3", 5))], LOOSE),
]
