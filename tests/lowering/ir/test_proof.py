"""Proofs that loads and stores of steps stay inside of their buffers, and what they do not prove."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import aot
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import (
    Alloc,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Operand,
    Space,
    Store,
    Var,
    as_expr,
    cast,
    dense,
    prim,
    select,
)
from aot.codegen.ir.program import MemoryRegion, SizeConstraint
from aot.codegen.ir.traverse import reads
from aot.compilation.compilation import Compilation
from aot.compilation.sources import as_file
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Dim, simplify
from aot.lowering.define.define import define
from aot.lowering.define.guarded import guarded
from aot.lowering.define.regions import lower_region
from aot.lowering.ir.counters import Counters
from aot.lowering.ir.obligations import Proof
from aot.lowering.ir.proof import Prover, prove
from aot.lowering.ir.steps import Step, Steps, Value
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.movement import movement, slicing
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from tests.cases import Case, tables
from tests.opset.test_compiled import add

N = Var("n")
FAMILIES = "movement.slicing movement.padding movement.gather movement.scatter".split()
NESTED = "detection.suppression detection.roi_align detection.rotated_suppression signal.spectrum".split()


def unknown(case: Case) -> list[str]:
    """List the obligations that are unproven after definition or after all lowering passes, which add halos."""
    graph = Graph("one")
    add(graph, case, 0)
    made = Compilation(graph, CompileOptions(level=None))
    both = define(made.optimized, lower_region), made.steps
    return [str(o) for steps in both for o in prove(steps) if o.proof is Proof.UNKNOWN]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_access_is_unknown(family: str) -> None:
    for at, case in enumerate(tables()[family]):
        if case.sizes or at % 4 == 0:
            assert unknown(case) == [], case.name


@pytest.mark.parametrize("family", NESTED)
def test_no_access_of_a_nest_is_unknown(family: str) -> None:
    case = next(c for c in (*(c for c in tables()[family] if c.sizes), *tables()[family]))
    assert unknown(case) == [], case.name


X, OUT, PLACE = dense("x", N, 4), dense("out", 8), dense("place", space=Space.REGISTERS, dtype=DType.I64)
Y = dense("y", 8)
IDS = dense("ids", 8, dtype=DType.I64)
HERE = Load(PLACE, ())
NESTS = [  # what is stored to the cell, and whether the model's data are in it
    (HERE + 1, False),
    (select(prim("lt", Load(X, (Const(0), Const(0))), 0.0), HERE * 2, Const(5)), False),
    (HERE + cast(prim("lt", Load(X, (Const(0), Const(0))), 0.0), DType.I64), False),
    (Load(IDS, (Const(0),)), True),
    (HERE + cast(Load(X, (Const(0), Const(0))), DType.I64), True),
]


@pytest.mark.parametrize(("stored", "has_data"), NESTS)
def test_counters_have_no_data_in_them(stored: Expr, has_data: bool) -> None:
    """x[place[], j]: data may choose among counters; an index that data are in is clamped, before the loop over j."""
    j = Var("j", 4)
    copy = Store(OUT, (j,), Load(X, (HERE, j)))
    work = (Alloc(PLACE, (Store(PLACE, (), Const(0)), Store(PLACE, (), stored), For(j, (copy,)))),)
    assert Counters([work]).is_free_of_data(HERE) != has_data
    prover = Prover(Steps("one", values={b.name: Value(b, MemoryRegion.INPUT) for b in (X, IDS)}))
    prover.check(SizeConstraint(prim("max", 1 - N, 0), 0, "n >= 1"))
    unproven = prover.unproven([work])
    assert [o.dimension for o in unproven] == ([0] if has_data else [])
    clamped = prim("max", prim("min", HERE, N - 1), 0)
    assert reads(guarded(work, unproven))[-1].index[0] == (clamped if has_data else HERE)


@pytest.mark.parametrize("dtype", [DType.I64, DType.I32])
def test_a_store_that_data_place_is_tested(dtype: DType) -> None:
    """out[ids[j]] = 1 is behind a test; of x[ids[j], 0], which may have no row, nothing is read then."""
    j, ids = Var("j", 8), dense("ids", 8, dtype=dtype)
    at = Load(ids, (j,))
    work = (For(j, (Store(OUT, (at,), Load(X, (at, Const(0)))),)),)
    prover = Prover(Steps("one", values={b.name: Value(b, MemoryRegion.INPUT) for b in (X, ids)}))
    made = guarded(work, prover.unproven([work]))
    clamped = prim("max", prim("min", cast(at, DType.I64), N - 1), 0)
    value = prim("within", 0, N, Load(X, (clamped, Const(0))), 0)
    test = prim("and", prim("ge", cast(at, DType.I64), 0), prim("lt", cast(at, DType.I64), 8))
    assert made == (For(j, (If(test, (Store(OUT, (cast(at, DType.I64),), value),)),)),)
    assert prover.unproven([made]) == []


def test_loops_whose_ends_depend_on_data() -> None:
    """for j in (ids[0] if it is 0 .. 7, else 0): x[ids[0]] is inside, but not where the body writes ids."""
    index, first = Var("index"), Load(IDS, (Const(0),))
    test = prim("and", prim("ge", index, 0), prim("lt", index, 8))
    j = Var("j", select(test, index, 0))
    read, written = Store(OUT, (index,), Load(Y, (index,))), Store(IDS, (Const(0),), Const(9))
    for body, count in (((read,), 0), ((written, Store(OUT, (Const(0),), Load(Y, (first,)))), 1)):
        work = (Let(index, first, (For(j, body),)),)
        prover = Prover(Steps("one", values={b.name: Value(b, MemoryRegion.INPUT) for b in (Y, IDS)}))
        assert len(prover.unproven([work])) == count


def test_a_condition_on_what_is_written_behind_it_says_nothing() -> None:
    """let p = place[]: if p < 4: place[] = ids[0], out[..] = ids[place[]]; without the store, it is proven."""
    p, store = Var("p"), Store(PLACE, (), Load(IDS, (Const(0),)))
    read = Store(OUT, (Const(0),), Load(IDS, (HERE,)))
    test = prim("and", prim("ge", p, 0), prim("lt", p, 8))
    for before, body, count in (((), (store, read), 1), ((store,), (read,), 1), ((), (read,), 0)):
        work = (Alloc(PLACE, (store, Let(p, HERE, (*before, If(test, body))))),)
        steps = Steps("one", values={IDS.name: Value(IDS, MemoryRegion.INPUT)})
        steps.steps.append(Step((work,), ("one",), "Test"))
        assert sum(o.proof is Proof.UNKNOWN for o in prove(steps)) == count


def test_places_of_a_heap_are_trusted() -> None:
    """They are counters: no proof is found, and no data are in them."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[n,20] x) => (float[n,5] v, int64[n,5] i)
    <int64[1] k={5}> { v, i = TopK(x, k) }"""
    with as_file(onnx.parser.parse_model(text).SerializeToString()) as file:
        proofs = aot.stages(file).text("steps", proof=True)
    assert re.search(r"trusted: v: store output0, dimension 1: 0 <= hole'\[\] < 5\n", proofs)
    assert " 0 clamped," in proofs and " 0 unknown" in proofs


def test_samples_of_a_grid_are_tested_once() -> None:
    """Its own tests, of both coordinates at once and without signs, prove its loads: no more are added."""
    text = """<ir_version: 8, opset_import: ["": 16]> m (float[n,2,h,w] x, float[n,p,q,2] g) => (float[n,2,p,q] y)
    { y = GridSample(x, g) }"""
    with as_file(onnx.parser.parse_model(text).SerializeToString()) as file:
        steps = aot.stages(file).text("steps")
    assert steps.count("within(") == 4


def test_the_counter_of_a_loop_is_below_its_limit() -> None:
    """Results are collected at the counter, in as many places as there may be iterations."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[2] x, int64 n) => (float[2] y, float[k,2] z)
    <bool on={1}> { y, z = Loop(n, on, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] u)
    { d = Identity(c) w = Add(v, v) u = Mul(v, v) }> }"""
    with as_file(onnx.parser.parse_model(text).SerializeToString()) as file:
        lines = aot.stages(file).text("steps", proof=True).splitlines()
    stores = [line for line in lines if ": store " in line and ".body.i <" in line]
    assert stores and all(line.startswith(("proved", "checked")) for line in stores)


def last_rows() -> bytes:
    """x[-k:], k being the size of another input."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[n,4] x, float[k,2] q) => (float[j,4] y)
    <int64[1] zero={0}, int64[1] big={9223372036854775807}> {
        s=Shape(q) k=Gather(s,zero) a=Neg(k) y=Slice(x,a,big,zero) }"""
    return onnx.parser.parse_model(text).SerializeToString()


def test_a_wrong_first_index_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Slice whose negative bounds are taken for indices, as they were once: a rule on sizes stands in its way."""

    def taken(n: Dim, start: Dim | None, stop: Dim | None, step: Dim, what: str) -> tuple[Dim, Dim]:
        first = simplify(start or 0)
        return first, simplify(prim("max", as_expr(n - first, DType.I64), 0))

    monkeypatch.setattr(slicing, "range_of", taken)
    compiled = aot.compile_model(last_rows())
    with pytest.raises(UsageError, match=r"Slice 'y': indices of dimension 0 are inside of it"):
        compiled([np.zeros((3, 4), np.float32), np.zeros((2, 2), np.float32)])


def test_a_wrong_roll_is_refused_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part that wraps had 7 % n of n elements, which is 7 where n is 0."""

    def divisor(fn: str, *args: Operand) -> Expr:
        return as_expr(args[0], DType.I64) if (fn, args[1:]) == ("max", (1,)) else prim(fn, *args)

    monkeypatch.setattr(movement, "prim", divisor)
    graph = Graph()
    build = Builder(graph)
    build(Result(), build(movement.Rolled((0, 7)), build(Parameter(DType.F32, (3, N)))))
    compiled = aot.compile_model(graph, CompileOptions(level=None))
    assert np.array_equal(np.asarray(compiled([np.eye(3, 5, dtype=np.float32)])[0]), np.roll(np.eye(3, 5), 7, 1))
    with pytest.raises(UsageError, match=r"indices of dimension 1 are inside of it"):
        compiled([np.zeros((3, 0), np.float32)])


@pytest.mark.parametrize("is_size", [False, True])
def test_a_part_of_a_size_that_is_taken_for_a_size_is_found(is_size: bool) -> None:
    """(1 - n) // 2 + 6 elements: its first part is negative, and loops over its name had no sign."""
    steps = Steps("one")
    part = steps.sizes.name((1 - N) // 2, is_size=is_size)
    out, axis = dense("y", part + 6), Var("i", part + 6)
    steps.values["y"] = Value(out, MemoryRegion.ARENA)
    steps.steps.append(Step((Definition(out, (axis,), Const(0.0, DType.F32), (axis,)),), ("one",), "Test"))
    unknown = [str(o) for o in prove(steps) if o.proof is Proof.UNKNOWN]
    assert unknown == (["unknown: one: size s0 = (1 - n) // 2 >= 0"] if is_size else [])


def test_obligations_are_printed() -> None:
    with as_file(last_rows()) as file:
        lines = aot.stages(file).text("steps", proof=True).splitlines()
    assert any(line.startswith("proved: y: load x, dimension 0: 0 <= i + ") for line in lines)
    assert (
        lines[-1]
        == f"{len(lines) - 1} obligations: {len(lines) - 1} proved, 0 checked, 0 clamped, 0 trusted, 0 unknown"
    )
