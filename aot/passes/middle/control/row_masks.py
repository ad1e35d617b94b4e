"""Finds masks that are wrong for rows of different lengths, as sliding windows that count from the longest row.

    hidden = columns <= past + i - window        past: of the longest row

What the network compares, without looking at its data, must be the same for a row alone and beside a longer one. It is
computed for both, for one token and lengths up to `MOST_TOKENS`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import RegionOp, Stateful
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.deferred import value_of
from aot.opset.control.cache import CacheSizes
from codegen.ir.index import Affine, exactly, normal
from codegen.ir.loops import Var
from runtime.generation.interface import MASK, PLACES
from runtime.generation.interface import ROWS as ORDER

COMPARISONS = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
MOST_TOKENS = 1 << 18  # tokens of the longest row that is tried


def differs_by_longest(graph: Graph, context: int) -> Node | None:
    """Return a comparison that depends on the longest row, of up to `context` tokens (0: any number), or None."""
    compared = [n for n in graph.order() if n.type in COMPARISONS]
    length = 2
    while compared and length <= min(context or MOST_TOKENS, MOST_TOKENS):
        beside, alone = _Row(graph, length // 2, length), _Row(graph, length // 2, length // 2)
        for node in compared:
            one, other = beside.value(node.out_port()), alone.value(node.out_port())
            if one is not None and other is not None and not _agree(one, other):
                return node
        length *= 2
    return None


def _agree(beside: Array, alone: Array) -> bool:
    """True if values are equal, in the columns that a row alone has."""
    columns = alone.shape[-1] if alone.ndim else 0
    cut = beside[..., :columns] if alone.ndim and beside.shape[-1] == 2 * columns else beside
    return np.array_equal(cut, alone)


class _Row:
    """Values of a call with one token, whose row has `count` tokens then, beside a row of `longest`."""

    def __init__(self, graph: Graph, count: int, longest: int) -> None:
        mask = (np.arange(longest) < count).astype(np.int64)[None]
        known = {MASK: mask, PLACES: np.array([[count - 1]]), ORDER: np.zeros(1, np.int64)}
        sizes = np.array([1, longest - 1, 0, 0, 1, 0, 1, longest], np.int64)
        self._values: dict[OutPort, Array | None] = {}
        self._sizes: dict[Var, Affine] = {}
        for node in graph.parameters:
            port = node.out_port()
            value = next((known[n] for n in (node.name, *port.names) if n in known), None)
            self._values[port] = value
            shape = value.shape if value is not None else (1,) * port.type.rank
            self._sizes |= {d: exactly(n) for d, n in zip(port.type.shape, shape, strict=True) if isinstance(d, Var)}
        for node in graph.nodes.values():
            if isinstance(node.op, CacheSizes):
                self._values[node.out_port()] = sizes
                symbols = node.out_port().own_symbols
                elements = () if symbols is None else zip(symbols.flat, sizes.flat, strict=True)
                self._sizes |= {s: exactly(int(n)) for s, n in elements if isinstance(s, Var)}

    def value(self, port: OutPort) -> Array | None:
        """Return the value of a port; None if it depends on data."""
        waiting = [port]
        while waiting:
            last = waiting[-1]
            missing = [s for s in _operands(last.node) if s not in self._values]
            if last not in self._values and not missing:
                ports = list(last.node.out_ports().values())
                self._values |= zip(ports, self._evaluated(last.node) or [None] * len(ports), strict=True)
            if last in self._values:
                waiting.pop()
            waiting += missing
        return self._values[port]

    def _evaluated(self, node: Node) -> Sequence[Array] | None:
        if node.held is not None:
            return [value_of(node.held)] if node.held.size <= MOST_TOKENS else None
        if node.type == "ShapeOf":
            shape = [d if isinstance(d, int) else normal(d, self._sizes) for d in node.source().type.shape]
            numbers = [d if isinstance(d, int) else d.const for d in shape if isinstance(d, int) or d.is_const]
            dtype = numpy_dtype(node.out_port().type.dtype)
            return [np.array(numbers, dtype)] if len(numbers) == len(shape) else None
        arrays = [None if s is None else self._values[s] for s in node.sources()]
        unknown = any(a is None and s is not None for a, s in zip(arrays, node.sources(), strict=True))
        if unknown or isinstance(node.op, Stateful | RegionOp):
            return None
        with np.errstate(all="ignore"):
            return node.op.evaluate(*arrays)


def _operands(node: Node) -> list[OutPort]:
    """Return the ports whose values an operation needs; sizes are known by types."""
    if node.held is not None or node.type == "ShapeOf":
        return []
    return [s for s in node.sources() if s is not None]
