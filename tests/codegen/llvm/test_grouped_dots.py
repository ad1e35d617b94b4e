"""Sums of bytes in many small groups: lanes over channels of several groups, whose words are chosen out of one row."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads
from aot.codegen.ir.loops import Reduce, Var, cast, dense
from aot.codegen.ir.printer import schedule_text
from aot.codegen.ir.schedule import Pack, ScheduleError
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.object.optimize import assembly
from aot.codegen.nest.nest import apply
from aot.codegen.nest.pack import pack
from aot.codegen.nest.packed_arrays import pack_array
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.interpreter import Interpreter, cells, filled
from tests.codegen.running import aligned, compiled, runs_dots

NATIVE = parse_target("native")
V4 = Target.parse("x86-64-v4")
SERVER = replace(V4, cpu="icelake-server", features=(*V4.features, "avx512vnni"))
V3 = Target.parse("x86-64-v3")
I32 = DType.I32


class Groups(NamedTuple):
    """Groups, their outputs and inputs, and what is around: steps of the window, channels before the first group."""

    count: int
    outputs: int
    inputs: int
    stride: int = 1
    before: int = 0
    behind: int = 0


def work_of(g: Groups, data: DType = DType.U8, weights: DType = DType.I8) -> Definition:
    """y[v, outputs c + j] = add[k, t](x[stride v + t, inputs c + k + before] * w[c, j, k, t]) for seven pixels."""
    v, c, j = Var("v", 7), Var("c", g.count), Var("j", g.outputs)
    k, t = Var("k", g.inputs), Var("t", 3)
    x = dense("x", 6 * g.stride + 3, g.before + g.count * g.inputs + g.behind, dtype=data)
    w = dense("w", g.count, g.outputs, g.inputs, 3, dtype=weights)
    y = dense("y", 7, g.count * g.outputs, dtype=I32)
    body = cast(x[v * g.stride + t, c * g.inputs + k + g.before], I32) * cast(w[c, j, k, t], I32)
    return Definition(y, (v, c, j), Reduce("add", (k, t), body), (v, c * g.outputs + j))


def numbers(*shape: int, dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(shape).integers(info.min, info.max + 1, shape).astype(dtype)


def summed(g: Groups, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    inside = x[:, g.before : g.before + g.count * g.inputs].astype(np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(inside, 3, 0)[:: g.stride]
    split = windows.reshape(7, g.count, g.inputs, 3)
    return np.einsum("vckt,cjkt->vcj", split, w.astype(np.int32)).reshape(7, -1)


ALL = [
    Groups(16, 4, 4),
    Groups(4, 8, 8),
    Groups(8, 4, 4, stride=2),
    Groups(8, 2, 4),
    Groups(8, 4, 8),
    Groups(8, 4, 12),
    Groups(8, 8, 4),
    Groups(2, 16, 8),
    Groups(8, 4, 4, before=16),
    Groups(8, 4, 4, before=4, behind=1),
    Groups(8, 4, 4, before=3),
]


@runs_dots
@pytest.mark.parametrize("g", ALL)
def test_groups_share_vectors(g: Groups) -> None:
    work = work_of(g)
    plan = choose(work, NATIVE, frozenset({"w"}))
    assert plan.dots == "k"
    assert plan.lanes is not None
    assert dict(plan.fuse)[plan.lanes[0]] == ("c", "j")
    x = numbers(6 * g.stride + 3, g.before + g.count * g.inputs + g.behind, dtype="u1")
    w = numbers(g.count, g.outputs, g.inputs, 3, dtype="i1")
    found = aligned(np.zeros((7, g.count * g.outputs), np.int32))
    params = (*(b.buffer for b in loads(work.value)), work.out)
    compiled(apply("k", work, plan, params))(aligned(x), aligned(pack_array(w, plan.pack[0])), found)
    np.testing.assert_array_equal(found, summed(g, x, w))


@pytest.mark.parametrize("g", ALL)
def test_pairs_of_i16(g: Groups) -> None:
    work = work_of(g, DType.I16, DType.I16)
    plan = choose(work, V3, frozenset({"w"}))
    assert plan.dots == "k"
    x = numbers(6 * g.stride + 3, g.before + g.count * g.inputs + g.behind, dtype="u1").astype(np.int16)
    w = numbers(g.count, g.outputs, g.inputs, 3, dtype="i1").astype(np.int16)
    run = Interpreter(x=cells(x), w=cells(pack_array(w, plan.pack[0])))
    run.run(apply("k", work, plan, (*(b.buffer for b in loads(work.value)), work.out)).body)
    np.testing.assert_array_equal(filled(run.memory["y"], (7, g.count * g.outputs), I32), summed(g, x, w))


@pytest.mark.parametrize("inputs", [2, 3, 6])
def test_groups_of_other_sizes_have_no_words(inputs: int) -> None:
    plan = choose(work_of(Groups(16, 4, inputs)), SERVER, frozenset({"w"}))
    assert plan.lanes is not None
    assert plan.dots is None or plan.lanes[0] == "j"


def test_a_row_of_words_is_shared_by_the_taps() -> None:
    """Nine pixels of four groups are read once each, and permuted once: 21 dots have no load of data."""
    work = work_of(Groups(4, 4, 4))
    plan = choose(work, SERVER, frozenset({"w"}))
    kernel = apply("k", work, plan, (*(b.buffer for b in loads(work.value)), work.out))
    function = emit(kernel, target=SERVER)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    text = assembly(text, SERVER, None)
    assert len(re.findall(r"\tvpdpbusd\t", text)) == 21
    assert len(re.findall(r"\tvperm(?:d|ilps)\t|\tvpshufd\t", text)) == 9


# ---- packing


@pytest.mark.parametrize(
    "plan",
    [
        Pack("w", (1, 3, 2), 1, 16, words=1, fused=0),
        Pack("w", (1, 2, 3), 1, 8, fused=0),
        Pack("w", (3, 1, 2), 1, 32, words=1, fused=0),
        Pack("w", (3, 0, 2), 0, 8, fused=1),
    ],
)
def test_blocks_run_over_two_dimensions(plan: Pack) -> None:
    shape = (5, 4, 6, 3)
    w = numbers(*shape, dtype="i1")
    source, out = dense("w", *shape, dtype=DType.I8), dense("y", *shape, dtype=DType.I8)
    axes = tuple(Var(f"i{d}", n) for d, n in enumerate(shape))
    run = Interpreter(w=cells(pack_array(w, plan)))
    run.work((pack(Definition(out, axes, source[axes]), plan),))
    np.testing.assert_array_equal(filled(run.memory["y"], shape, DType.I8), w)


def test_a_schedule_says_which_dimensions_a_block_runs_over() -> None:
    plan = choose(work_of(Groups(16, 4, 4)), SERVER, frozenset({"w"}))
    assert "pack[w.(0,1):16(1,3,2) words of 1] dots=k" in schedule_text(plan)


def test_lanes_over_groups_need_whole_words() -> None:
    """Words that two groups share, and weights that are packed along one axis of the lanes, are refused."""
    plan = choose(work_of(Groups(16, 4, 4)), SERVER, frozenset({"w"}))
    with pytest.raises(ScheduleError, match="dots are sums of u8"):
        apply("k", work_of(Groups(16, 4, 6)), plan, ())
    alone = replace(plan, pack=(replace(plan.pack[0], order=(0, 1, 3, 2), fused=None),))
    with pytest.raises(ScheduleError, match="dots are sums of u8"):
        apply("k", work_of(Groups(16, 4, 4)), alone, ())
