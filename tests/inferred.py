"""Runs a graph by its references, and compares each value with the type that was inferred for it."""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.loops import Const, Var
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import State, interpret
from aot.ir.types import Array, Dim, numpy_dtype, simplify


def results_of(graph: Graph, inputs: Sequence[Array], state: State | None = None) -> list[Array]:
    """Return the results of a graph; AssertionError lists the values whose types do not hold.

    Dimensions are those of the inputs where they are symbols there; what depends on data is not compared. `state`: as
    for `interpret`.
    """
    sizes, wrong = dict[str, int](), list[str]()
    for node, array in zip(graph.parameters, inputs, strict=True):
        dims = zip(node.out_port(0).type.shape, array.shape, strict=True)
        sizes |= {dim.name: size for dim, size in dims if isinstance(dim, Var)}

    def observe(port: OutPort, value: Array) -> None:
        if port.node.graph is graph and not _holds(port, value, sizes):
            wrong.append(f"{port.node.name}: {port.type}, got {value.dtype}{value.shape} with {sizes}")

    results = interpret(graph, inputs, state=state, observe=observe)
    assert not wrong, "\n".join(wrong)
    return results


def _holds(port: OutPort, value: Array, sizes: dict[str, int]) -> bool:
    if numpy_dtype(port.type.dtype) != value.dtype or port.type.rank != value.ndim:
        return False
    dims = (_number(dim, sizes) for dim in port.type.shape)
    return all(dim is None or dim == size for dim, size in zip(dims, value.shape, strict=True))


def _number(dim: Dim, sizes: dict[str, int]) -> int | None:
    """Return a dimension at these sizes; None where it depends on data."""
    if isinstance(dim, int):
        return dim
    known: dict[object, Const] = {e: Const(sizes[e.name]) for e in variables(dim) if e.name in sizes}
    value = simplify(rewrite(dim, known))  # type: ignore[arg-type]
    return value if isinstance(value, int) else None
