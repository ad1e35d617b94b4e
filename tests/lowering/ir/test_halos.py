"""Elements before and behind the dimensions of a buffer, in its memory."""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.ir.loops import Buffer, Size, Space, Var
from aot.lowering.ir.halos import halos_of

N, H, W = Var("n"), Var("h"), Var("w")


def buffer(strides: tuple[Size, ...], origin: Size) -> Buffer:
    return Buffer("x", (N, H, W), strides, Space.ARENA, origin, halo=0.0)


def test_halos_of_rows_and_columns() -> None:
    row = W + 5
    found = buffer((row * (H + 3), row, 1), row * 1 + 2)
    assert halos_of(found) == [(0, 0), (1, 2), (2, 3)]
    assert halos_of(replace(found, origin=row * 4 + 2)) is None  # 4 rows before it, of 3 around it
    assert halos_of(replace(found, strides=(row * H, W, 1))) is None  # rows that lie upon each other
    assert halos_of(replace(found, strides=(row * N, row, 1))) is None
    assert halos_of(buffer((0, 0, 0), 0)) == [(0, 0), (0, 0), (0, 0)]
