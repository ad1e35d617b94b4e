"""Loops written by hand take f64 where they take f32: those that compute in f32 convert it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aot.compilation.driver import compile_model
from aot.ir.graph import Graph
from aot.ir.op import DecomposedOp, Elements, LoopOp, Op
from aot.opset.control.random_numbers import Multinomial, RandomUniform
from aot.opset.elementwise.quantization import FakeConvert
from aot.opset.recurrent.quantized import QuantisedLSTMRecurrence
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError
from tests.cases import LOOSE, Case, Spec
from tests.opset.test_compiled import MODULES, add, cases_of, wrong

# Other types draw other numbers; the scales of a quantised recurrence are f32.
F32_ONLY = (RandomUniform, Multinomial, QuantisedLSTMRecurrence)


def as_double(case: Case) -> Case:
    """The same case with f64 in place of f32."""

    def double(spec: Spec) -> Spec:
        return (DType.F64 if spec[0] is DType.F32 else spec[0]), spec[1]

    given = [
        s.astype(np.float64)
        if isinstance(s, np.ndarray) and s.dtype == np.float32
        else double(s)
        if isinstance(s, tuple)
        else s
        for s in case.inputs
    ]
    return replace(case, inputs=given, tolerance=LOOSE)


def one_of_each() -> list[Case]:
    """A static case of each class that is loops written by hand, or made of such."""
    found: dict[type[Op], Case] = {}
    for case in (c for module in MODULES for c in cases_of(module, dynamic=False)):
        kind, first = type(case.op), case.operands()[:1]
        written = issubclass(kind, LoopOp | DecomposedOp) and kind.elements in (Elements.FLOAT, Elements.NUMBER)
        if written and not issubclass(kind, F32_ONLY) and first[0] is not None and first[0].dtype is DType.F32:
            found.setdefault(kind, as_double(case))
    return list(found.values())


@pytest.mark.slow
def test_doubles_give_what_the_reference_gives() -> None:
    graph, fed, cases = Graph("doubles"), [], one_of_each()
    for at, case in enumerate(cases):
        fed += add(graph, case, at)
    model = compile_model(graph, CompileOptions(level=None), threads=1)
    found, results = model(*fed), iter(range(len(model.outputs)))
    failed = list[str]()
    for case in cases:
        mine = [np.asarray(found[next(results)]) for _ in case.op.outputs(*case.operands())]
        if message := wrong(case, mine):
            failed.append(f"{case.op} {case.name}: {message}")
    assert len(cases) > 40
    assert not failed, "\n".join(failed)


def test_an_operation_without_doubles_says_so() -> None:
    case = Case(FakeConvert(), [(DType.F64, (2, 3)), (DType.F64, (1,))])
    with pytest.raises(UnsupportedError, match="FakeConvert: elements must be f32, f16 or bf16, got f64"):
        case.op.outputs(*case.operands())
