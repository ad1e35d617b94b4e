"""Cases of aot/opset/movement/blocks.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.movement.blocks import (
    BatchToSpace,
    DepthMode,
    DepthToSpace,
    ExtractImagePatches,
    PatchPad,
    ReorgYolo,
    ShuffleChannels,
    SpaceToBatch,
    SpaceToDepth,
)
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, U8 = DType.F32, DType.F16, DType.I32, DType.U8


def at(*values: int) -> Array:
    return np.array(values, np.int64)


CASES = [
    *(
        Case(kind(mode, 2), [(dtype, shape)], EXACT)
        for mode in DepthMode
        for kind, dtype, shape in (
            (DepthToSpace, F32, (2, 12, 3, 2)),
            (DepthToSpace, U8, (1, 8, 3)),
            (DepthToSpace, F32, ("n=2", 16, "h=1", 2, 2)),
            (SpaceToDepth, F32, (2, 3, 4, 6)),
            (SpaceToDepth, F16, (1, 2, 6)),
            (SpaceToDepth, F32, ("n=2", 3, 2, 4, 2)),
        )
    ),
    Case(BatchToSpace(), [(F32, (12, 2, 3, 2)), at(1, 1, 2, 3), at(0, 0, 1, 0), at(0, 0, 0, 2)], EXACT),
    Case(BatchToSpace(), [(I32, ("n=6", 4)), at(1, 3), at(0, 2), at(0, 1)], EXACT),
    Case(SpaceToBatch(), [(F32, (2, 2, 3, 4)), at(1, 1, 2, 3), at(0, 0, 1, 0), at(0, 0, 0, 2)], EXACT),
    Case(SpaceToBatch(), [(I32, ("n=2", 4)), at(1, 3), at(0, 1), at(0, 1)], EXACT),
    Case(ExtractImagePatches((3, 3), (5, 5), (1, 1), PatchPad.VALID), [(F32, (2, 1, 10, 10))], EXACT),
    Case(ExtractImagePatches((4, 4), (9, 9), (1, 1), PatchPad.SAME_UPPER), [(F32, (1, 2, 10, 10))], EXACT),
    Case(ExtractImagePatches((2, 3), (1, 2), (2, 1), PatchPad.SAME_LOWER), [(U8, (1, 3, 5, 6))], EXACT),
    Case(ExtractImagePatches((3, 2), (2, 1), (2, 1), PatchPad.VALID), [(F32, ("n=1", 3, "h=7", "w=6"))], EXACT),
    Case(ExtractImagePatches((3, 2), (2, 3), (1, 1), PatchPad.SAME_UPPER), [(F32, (1, 2, "h=5", "w=7"))], EXACT),
    Case(ExtractImagePatches((5, 5), (1, 1), (1, 1), PatchPad.VALID), [(F32, (1, 1, 5, 5))], EXACT),
    Case(ShuffleChannels(1, 3), [(F32, (2, 12, 3))], EXACT),
    Case(ShuffleChannels(-2, 2), [(F32, ("n=2", "c=4", 3))], EXACT),
    Case(ReorgYolo((2,)), [(F32, (2, 8, 4, 6))], EXACT),
    Case(ReorgYolo((2,)), [(U8, ("n=2", 8, "h=4", "w=36"))], EXACT),
    Case(ReorgYolo((3,)), [(F32, (1, 18, "h=6", "w=9"))], EXACT),
    Case(ReorgYolo((1,)), [(F32, (1, 2, 3, 2))], EXACT),
]
