"""Cases of aot/opset/elementwise/broadcasting.py."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.elementwise.broadcasting import Broadcast, BroadcastMode, Tile
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

F32, F16, I32, U8 = DType.F32, DType.F16, DType.I32, DType.U8


def at(*values: int) -> Array:
    return np.array(values, np.int64)


CASES = [
    Case(Broadcast(), [(F32, (3, 1)), at(2, 3, 4)], EXACT),
    Case(Broadcast(), [(U8, ()), at(2, 3)], EXACT),
    Case(Broadcast(), [(I32, ("n=3", 1)), at(2, 3, 4)], EXACT),
    Case(Broadcast(), [(F32, ("n=3", "m=1")), at(2, 3, 4)], EXACT),
    Case(Broadcast(BroadcastMode.EXPLICIT), [(F32, (3,)), at(2, 3, 4), at(1)], EXACT),
    Case(Broadcast(BroadcastMode.EXPLICIT), [(F32, (2, 4)), at(2, 3, 4), at(0, 2)], EXACT),
    Case(Broadcast(BroadcastMode.NONE), [(F32, (3, 4)), at(2, 3, 4), at(1, 2)], EXACT),
    Case(Broadcast(BroadcastMode.BIDIRECTIONAL), [(F32, (3, 1, 4)), at(2, 1)], EXACT),
    Case(Broadcast(BroadcastMode.BIDIRECTIONAL), [(F16, (4,)), at(2, 3, 1)], EXACT),
    Case(Broadcast(BroadcastMode.PDPD), [(F32, (3, 4)), at(2, 3, 4)], EXACT),
    Case(Tile(), [(F32, (2, 3)), at(2, 3)], EXACT),
    Case(Tile(), [(U8, (2, 1, 3)), at(4)], EXACT),
    Case(Tile(), [(I32, (3,)), at(2, 1, 2)], EXACT),
    Case(Tile(), [(F32, ("n=2", 1, 3)), at(2, 5, 1)], EXACT),
]
