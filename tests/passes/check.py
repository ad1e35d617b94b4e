"""Builds a small graph, runs passes on it, and compares what it computes before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array, Dim, numpy_dtype
from aot.ir.verify import verify
from aot.opset.control.infrastructure import Parameter, Result
from aot.passes.run import run_passes
from aot.runtime.abi import DType
from tests.cases import CLOSE, Tolerance

Make = Callable[..., OutPort | tuple[OutPort, ...]]
Size = int | str  # "n=3": a run-time size


def graph_of(make: Make, *shapes: Sequence[Size], dtype: DType = DType.F32) -> Graph:
    """A graph with a parameter for each shape; `make(build, *ports)` gives what the results read."""
    graph = Graph()
    build = Builder(graph)
    ports = [build(Parameter(dtype, tuple(map(_dim, s))), name=f"x{i}") for i, s in enumerate(shapes)]
    found = make(build, *ports)
    for i, port in enumerate(found if isinstance(found, tuple) else (found,)):
        build(Result(), port, name=f"y{i}")
    return graph


def _dim(size: Size) -> Dim:
    return size if isinstance(size, int) else Var(size.split("=")[0], 64)


def _extent(size: Size) -> int:
    return size if isinstance(size, int) else int(size.split("=")[1])


def values(*shapes: Sequence[Size], dtype: DType = DType.F32) -> list[Array]:
    rng = np.random.default_rng(7)
    return [rng.uniform(-4, 4, tuple(map(_extent, s))).astype(numpy_dtype(dtype)) for s in shapes]


def after(
    passes: Sequence[Any], make: Make, *shapes: Sequence[Size], dtype: DType = DType.F32, tolerance: Tolerance = CLOSE
) -> list[str]:
    """The operations left, without parameters, constants and results; what the graph gives must not change."""
    graph = graph_of(make, *shapes, dtype=dtype)
    inputs = values(*shapes, dtype=dtype)
    expected, types = interpret(graph, inputs), [r.out_port(0).type for r in graph.results]
    run_passes(graph, passes)
    verify(graph)
    found = interpret(graph, inputs)
    assert [r.out_port(0).type for r in graph.results] == types
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance.relative, atol=tolerance.absolute)
    return operations(graph)


def operations(graph: Graph) -> list[str]:
    return [n.type for n in graph.order() if n.type not in ("Parameter", "Constant", "Result")]


def weights(*shape: int) -> Array:
    return np.random.default_rng(11).uniform(-1, 1, shape).astype(np.float32)
