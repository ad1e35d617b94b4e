"""Each load and store of an operation's works is proven, checked by a rule on sizes, clamped, or trusted."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import aot
from aot.compilation.sources import as_file
from aot.compilation.stages import Compilation
from aot.ir.graph import Graph
from aot.ir.types import Dim, simplify
from aot.lowering.define.define import define
from aot.lowering.define.regions import lower_region
from aot.lowering.ir.proof import Counters, Proof, Prover, guarded, prove
from aot.lowering.ir.steps import Steps, Value
from aot.opset.movement import slicing
from aot.options import CompileOptions
from codegen.ir.loops import (
    Alloc,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Space,
    Store,
    Var,
    as_expr,
    cast,
    dense,
    prim,
    select,
)
from codegen.ir.program import Region, Rule
from codegen.ir.traverse import reads
from runtime.abi import DType
from runtime.errors import UsageError
from tests.cases import tables
from tests.opset.test_compiled import add

N = Var("n")
FAMILIES = (
    "movement.slicing movement.padding movement.gather movement.scatter reduction.nonzero products.pooling".split()
)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_access_is_unknown(family: str) -> None:
    """After all lowering passes, too: halos and temporary rows are memory that values have."""
    for at, case in enumerate(tables()[family]):
        if case.sizes or at % 4 == 0:
            graph = Graph("one")
            add(graph, case, 0)
            made = Compilation(graph, CompileOptions(level=None))
            for steps in (define(made.optimized, lower_region), made.steps):
                assert [str(o) for o in prove(steps) if o.proof is Proof.UNKNOWN] == [], case.name


X, OUT, PLACE = dense("x", N, 4), dense("out", 8), dense("place", space=Space.REGISTERS, dtype=DType.I64)
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
    body = Store(PLACE, (), Const(0)), Store(PLACE, (), stored), For(j, (copy,))
    work = (Alloc(PLACE, body),)
    assert Counters([work]).make(HERE) != has_data
    facts = Prover(Steps("one", values={b.name: Value(b, Region.INPUT) for b in (X, IDS)}))
    unproven = facts.unproven([work], [Rule(prim("max", 1 - N, 0), 0, "n >= 1")])
    assert [o.dimension for o in unproven] == ([0] if has_data else [])
    assert reads(guarded(work, unproven))[-1].index[0] == (
        prim("max", prim("min", HERE, N - 1), 0) if has_data else HERE
    )


def test_a_condition_on_what_is_written_behind_it_says_nothing() -> None:
    """let p = place[]: if p < 4: place[] = ids[0], out[..] = ids[place[]]; without the store, it is proven."""
    p, store = Var("p"), Store(PLACE, (), Load(IDS, (Const(0),)))
    read = Store(OUT, (Const(0),), Load(IDS, (HERE,)))
    test = prim("and", prim("ge", p, 0), prim("lt", p, 8))
    for body, count in (((store, read), 1), ((read,), 0)):
        work = (Alloc(PLACE, (store, Let(p, HERE, (If(test, body),)))),)
        assert len(Prover(Steps("one", values={IDS.name: Value(IDS, Region.INPUT)})).unproven([work], [])) == count


def test_sorting_tests_nothing() -> None:
    """The places of a heap are counters: trusted, and no test slows its loops down."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[n,20] x) => (float[n,5] v, int64[n,5] i)
    <int64[1] k={5}> { v, i = TopK(x, k) }"""
    with as_file(onnx.parser.parse_model(text).SerializeToString()) as file:
        proofs, steps = (aot.stages(file).text("steps", proof=proof) for proof in (True, False))
    assert re.search(r"trusted: v: store output0, dimension 1: 0 <= hole'\[\] < 5\n", proofs)
    assert " 0 clamped," in proofs and " 0 unknown" in proofs and "within(" not in steps


def test_samples_of_a_grid_are_tested_once() -> None:
    """Its own tests, of both coordinates at once and without signs, prove its loads: no more are added."""
    text = """<ir_version: 8, opset_import: ["": 16]> m (float[n,2,h,w] x, float[n,p,q,2] g) => (float[n,2,p,q] y)
    { y = GridSample(x, g) }"""
    with as_file(onnx.parser.parse_model(text).SerializeToString()) as file:
        steps = aot.stages(file).text("steps")
    assert steps.count("within(") == 4


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


def test_obligations_are_printed() -> None:
    with as_file(last_rows()) as file:
        lines = aot.stages(file).text("steps", proof=True).splitlines()
    assert any(line.startswith("proved: y: load x, dimension 0: 0 <= i + ") for line in lines)
    assert (
        lines[-1]
        == f"{len(lines) - 1} obligations: {len(lines) - 1} proved, 0 checked, 0 clamped, 0 trusted, 0 unknown"
    )
