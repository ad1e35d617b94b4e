"""Every case of every operation: the compiled result is that of the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array, Shape
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.options import CompileOptions
from tests.cases import Case, tables

MODULES = sorted(tables())
SLOW = {"signal.spectrum", "image.resize", "products.pooling", "products.einsum", "detection.class_suppression"}
FAST = CompileOptions(level=None)


def cases_of(module: str, dynamic: bool) -> list[Case]:
    return [c for c in tables()[module] if bool(c.sizes) == dynamic]


def own(shape: Shape, at: int) -> Shape:
    """The dimensions of run time under names of the case's own."""
    return tuple(Var(f"{d.name}{at}", d.extent, d.low) if isinstance(d, Var) else d for d in shape)


def fed(case: Case) -> list[Array]:
    """Return the inputs of a case that are no constants."""
    pairs = zip(case.operands(), case.arrays, strict=True)
    return [array for operand, array in pairs if operand is not None and array is not None and operand.value is None]


def add(graph: Graph, case: Case, at: int) -> list[Array]:
    """The case's operation with inputs and results of its own; returns what to feed."""
    ports: list[OutPort | None] = []
    for n, (operand, array) in enumerate(zip(case.operands(), case.arrays, strict=True)):
        if operand is None or array is None:
            ports.append(None)
        elif operand.value is not None:
            node = graph.add(Constant(element_type=operand.dtype), name=f"c{at}_{n}", data=array)
            ports.append(node.out_port(0))
        else:
            node = graph.add(Parameter(element_type=operand.dtype, shape=own(operand.shape, at)), name=f"x{at}_{n}")
            ports.append(node.out_port(0))
    made = graph.add(case.op, *ports, name=f"case{at}", outputs=len(case.op.outputs(*case.operands())))
    for port in made.out_ports().values():
        graph.add(Result(), port)
    return fed(case)


def wrong(case: Case, found: list[Array]) -> str:
    """Describe the first difference from the reference; empty if there is none."""
    for n, (a, b) in enumerate(zip(found, case.op.evaluate(*case.arrays), strict=True)):
        a = a.view(b.dtype) if a.dtype != b.dtype and a.dtype.itemsize == b.dtype.itemsize else a
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"output {n}: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        if not case.tolerance.allows(a, b):
            gap = np.abs(a.astype(np.float64) - b.astype(np.float64)) if a.dtype.kind in "fiu" else a != b
            return f"output {n}: differs by {np.nanmax(gap)}"
    return ""


def network(cases: Sequence[Case]) -> tuple[Graph, list[Array]]:
    """All cases in one network, and what to feed."""
    graph, given = Graph("cases"), list[Array]()
    for at, case in enumerate(cases):
        given += add(graph, case, at)
    return graph, given


def failures(cases: Sequence[Case], outputs: Iterable[Array]) -> list[str]:
    """List the cases whose outputs differ from the references."""
    results, failed = iter(outputs), list[str]()
    for case in cases:
        mine = [next(results) for _ in case.op.outputs(*case.operands())]
        if message := wrong(case, mine):
            failed.append(f"{case.op} {case.name}: {message}")
    return failed


def alike(cases: Sequence[Case]) -> list[list[Case]]:
    """Return cases in groups: those of one differ by sizes of run time alone."""
    groups = dict[str, list[Case]]()
    for case in cases:
        operands = [o and (o.type, None if o.value is None else o.value.tobytes()) for o in case.operands()]
        groups.setdefault(f"{case.op} {operands} {case.tolerance}", []).append(case)
    return list(groups.values())


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("module", [pytest.param(m, marks=[pytest.mark.slow] * (m in SLOW)) for m in MODULES])
def test_compiled_agrees_with_reference(module: str, dynamic: bool) -> None:
    """All cases of a family in one network: it is compiled once, and called with all sizes."""
    groups, failed = alike(cases_of(module, dynamic)), list[str]()
    if not groups:
        pytest.skip("no such case")
    model = compile_model(network([group[0] for group in groups])[0], FAST, threads=1)
    for turn in range(max(map(len, groups))):
        cases = [group[turn % len(group)] for group in groups]
        found = model(*(array for case in cases for array in fed(case)))
        failed += failures(cases, [np.asarray(found[k]) for k in range(len(model.outputs))])
    assert not failed, "\n".join(failed)
