"""Cases of aot/opset/signal/spectrum.py and short_time.py."""

from __future__ import annotations

import numpy as np

from aot.opset.signal.short_time import ISTFT, STFT
from aot.opset.signal.spectrum import DFT, IDFT, IRDFT, RDFT
from aot.runtime.abi import DType
from tests.cases import CLOSE, LOOSE, Case

F32, F16 = DType.F32, DType.F16
HANN = np.hanning(16).astype(np.float32)


FRAME, HOP = np.array(16), np.array(4)


def ints(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, np.int64)


CASES = [
    *(Case(DFT(), [(F32, (2, n, 2)), ints(1)], LOOSE) for n in (1, 12, 17)),
    *(Case(IDFT(), [(F32, (2, n, 2)), ints(1)], LOOSE) for n in (2, 12, 24)),
    Case(DFT(), [(F32, (3, 4, 5, 2)), ints(0, -1)], LOOSE),
    Case(DFT(), [(F32, (64, 2)), ints(0)], LOOSE),
    *(Case(kind(), [(F32, (2, n, 2)), ints(1)], LOOSE) for kind, n in ((DFT, 90), (IDFT, 256), (DFT, 286))),
    *(Case(DFT(), [(F32, (2, n, e, 2)), ints(1)], LOOSE) for n, e in ((24, 2), (77, 3), (24, 11))),
    Case(IDFT(), [(F32, (2, 40, "e=11", 2)), ints(1)], LOOSE),
    Case(IDFT(), [(F32, (3, 4, 5, 2)), ints(1, 0), ints(6, -1)], LOOSE),
    Case(DFT(), [(F32, (3, 4, 5, 2)), ints(1, 2), ints(3, 7)], LOOSE),
    Case(DFT(), [(F16, (3, 8, 2)), ints(1)], LOOSE),
    Case(DFT(), [(DType.F64, (3, 12, 2)), ints(1)], CLOSE),
    *(Case(IDFT(), [(F32, ("n=3", f"m={m}", 2)), ints(0, 1)], LOOSE) for m in (1, 12, 17)),
    *(
        Case(kind(), [(F32, (3, f"n={n}", 2)), ints(1)], LOOSE)
        for kind in (DFT, IDFT)
        for n in (2, 3, 5, 8, 14, 30, 60, 61, 63, 64)
    ),
    # of columns side by side
    *(Case(DFT(), [(F32, (2, f"n={n}", f"e={e}", 2)), ints(1)], LOOSE) for n, e in ((12, 3), (40, 8), (21, 19))),
    Case(IDFT(), [(F32, ("n=60", "m=1", 2)), ints(0, 1)], LOOSE),
    Case(DFT(), [(DType.F64, ("n=3", "m=10", 2)), ints(1)], CLOSE),
    Case(RDFT(), [(F32, (2, "n=9")), ints(1)], LOOSE),
    Case(IRDFT(), [(F32, (2, "n=9", 2)), ints(1)], LOOSE),
    Case(RDFT(), [(F32, (3, 7)), ints(-1)], LOOSE),
    Case(RDFT(), [(F32, (3, 8, 5)), ints(2, 1)], LOOSE),
    Case(RDFT(), [(F32, (3, 8, 5)), ints(0, 1), ints(4, 6)], LOOSE),
    Case(RDFT(), [(F32, ("n=3", 64)), ints(1)], LOOSE),
    Case(IRDFT(), [(F32, (3, 5, 2)), ints(-1)], LOOSE),
    Case(IRDFT(), [(F32, (4, 5, 6, 2)), ints(-1)], LOOSE),
    Case(IRDFT(), [(F32, (3, 5, 6, 2)), ints(0, 2), ints(-1, 9)], LOOSE),
    Case(IRDFT(), [(F32, (3, 5, 6, 2)), ints(2, 1), ints(8, 4)], LOOSE),
    Case(STFT(transpose_frames=False), [(F32, (2, 60)), HANN, FRAME, np.array(5)], LOOSE),
    Case(STFT(), [(F32, (2, 60)), (F32, ("w=11",)), FRAME, HOP], LOOSE),
    Case(STFT(transpose_frames=True), [(F32, (60,)), (F32, (11,)), FRAME, HOP], LOOSE),
    *(
        Case(ISTFT(center, normalized), [(F32, (2, 9, 7, 2)), HANN + 1, FRAME, HOP], LOOSE)
        for center in (False, True)
        for normalized in (False, True)
    ),
    *(
        Case(ISTFT(True, False), [(F32, (9, 7, 2)), HANN[:12] + 1, FRAME, HOP, np.array(n)], LOOSE)
        for n in (20, 26, 40)
    ),
]
