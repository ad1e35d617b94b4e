"""Distance by which an index can exceed a dynamic dimension."""

from __future__ import annotations

import pytest

from aot.codegen.ir.loops import Expr, Var
from aot.lowering.ir.reach import after
from aot.lowering.ir.symbolic_sizes import Sizes

N = Var("n")


def behind(index: Expr, extent: Expr, sizes: Sizes | None = None) -> int | None:
    return after(index, extent, sizes or Sizes(), (N,))


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_window(stride: int) -> None:
    out, tap = Var("o", (N - 1) // stride + 1), Var("k", 3)
    assert behind(out * stride + tap - 1, N) == 1


def test_quotients_of_axes_whose_ends_are_known() -> None:
    """A transposed convolution reads at w + (j + 1) // 2 - j // 2, both outputs j of a point together."""
    w, j = Var("w", N), Var("j", 4)
    assert behind(w + (j + 1) // 2 - j // 2, N) == 2
    assert behind(w - j // 2, N) == 0
    assert behind(w + Var("k", N) // 2, N) is None


def test_sizes_over_each_other() -> None:
    """Tiles of four over a size that is rounded up itself."""
    half = (N + 31) // 32
    tile = Var("t", (N + 63) // 64)
    assert behind(tile * 2 + 1, half) == 1
    assert behind(tile * 4 + 3, half * 2) == 2
    assert behind(tile * 4, (N + 30) // 32 * 2) is None  # another remainder


def test_sizes_that_a_rule_makes_equal() -> None:
    """A pyramid concatenates a doubled image with the image that was halved."""
    sizes, (fine, coarse) = Sizes(), ((N + 7) // 8, (N + 31) // 32)
    out, tap = Var("o", (N + 15) // 16), Var("k", 3)
    assert behind(out * 2 + tap - 1, coarse * 4, sizes) is None
    sizes.equate(fine, coarse * 4)
    assert behind(out * 2 + tap - 1, coarse * 4, sizes) == 1
    assert behind(out * 2 + tap - 1, fine, sizes) == 1
