"""Sums of products whose weights share elements: the nests, what kernels compute, and what no schedule may say."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Const, Load, Reduce, Var, cast, dense
from aot.codegen.ir.numbers.dot_forms import PackedField, packed_field, packed_field_of, scaled_sum
from aot.codegen.ir.printer import kernel_text
from aot.codegen.ir.schedule import Pack, Schedule, ScheduleError, Tail, Tile
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.codegen.nest.packed_arrays import pack_array
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType
from aot.runtime.arrays.tensors import Array
from tests.codegen.interpreter import Interpreter, cells, filled
from tests.codegen.running import aligned, compiled, runs_dots

GROUPS, RUNS = 3, 4
NATIVE = parse_target("native")
LEVELS = [t for t in map(Target.parse, ("x86-64-v2", "x86-64-v3")) if t.machine == NATIVE.machine]


class Kind(NamedTuple):
    """Types of data and of elements of weights, numbers in an element, their bits, and where such products run."""

    x: DType
    w: DType
    count: int
    bits: int
    target: Target

    @property
    def word(self) -> int:
        return 4 // self.w.stored_bytes

    @property
    def length(self) -> int:
        """Terms of a group."""
        return RUNS * self.count * self.word


NIBBLES = Kind(DType.I8, DType.U8, 2, 4, NATIVE)
PAIRS = [Kind(DType.I16, DType.U16, 16 // bits, bits, t) for bits in (4, 8) for t in LEVELS]
all_kinds = pytest.mark.parametrize(
    "kind",
    [pytest.param(NIBBLES, marks=runs_dots), *PAIRS],
    ids=["bytes", *(f"{k.bits} bits, i16-{8 * k.target.lanes_bytes}" for k in PAIRS)],
)


def product(rows: int, columns: int, kind: Kind) -> tuple[Definition, tuple[Buffer, ...]]:
    """y[i, j] = add[g, r, h, b]((f32(x[i, k] n[g, r, h, b, j]) + m[i, g] z[g, j]) s[i, g] t[g, j])."""
    i, j, g, r = Var("i", rows), Var("j", columns), Var("g", GROUPS), Var("r", RUNS)
    h, b = Var("h", kind.count), Var("b", kind.word)
    x, w = (
        dense("x", rows, GROUPS * kind.length, dtype=kind.x),
        dense("w", columns, GROUPS, RUNS, kind.word, dtype=kind.w),
    )
    m, s, z, t = (
        dense("m", rows, GROUPS),
        dense("s", rows, GROUPS),
        dense("z", columns, GROUPS),
        dense("t", columns, GROUPS),
    )
    y = dense("y", rows, columns)
    element = ((r * kind.count) + h) * kind.word + b
    number = PackedField(w[j, g, r, b], h * kind.bits, (1 << kind.bits) - 1).value
    whole = cast(cast(x[i, g * kind.length + element], DType.I32) * number, DType.F32)
    term = (whole + m[i, g] * z[j, g] * (1 / kind.length)) * s[i, g] * t[j, g]
    return Definition(y, (i, j), Reduce("add", (g, r, h, b), term)), (x, w, m, s, z, t, y)


def operands(rows: int, columns: int, kind: Kind) -> tuple[list[Array], Array]:
    """Return values of the buffers but the last one, small whole numbers beside the data, and the product."""
    rng = np.random.default_rng([rows, columns])
    x = rng.integers(-128, 128, (rows, GROUPS, kind.length))
    n = rng.integers(0, 1 << kind.bits, (columns, GROUPS, RUNS, kind.count, kind.word))
    m, s = rng.integers(-9, 9, (rows, GROUPS)), rng.integers(1, 3, (rows, GROUPS))
    z, t = rng.integers(-9, 9, (columns, GROUPS)), rng.integers(1, 3, (columns, GROUPS))
    sums = np.einsum("igk,jgk->ijg", x, n.reshape(columns, GROUPS, -1)) + m[:, None] * z[None]
    shifts = (np.arange(kind.count) * kind.bits).reshape(-1, 1)
    element = np.bitwise_or.reduce(n << shifts, axis=-2)
    few = np.int8 if kind.x is DType.I8 else np.int16
    small = [x.reshape(rows, -1).astype(few), element.astype(np.uint8 if kind.w is DType.U8 else np.uint16)]
    return [*small, *(a.astype(np.float32) for a in (m, s, z, t))], (sums * s[:, None] * t[None]).sum(-1)


def run(plan: Schedule, rows: int, columns: int, kind: Kind) -> None:
    work, params = product(rows, columns, kind)
    given, wanted = operands(rows, columns, kind)
    plans = {p.operand: p for p in plan.pack}
    given = [pack_array(a, plans[b.name]) if b.name in plans else a for a, b in zip(given, params[:-1], strict=True)]
    y = aligned(np.zeros((rows, columns), np.float32))
    compiled(apply("k", work, plan, params), kind.target)(*map(aligned, given), y)
    np.testing.assert_array_equal(y, wanted)


def chosen(rows: int, columns: int, kind: Kind) -> Schedule:
    target = replace(kind.target, features=Target.parse("x86-64-v3").features) if kind in PAIRS else kind.target
    return choose(product(rows, columns, kind)[0], target, frozenset({"w", "z", "t"}))


@all_kinds
@pytest.mark.parametrize(("rows", "columns"), [(1, 64), (3, 16), (7, 40), (30, 17), (2, 5)])
def test_chosen_schedules(rows: int, columns: int, kind: Kind) -> None:
    plan = chosen(rows, columns, kind)
    assert (plan.dots, plan.scaled_steps) == ("b", "g")
    lanes = min(plan.lanes[1] if plan.lanes is not None else 1, kind.target.lanes(DType.I32))
    run(replace(plan, lanes=("j", lanes)), rows, columns, kind)


PLAN = Schedule(
    order=("j", "i", "g", "r", "h", "b"),
    tile=(Tile("i", 2), Tile("j", 8, Tail.CUT), Tile("h", 2, Tail.CUT), Tile("b", 4, Tail.CUT)),
    lanes=("j", 4),
    pack=(Pack("w", (0, 1, 2, 3), 0, 8, 1),),
    dots="b",
    scaled_steps="g",
)


def test_nests_mean_the_same() -> None:
    """The interpreter runs the nest, so that the test needs no particular processor."""
    work, params = product(3, 11, NIBBLES)
    given, wanted = operands(3, 11, NIBBLES)
    given[1] = pack_array(given[1], PLAN.pack[0])
    found = Interpreter()
    found.memory.update({b.name: cells(a) for b, a in zip(params[:-1], given, strict=True)})
    found.run(apply("k", work, PLAN, params).body)
    np.testing.assert_array_equal(filled(found.memory["y"], (3, 11), DType.F32), wanted)


def test_a_word_is_loaded_for_all_of_its_fields_and_zero_points_are_added_once_a_group() -> None:
    work, params = product(2, 8, NIBBLES)
    text = kernel_text(apply("k", work, PLAN, params))
    word = "w[j // 8, g, r, b // 4, j % 8, b % 4]"
    assert (
        f"part[i.t, j.t] += dot(x[i, g * 32 + (r * 2 + h) * 4 + b], and(shr(i32({word}), i32(h * 4)), 15), 4)" in text
    )
    assert "acc[i.t, j.t] += (f32(part[i.t, j.t]) + m[i, g] * z[j, g]) * s[i, g] * t[j, g]" in text


@pytest.mark.parametrize(
    "changed",
    [
        {"tile": tuple(t for t in PLAN.tile if t.axis != "h")},  # the shift would vary
        {"scaled_steps": None},
        {"scaled_steps": "r"},  # zero points and scales move with g
        {"pack": (Pack("w", (0, 1, 3, 2), 0, 8, 1),)},
    ],
)
def test_illegal_schedules_of_packed_fields_are_refused(changed: dict[str, object]) -> None:
    work, params = product(2, 8, NIBBLES)
    with pytest.raises(ScheduleError):
        apply("k", work, replace(PLAN, **changed), params)  # type: ignore[arg-type]


def test_packed_fields_are_recognised() -> None:
    w, h = dense("w", 8, dtype=DType.U8), Var("h", 2)
    found = PackedField(w[0], h * 4, 15)
    assert packed_field_of(found.value) == found
    assert packed_field_of(cast(w[0], DType.I32)) is None
    signed = Load(replace(w, dtype=DType.I8), (Const(0),))
    assert packed_field_of(PackedField(signed, h * 4, 15).value) is None
    work, _ = product(2, 8, NIBBLES)
    assert work.reduction is not None
    whole = scaled_sum(work.reduction)
    assert whole is not None
    few = packed_field(work.reduction)
    assert few is not None
    assert few.load.buffer.name == "w"
    assert packed_field(whole) == few
