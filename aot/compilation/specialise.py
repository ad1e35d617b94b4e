"""Sizes that a library has specialised versions of the model for.

batch=1,8  seq=128     ->     batch = 1 and seq = 128     batch = 8 and seq = 128     and the general version
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Expr, Var
from aot.codegen.versions import SizesByName
from aot.ir.graph import Graph
from aot.runtime.errors import UsageError

MAX_VERSIONS = 32  # each version is as much code as the model

Asked = Sequence[tuple[str, tuple[int, ...]]]


def combinations(
    graph: Graph, requested: Asked, fixed: Sequence[tuple[str, int, int | None]] = ()
) -> list[SizesByName]:
    """Return every combination of the requested sizes; `fixed`: dims as the user gave them, for messages.

    UsageError for names and sizes that inputs of the graph cannot have, twice the same, and too many versions.
    """
    symbols = _symbols(graph)
    for n, (name, sizes) in enumerate(requested):
        if any(name == other for other, _ in requested[:n]):
            raise UsageError(f"--specialise {name}: all sizes must be in one option, as {name}=1,8, got two options")
        if name not in symbols:
            raise UsageError(_unknown(graph, name, list(symbols), fixed))
        _check(symbols[name], sizes)
    count = prod(len(sizes) for _, sizes in requested)
    if count > MAX_VERSIONS:
        raise UsageError(
            f"--specialise: there can be at most {MAX_VERSIONS} versions, one for each combination, got {count}"
        )
    names = [name for name, _ in requested]
    return (
        [tuple(zip(names, sizes, strict=True)) for sizes in product(*(sizes for _, sizes in requested))]
        if requested
        else []
    )


def text_of(sizes: SizesByName) -> str:
    """Return sizes as text: `batch=1, seq=128`."""
    return ", ".join(f"{name}={size}" for name, size in sizes)


def _symbols(graph: Graph) -> dict[str, Var]:
    dims = [n for node in graph.parameters for n in node.out_port(0).shape if isinstance(n, Expr)]
    return {v.name: v for v in sorted(variables(*dims), key=lambda v: v.name)}


def _unknown(graph: Graph, name: str, known: list[str], fixed: Sequence[tuple[str, int, int | None]]) -> str:
    size = next((low for n, low, high in fixed if n == name and low == high), None)
    if size is None:
        for node in graph.parameters:
            for k, n in enumerate(node.out_port(0).shape):
                if name == f"{node.name}.d{k}" and isinstance(n, int):
                    size = n
    if size is not None:
        return f"--specialise {name}: a dimension that varies, got one that is always {size}"
    return f"--specialise: no dimension that varies is called {name!r}, there are {', '.join(known) or 'none'}"


def _check(symbol: Var, sizes: tuple[int, ...]) -> None:
    high = symbol.extent - 1 if isinstance(symbol.extent, int) else None
    for n, size in enumerate(sizes):
        if size < symbol.low or (high is not None and size > high):
            most = "or more" if high is None else f"to {high}"
            raise UsageError(f"--specialise {symbol.name}: the dimension is {symbol.low} {most}, got {size}")
        if size in sizes[:n]:
            raise UsageError(f"--specialise {symbol.name}: each size must be given once, got {size} twice")
