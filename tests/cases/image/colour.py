"""Cases of aot/opset/image/colour.py."""

from __future__ import annotations

from aot.opset.image.colour import BGRtoNV12, I420toBGR, I420toRGB, NV12toBGR, NV12toRGB, RGBtoNV12
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case

F32, U8, F16 = DType.F32, DType.U8, DType.F16


def image(op: object, dtype: DType, *shapes: tuple[int, ...]) -> Case:
    return Case(op, [(dtype, s) for s in shapes], LOOSE, low=0, high=255)  # type: ignore[arg-type]


CASES = [
    *(image(op(), t, (2, 12, 6, 1)) for op in (NV12toRGB, I420toBGR) for t in (F32, U8)),
    *(image(op(), t, (2, 8, 6, 1), (2, 4, 3, 2)) for op in (NV12toBGR, NV12toRGB) for t in (F32, F16)),
    *(image(op(), t, (1, 8, 6, 1), (1, 4, 3, 1), (1, 4, 3, 1)) for op in (I420toRGB, I420toBGR) for t in (F32, U8)),
    *(image(RGBtoNV12(plane), t, (2, 4, 6, 3)) for plane in (True, False) for t in (F32, U8)),
    *(image(BGRtoNV12(plane), F32, (1, 8, 6, 3)) for plane in (True, False)),
]
