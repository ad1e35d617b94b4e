"""Cases of aot/opset/image/grid.py."""

from __future__ import annotations

from aot.opset.image.grid import GridSample, Outside, SampleMode
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE, Case

F32, F16, I32 = DType.F32, DType.F16, DType.I32
IMAGE, GRID = (F32, (2, 3, 5, 6)), (F32, (2, 3, 4, 2))

CASES = [
    *(
        Case(GridSample(align, mode, outside), [IMAGE, GRID], LOOSE, low=-1.8, high=1.8)
        for align in (False, True)
        for mode in SampleMode
        for outside in Outside
    ),
    Case(GridSample(), [(F32, ("n=2", 3, "h=4", "w=5")), (F32, ("n=2", "i=3", 2, 2))], LOOSE, low=-2, high=2),
    Case(GridSample(True, padding_mode=Outside.REFLECTION), [(F32, (1, 2, 1, "w=5")), (F32, (1, 3, 2, 2))], LOOSE),
    *(
        Case(GridSample(mode=mode), [(F32, (2, 9, 3, 4)), (F32, (2, 5, 4, 2))], LOOSE, low=-1.3, high=1.3, long=True)
        for mode in SampleMode
    ),
    Case(GridSample(), [(F32, ("n=2", 8, "h=4", "w=5")), (F32, ("n=2", "i=3", 7, 2))], LOOSE, low=-2, high=2),
    Case(GridSample(mode=SampleMode.BICUBIC), [(F16, (1, 2, 4, 4)), (F16, (1, 2, 3, 2))], LOOSE, low=-1, high=1),
    Case(GridSample(mode=SampleMode.NEAREST), [(I32, (1, 2, 4, 4)), (F32, (1, 2, 3, 2))], EXACT, low=-1, high=1),
]
