"""Seven products of quarters in place of eight (Strassen 1969), in another basis (Karstadt, Schwartz 2017).

    y = OUT (LEFT x * RIGHT BASIS w)      of each matrix the quarters are 11 12 21 22

BASIS w takes as much memory as w, and four of its sums are right sides as they are; the other three are sums of two.
"""

from __future__ import annotations

Matrix = tuple[tuple[int, ...], ...]

LEFT: Matrix = (
    (1, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0), (-1, 0, 1, 0), (0, 1, 0, -1),
)  # fmt: skip
BASIS: Matrix = ((1, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, -1), (-1, 0, 1, 0))
RIGHT: Matrix = (
    (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, -1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1),
)  # fmt: skip
OUT: Matrix = (
    (1, 0, 0, 1, -1, 0, 1),
    (0, 0, 1, 0, 1, 0, 0),
    (0, 1, 0, 1, 0, 0, 0),
    (1, -1, 1, 0, 0, 1, 0),
)
