"""Elements before and behind the dimensions of a buffer, in its memory."""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.ir.loops import Buffer, Size, Space, Var
from aot.lowering.ir.halos import halos_of

N, H, W = Var("n"), Var("h"), Var("w")
ROW = W + 5


def buffer(shape: tuple[Size, ...], strides: tuple[Size, ...], origin: Size) -> Buffer:
    return Buffer("x", shape, strides, Space.ARENA, origin, halo=0.0)


def test_halos_of_rows_and_columns() -> None:
    found, elements = buffer((N, H, W), (ROW * (H + 3), ROW, 1), ROW * 1 + 2), N * (H + 3) * ROW
    assert halos_of(found, elements) == [(0, 0), (1, 2), (2, 3)]
    assert halos_of(found, elements + ROW * (H + 3)) == [(0, 1), (1, 2), (2, 3)]
    assert halos_of(found, elements - 1) is None
    assert halos_of(replace(found, origin=ROW * 4 + 2), elements) is None  # 4 rows before it, of 3 around it
    assert halos_of(replace(found, strides=(ROW * H, W, 1)), elements) is None  # rows that lie upon each other
    assert halos_of(replace(found, strides=(0, ROW, 1)), elements) is None


def test_dimensions_in_any_order() -> None:
    """Pixels of 8 channels side by side, one picture: its rows are the outermost dimension."""
    pixels = buffer((1, 8, H, W), (0, 1, ROW * 8, 8), ROW * 8 + 16)
    assert halos_of(pixels, (H + 2) * ROW * 8) == [(0, 0), (0, 0), (1, 1), (2, 3)]
    assert halos_of(pixels, (H + 1) * ROW * 8) == [(0, 0), (0, 0), (1, 0), (2, 3)]
    assert halos_of(pixels, H * ROW * 8) is None
