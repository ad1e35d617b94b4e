"""Sums of products of bytes and of i16: instructions by target, and tiles that stay in registers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Reduce, Var, cast, dense
from aot.codegen.ir.numbers.dot_forms import centred, elements_per_dot
from aot.codegen.ir.printer import kernel_text, schedule_text
from aot.codegen.ir.schedule import Pack, Tail, Tile
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.object.optimize import assembly
from aot.codegen.nest.nest import apply
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.llvm.dot_products import CLIENT, PLAN, SERVER, V3, V4, Kind, product
from tests.codegen.llvm.test_assembly import loops


@pytest.mark.parametrize(("name", "dots"), [("x86-64-v2", 2), ("x86-64-v3", 2), ("x86-64-v4", 2), ("aarch64", 0)])
def test_levels_promise_pairs(name: str, dots: int) -> None:
    target = parse_target(name)
    assert target.abilities.dots == dots
    kind = Kind(DType.I16, DType.I16, target)
    plan = choose(product(50, 64, 64, kind=kind)[0], target, frozenset({"w"}))
    assert plan.dots == ("k" if dots else None)


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_bytes_are_no_pairs(name: str) -> None:
    """A sum of bytes, as a network may have it, has no instruction where there are pairs only."""
    assert choose(product(50, 64, 64)[0], parse_target(name), frozenset({"w"})).dots is None


def test_features_that_bring_dots_of_bytes() -> None:
    assert SERVER.abilities.dots == CLIENT.abilities.dots == 4
    assert [Target.parse(f"aarch64-{name}").abilities.dots for name in ("v8", "v8.2", "v8.6")] == [0, 4, 4]
    assert replace(V3, features=(*V3.features, "avx512vnni")).abilities.dots == 2, "of 512 bits only"


INSTRUCTIONS = [
    (Kind(DType.U8, DType.I8, SERVER), "vpdpbusd", 14, 16, 4),
    (Kind(DType.U8, DType.I8, CLIENT), "vpdpbusd", 6, 8, 4),
    (Kind(DType.I16, DType.I16, V4), "vpmaddwd", 14, 16, 1),
    (Kind(DType.I16, DType.I16, V3), "vpmaddwd", 6, 8, 1),
]


@pytest.mark.parametrize(
    ("kind", "instruction", "rows", "lanes", "words"), INSTRUCTIONS, ids=["avx512", "avx", "avx512-i16", "avx-i16"]
)
def test_a_tile_stays_in_registers(kind: Kind, instruction: str, rows: int, lanes: int, words: int) -> None:
    target, terms = kind.target, words * elements_per_dot(kind.w)
    tiles = (Tile("i", rows), Tile("j", 2 * lanes, Tail.CUT), Tile("k", terms, Tail.CUT))
    plan = replace(PLAN, tile=tiles, lanes=("j", lanes), pack=(Pack("w", (1, 0), 1, 2 * lanes, 1),))
    work, (x, w, _, y) = product(rows * 8, 256, 128, kind=kind)
    function = emit(apply("product", work, plan, (x, w, y)), target=target)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    found = [(sum(instruction in line for line in loop), loop) for loop in loops(assembly(text, target, None))]
    count, loop = max(found, key=lambda x: x[0])
    assert count == rows * 2 * words
    assert [line for line in loop if re.search(r"\(%rsp", line)] == []


def test_halved_products_stay_in_registers() -> None:
    """Four rows of two vectors: of weights of both halves, sums of data and weights are multiplied."""
    i, j, k = Var("i", 32), Var("j", 128), Var("k", 128)
    x, w, y = (
        dense("x", 32, 256, dtype=DType.I16),
        dense("w", 256, 128, dtype=DType.I16),
        dense("y", 32, 128, dtype=DType.I32),
    )
    one, other = x[i, k] + w[k + 128, j], x[i, k + 128] + w[k, j]
    work = Definition(y, (i, j), Reduce("add", (k,), cast(one, DType.I32) * cast(other, DType.I32)))
    plan = choose(work, V3, frozenset({"w"}))
    assert schedule_text(plan).startswith(
        "order[j i k] tile[i:4 j:16/cut k:2/cut] lanes[j:8] pack[w.1:16(1,0) words of 1] prefetch=w dots=k"
    )
    kernel = apply("product", work, plan, (x, w, y))
    assert "dot(x[i, k] + w[j // 16, (k + 128) // 2, j % 16, (k + 128) % 2], x[i, k + 128] + w[j //" in kernel_text(
        kernel
    )
    function = emit(kernel, target=V3)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    found = [
        [sum(op in line for line in loop) for op in ("pmaddwd", "paddw", "paddd", "(%rsp")]
        for loop in loops(assembly(text, V3, None))
    ]
    assert max(found) == [8, 16, 8, 0]


def test_blocks_stay_in_registers() -> None:
    """USMMLA: four rows of two columns of eight bytes each; of 52 instructions of vectors, 48 multiply."""
    target = Target.parse("aarch64-v8.6")
    work, (x, w, _, y) = product(64, 96, 72, kind=Kind(DType.U8, DType.I8, target))
    plan = choose(work, target, frozenset({"w"}))
    assert schedule_text(plan).startswith(
        "order[i j k] tile[i:4 j:24/cut k:16/cut] lanes[j:4] pack[w.1:24(1,0) words of 1 by 8 bytes] dots=k"
    )
    function = emit(apply("product", work, plan, (x, w, y)), target=target)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    loop = max(loops(assembly(text, target, None)), key=len)
    found = [sum(line.startswith(op) for line in loop) for op in ("usmmla", "zip", "mov\tv", "dup")]
    assert found == [48, 4, 0, 0]
    assert [line for line in loop if "[sp" in line] == []


def test_words_of_signed_bytes_stay_in_registers() -> None:
    """SDOT by lane: 128 is taken from 16 bytes of a row at once, and no word is spread."""
    target = Target.parse("aarch64-v8.2")
    work, (x, w, _, y) = product(64, 96, 72, kind=Kind(DType.U8, DType.I8, target))
    assert work.reduction is not None
    i, j, k = (*work.axes, *work.reduction.axes)
    work = replace(work, value=Reduce("add", (k,), centred(x[i, k]) * cast(w[k, j], DType.I32)))
    plan = choose(work, target, frozenset({"w"}))
    assert schedule_text(plan).startswith(
        "order[i j k] tile[i:4 j:24/cut k:16/cut] lanes[j:4] pack[w.1:24(1,0) words of 1] dots=k"
    )
    function = emit(apply("product", work, plan, (x, w, y)), target=target)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    loop = max(loops(assembly(text, target, None)), key=len)
    found = [sum(line.startswith(op) for line in loop) for op in ("sdot", "eor", "mov\tv", "dup", "ld1r")]
    assert found == [96, 4, 0, 0, 0]
    assert [line for line in loop if "[sp" in line] == []


def test_columns_that_fill_no_block_are_words() -> None:
    target = Target.parse("aarch64-v8.6")
    work, _ = product(64, 96, 70, kind=Kind(DType.U8, DType.I8, target))
    assert not choose(work, target, frozenset({"w"})).in_blocks
