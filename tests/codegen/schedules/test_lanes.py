"""Lanes that do not lie in a row: shuffled vectors, tiles transposed in registers, addresses as vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Expr, Var, as_expr, cast, dense, prim
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.llvm.emit.arithmetic.shuffle import are_near, pieces
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.runtime.abi import DType
from tests.codegen.running import Array, aligned, compiled

TARGETS = ["native", "x86-64-v2", "x86-64-v3"]
TYPES = [(DType.F32, np.float32), (DType.U8, np.uint8), (DType.F64, np.float64), (DType.F16, np.float16)]


def lanes(n: int, width: int) -> Schedule:
    return Schedule(order=("k",), tile=(Tile("k", n, Tail.CUT),), lanes=("k", width))


PLACES = [range(0, 32, 2), range(15, -1, -1), [i // 3 for i in range(16)], [5, 4, 5, 90, 91, 5]]


@pytest.mark.parametrize("places", PLACES)
def test_pieces_cover_the_places_and_stay_between_them(places: list[int]) -> None:
    found = pieces(places)
    assert all(any(start <= p < start + size for start, size in found) for p in places)
    assert all(min(places) <= start and start + size <= max(places) + 1 for start, size in found)
    assert all(size & (size - 1) == 0 for _, size in found)


def test_distant_lanes_are_not_near() -> None:
    assert are_near(range(0, 64, 4))
    assert not are_near(range(0, 1600, 100))


MAPS: dict[str, tuple[int, Callable[[Expr], Expr], Callable[[Array], Array]]] = {
    "every second": (48, lambda k: k * 2, lambda x: x[0:96:2]),
    "every fifth": (48, lambda k: k * 5 + 1, lambda x: x[1:241:5]),
    "backwards": (48, lambda k: 47 - k, lambda x: x[47::-1]),
    "repeated": (48, lambda k: k // 3, lambda x: x[np.arange(48) // 3]),
    "interleaved": (48, lambda k: k % 3 * 80 + k // 3, lambda x: x[np.arange(48) % 3 * 80 + np.arange(48) // 3]),
    "rolled": (24, lambda k: (k + 5) % 24, lambda x: x[(np.arange(24) + 5) % 24]),
    "folded": (40, lambda k: prim("min", k, 39 - k), lambda x: x[np.minimum(np.arange(40), 39 - np.arange(40))]),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("dtype", "kind"), TYPES, ids=lambda t: str(getattr(t, "value", "")))
@pytest.mark.parametrize("name", MAPS)
def test_lanes_that_are_known(name: str, dtype: DType, kind: type[np.generic], target: str) -> None:
    n, place, expected = MAPS[name]
    k, x, y = Var("k", n), dense("x", 256, dtype=dtype), dense("y", n, dtype=dtype)
    kernel = apply("g", Definition(y, (k,), x[place(k)]), lanes(n, 16), (x, y))
    data = np.random.default_rng(1).integers(0, 200, 256).astype(kind)
    out = aligned(np.zeros(n, kind))
    compiled(kernel, parse_target(target))(aligned(data), out)
    assert out.tolist() == expected(data).tolist()


SHAPES = [(4, 4), (5, 16), (7, 13), (8, 6), (11, 24), (16, 16)]
TILES = [
    *((shape, TYPES[0], target) for shape in SHAPES for target in TARGETS),
    *((shape, kind, "native") for shape in SHAPES for kind in TYPES[1:]),
]


@pytest.mark.parametrize(("shape", "types", "target"), TILES, ids=lambda t: str(t) if isinstance(t, str) else "")
@pytest.mark.parametrize("store", [False, True])
def test_tiles_are_transposed(
    shape: tuple[int, int], types: tuple[DType, type[np.generic]], target: str, store: bool
) -> None:
    """Loads or stores of the lanes lie 40 elements apart, those of the unrolled axis in a row."""
    (rows, columns), (dtype, kind) = shape, types
    u, v = Var("u", rows), Var("v", columns)
    far, flat = dense("x", 24, 40, dtype=dtype), dense("y", 16, 24, dtype=dtype)
    x, y = (flat, far) if store else (far, flat)
    d = Definition(y, (u, v), x[u, v], (v, u)) if store else Definition(y, (u, v), x[v, u])
    schedule = Schedule(order=("u", "v"), tile=(Tile("u", rows), Tile("v", columns, Tail.CUT)), lanes=("v", 16))
    rng = np.random.default_rng(2)
    data = rng.integers(0, 200, tuple(n for n in x.shape if isinstance(n, int))).astype(kind)
    out = aligned(np.full(y.shape, 7, kind))
    compiled(apply("g", d, schedule, (x, y)), parse_target(target))(aligned(data), out)
    expected = np.full(y.shape, 7, kind)
    if store:
        expected[:columns, :rows] = data[:rows, :columns].T
    else:
        expected[:rows, :columns] = data[:columns, :rows].T
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("store", [False, True])
def test_tiles_are_transposed_however_far_rows_lie_apart(store: bool, target: str) -> None:
    """The distance between rows is a dynamic size."""
    n = Var("n")
    u, v = Var("u", n), Var("v", 24)
    far, flat = dense("x", 24, n), dense("y", n, 24)
    x, y = (flat, far) if store else (far, flat)
    d = Definition(y, (u, v), x[u, v], (v, u)) if store else Definition(y, (u, v), x[v, u])
    tile = (Tile("u", 8, Tail.CUT), Tile("v", 8, Tail.CUT))
    schedule = Schedule(order=("u", "v"), tile=tile, lanes=("v", 8))
    kernel = apply("g", d, schedule, (x, y), (n,))
    run = compiled(kernel, parse_target(target))
    for rows in (1, 8, 15, 40):
        data = np.random.default_rng(rows).normal(size=(rows, 24) if store else (24, rows)).astype(np.float32)
        out = aligned(np.zeros(data.shape[::-1], np.float32))
        run(aligned(data), out, rows)
        assert out.tolist() == data.T.tolist()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [DType.I32, DType.I64, DType.U8])
def test_addresses_that_are_data(dtype: DType, target: str) -> None:
    """Sums, quotients, choices and products of numbers from memory, behind a guard in some lanes."""
    k, i, x = Var("k", 32), dense("i", 32, dtype=dtype), dense("x", 9, 11)
    place = cast(i[k], DType.I64)
    row, column = place // 3 - 2, prim("max", prim("min", place, 9), 2) + 1
    value = prim("within", row, as_expr(9, DType.I64), x[row, column], -1.0)
    y = dense("y", 32)
    data = np.random.default_rng(3).normal(size=(9, 11)).astype(np.float32)
    places = np.arange(32).astype({DType.I32: np.int32, DType.I64: np.int64, DType.U8: np.uint8}[dtype])
    out = aligned(np.zeros(32, np.float32))
    kernel = apply("g", Definition(y, (k,), value), lanes(32, 16), (i, x, y))
    compiled(kernel, parse_target(target))(aligned(places), aligned(data), out)
    rows, columns = np.arange(32) // 3 - 2, np.clip(np.arange(32), 2, 9) + 1
    expected = [data[r, c] if 0 <= r < 9 else np.float32(-1) for r, c in zip(rows, columns, strict=True)]
    assert out.tolist() == expected


@pytest.mark.parametrize("target", TARGETS)
def test_some_lanes_of_a_row_lie_outside(target: str) -> None:
    """Nothing before and behind of what may be read is touched: it is what padding looks like along the lanes."""
    k, x, y = Var("k", 24), dense("x", 20), dense("y", 24)
    value = prim("within", k - 3, as_expr(20, DType.I64), x[k - 3], 0.5)
    kernel = apply("g", Definition(y, (k,), value), lanes(24, 16), (x, y))
    data, out = np.random.default_rng(4).normal(size=20).astype(np.float32), aligned(np.zeros(24, np.float32))
    compiled(kernel, parse_target(target))(aligned(data), out)
    assert out.tolist() == [0.5] * 3 + data.tolist() + [0.5]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_become_64_bit_integers(kind: type[np.floating]) -> None:
    source = {np.float32: DType.F32, np.float64: DType.F64}[kind]
    values = [0.5, -1.5, 1e10, -1e10, 2.0**62, 2.0**63, -(2.0**63), 1e30, -1e30, np.inf, -np.inf, np.nan, 7, -7, 0, 3]
    k, x, y = Var("k", 16), dense("x", 16, dtype=source), dense("y", 16, dtype=DType.I64)
    out = aligned(np.zeros(16, np.int64))
    compiled(apply("g", Definition(y, (k,), cast(x[k], DType.I64)), lanes(16, 16), (x, y)))(
        aligned(np.array(values, kind)), out
    )
    limit = 2.0**63
    expected = [0 if v != v else int(min(max(kind(v), -limit), limit)) for v in values]
    expected = [min(v, 2**63 - 1) for v in expected]
    assert out.tolist() == expected
