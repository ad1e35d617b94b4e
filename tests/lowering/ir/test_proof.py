"""Each load and store of an operation's works is proven, checked by a rule on sizes, or tested where data decide."""

from __future__ import annotations

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
from aot.lowering.ir.proof import Proof, prove
from aot.opset.movement import slicing
from aot.options import CompileOptions
from codegen.ir.loops import as_expr, prim
from runtime.abi import DType
from runtime.errors import UsageError
from tests.cases import tables
from tests.opset.test_compiled import add

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
    assert lines[-1] == f"{len(lines) - 1} obligations: {len(lines) - 1} proved, 0 checked, 0 clamped, 0 unknown"
