"""Every case of every operation: inference and reference agree on types."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.loops import Const, dense
from aot.ir.op import ComputeOp, LoopOp, Op
from aot.ir.operand import Input
from aot.ir.types import Array, Dim, Shape, numpy_dtype, simplify
from tests.cases import Case, tables
from tests.codegen.interpreter import Interpreter, cells, filled
from tests.each import check_each
from tests.evaluate import computed

each_module = pytest.mark.parametrize("module", sorted(tables()))


def name_of(case: Case) -> str:
    return f"{case.op} {case.name}"


def modules_of(kind: type[Op]) -> list[str]:
    """Return the modules that have operations of a form."""
    return sorted(name for name, table in tables().items() if any(isinstance(c.op, kind) for c in table))


@each_module
def test_infer_agrees_with_reference(module: str) -> None:
    check_each(check_types, tables()[module], name_of)


def check_types(case: Case) -> None:
    inferred = case.op.outputs(*case.operands())
    found = case.op.evaluate(*case.arrays)
    assert [numpy_dtype(t.dtype) for t in inferred] == [a.dtype for a in found]
    for t, a in zip(inferred, found, strict=True):
        _check_shape(t.shape, a, case)


def _check_shape(shape: Shape, array: Array, case: Case) -> None:
    assert len(shape) == array.ndim
    for dim, size in zip(shape, array.shape, strict=True):
        known = _at_run_time(dim, case)
        assert known is None or known == size, f"{shape} against {array.shape}"


def _at_run_time(dim: Dim, case: Case) -> int | None:
    """None where the dimension depends on data."""
    if isinstance(dim, int):
        return dim
    sizes = {e: Const(case.sizes[e.name]) for e in variables(dim) if e.name in case.sizes}
    value = simplify(rewrite(dim, sizes))
    return value if isinstance(value, int) else None


@pytest.mark.parametrize("module", modules_of(ComputeOp))
def test_compute_agrees_with_reference(module: str) -> None:
    check_each(check_compute, [c for c in tables()[module] if isinstance(c.op, ComputeOp)], name_of)


def check_compute(case: Case) -> None:
    assert isinstance(case.op, ComputeOp)
    arrays = case.arrays
    (expected,) = case.op.evaluate(*arrays)
    static = case.static_operands()
    (out,) = case.op.outputs(*static)
    found = computed(case.op, static, arrays, out)
    assert case.tolerance.allows(found, expected), f"{found}\n{expected}"


@pytest.mark.parametrize("module", modules_of(LoopOp))
def test_nest_agrees_with_reference(module: str) -> None:
    """Sizes are all known to Python: open ones are those of other cases, where an operation has such."""
    cases = [c for c in tables()[module] if isinstance(c.op, LoopOp) and not c.long]
    known = {type(c.op) for c in cases if not c.sizes}
    check_each(check_nest, [c for c in cases if not c.sizes or type(c.op) not in known], name_of)


def check_nest(case: Case) -> None:
    assert isinstance(case.op, LoopOp)
    static = case.static_operands()
    types = case.op.outputs(*static)
    outs = tuple(dense(f"y{i}", *t.shape, dtype=t.dtype) for i, t in enumerate(types))
    inputs = [o and Input(dense(f"x{i}", *o.shape, dtype=o.dtype), o.type, o.value) for i, o in enumerate(static)]
    memory = {f"x{i}": cells(a) for i, a in enumerate(case.arrays) if a is not None}
    run = Interpreter(**memory, **{b.name: {} for b in outs})
    run.work(case.op.nest(outs, *inputs))
    for b, t, expected in zip(outs, types, case.op.evaluate(*case.arrays), strict=True):
        if t.is_static:
            found = filled(run.memory[b.name], t.static_shape, t.dtype)
            assert case.tolerance.allows(found, expected), f"{found}\n{expected}"


def test_operations_are_values() -> None:
    ops: list[Op] = [case.op for table in tables().values() for case in table]
    assert [op for op in ops if op != replace(op) or hash(op) != hash(replace(op))] == []
