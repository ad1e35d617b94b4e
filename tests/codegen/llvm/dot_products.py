"""Products of bytes and of i16 that tests schedule, run and compare with NumPy's sums."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Reduce, Size, Var, cast, dense
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.codegen.nest.packed_arrays import pack_array
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled, runs_dots

NATIVE = parse_target("native")


MACHINE = NATIVE.machine


V4 = Target.parse("x86-64-v4")


SERVER = replace(V4, cpu="icelake-server", features=(*V4.features, "avx512vnni"))


V3 = Target.parse("x86-64-v3")


CLIENT = replace(V3, cpu="alderlake", features=(*V3.features, "avxvnni"))


PLAN = Schedule(
    order=("i", "j", "k"),
    tile=(Tile("i", 2), Tile("j", 16, Tail.CUT), Tile("k", 4, Tail.CUT)),
    lanes=("j", 8),
    pack=(Pack("w", (1, 0), 1, 16, 1),),
    dots="k",
)


class Kind(NamedTuple):
    """Types of data and weights, and where such products are computed."""

    x: DType
    w: DType
    target: Target


BYTES = Kind(DType.U8, DType.I8, NATIVE)


PAIRS = [Kind(DType.I16, DType.I16, t) for t in (Target.parse("x86-64-v2"), V3, NATIVE) if t.machine == MACHINE]


NUMPY: dict[DType, type[np.integer]] = {DType.U8: np.uint8, DType.I8: np.int8, DType.I16: np.int16}


all_kinds = pytest.mark.parametrize(
    "kind",
    [pytest.param(BYTES, marks=runs_dots), *PAIRS],
    ids=["bytes", *(f"i16-{8 * k.target.lanes_bytes}" for k in PAIRS)],
)


def product(
    rows: Size, terms: Size, columns: int, *, start: bool = False, kind: Kind = BYTES
) -> tuple[Definition, tuple[Buffer, ...]]:
    """y[i, j] = add[k](x[i, k] * w[k, j]), from the numbers of `b` on."""
    i, j, k = Var("i", rows), Var("j", columns), Var("k", terms)
    x, w = dense("x", rows, terms, dtype=kind.x), dense("w", terms, columns, dtype=kind.w)
    b, y = dense("b", columns, dtype=DType.I32), dense("y", rows, columns, dtype=DType.I32)
    total = Reduce("add", (k,), cast(x[i, k], DType.I32) * cast(w[k, j], DType.I32), b[j] if start else None)
    return Definition(y, (i, j), total), (x, w, b, y)


def numbers(*shape: int, dtype: type[np.integer]) -> np.ndarray:
    """All of a type, both ends often."""
    r, info = np.random.default_rng(shape), np.iinfo(dtype)
    found = r.integers(info.min, info.max + 1, shape)
    return np.where(r.random(shape) < 0.2, r.choice([info.min, info.max], shape), found).astype(dtype)


def check(rows: int, terms: int, columns: int, plan: Schedule, *, start: bool = False, kind: Kind = BYTES) -> None:
    """The compiled kernel is exact, up to sums that overflow."""
    work, params = product(rows, terms, columns, start=start, kind=kind)
    x, w = numbers(rows, terms, dtype=NUMPY[kind.x]), numbers(terms, columns, dtype=NUMPY[kind.w])
    if plan.lanes is not None:
        plan = replace(plan, lanes=(plan.lanes[0], min(plan.lanes[1], kind.target.lanes(DType.I32))))
    b, y = np.arange(columns, dtype=np.int32) * 1000 - 7, aligned(np.full((rows, columns), -1, np.int32))
    packed = pack_array(w, plan.pack[0]) if plan.pack else w
    compiled(apply("k", work, plan, params), kind.target)(aligned(x), aligned(packed), aligned(b), y)
    np.testing.assert_array_equal(y, x.astype(np.int32) @ w + (b if start else 0))
