"""Finds masks that are wrong for rows of different lengths, as sliding windows that count from the longest row.

    hidden = columns <= past + i - window        past: of the longest row

Comparisons that do not depend on data must give the same for a row alone and beside a longer one. It is
computed for both, for one token and lengths up to `MAX_TOKENS`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.index import Affine, exactly, normal
from aot.codegen.ir.loops import Var
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import RegionOp, Stateful
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.deferred import value_of
from aot.opset.control.growing_variables import CacheSizes
from aot.runtime.errors import AotError
from aot.runtime.generation.interface import MASK, PLACES
from aot.runtime.generation.interface import ROWS as ORDER

COMPARISONS = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
MAX_TOKENS = 1 << 18  # tokens of the longest row that is tried


def differs_by_longest(graph: Graph, context: int) -> Node | None:
    """Return a comparison that depends on the longest row, of up to `context` tokens (0: any number), or None."""
    compared = [n for n in graph.order() if n.type in COMPARISONS]
    most = min(context or MAX_TOKENS, MAX_TOKENS)
    for longest in (*(1 << k for k in range(1, most.bit_length()) if 1 << k < most), most):
        count = (longest + 1) // 2
        beside, alone = _Row(graph, count, longest), _Row(graph, count, count)
        for node in compared:
            one, other = beside.value(node.out_port()), alone.value(node.out_port())
            if one is None or other is None:
                continue
            columns = slice(count if one.shape[-1:] == (longest,) and other.shape[-1:] == (count,) else None)
            if not np.array_equal(one[..., columns] if one.ndim else one, other):
                return node
    return None


class _Row:
    """Values of a call with one token. Its row then has `count` tokens, beside a row of `longest`."""

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
            if last in self._values:
                waiting.pop()
            elif missing := [s for s in _operands(last.node) if s not in self._values]:
                waiting += missing
            else:
                ports = list(last.node.out_ports().values())
                self._values |= zip(ports, self._evaluated(last.node) or [None] * len(ports), strict=True)
        return self._values[port]

    def _evaluated(self, node: Node) -> Sequence[Array] | None:
        if node.constant_data is not None:
            return [value_of(node.constant_data)] if node.constant_data.size <= MAX_TOKENS else None
        if node.type == "ShapeOf":
            shape = [d if isinstance(d, int) else normal(d, self._sizes) for d in node.source().type.shape]
            numbers = [d if isinstance(d, int) else d.const for d in shape if isinstance(d, int) or d.is_const]
            dtype = numpy_dtype(node.out_port().type.dtype)
            return [np.array(numbers, dtype)] if len(numbers) == len(shape) else None
        arrays = [None if s is None else self._values[s] for s in node.sources()]
        unknown = any(a is None and s is not None for a, s in zip(arrays, node.sources(), strict=True))
        if unknown or isinstance(node.op, Stateful | RegionOp):
            return None
        try:
            with np.errstate(all="ignore"):
                return node.op.evaluate(*arrays)
        except (AotError, ValueError, IndexError):  # sizes of other inputs than these
            return None


def _operands(node: Node) -> list[OutPort]:
    """Return the ports that an operation needs the values of; sizes are known by types."""
    if node.constant_data is not None or node.type == "ShapeOf":
        return []
    return [s for s in node.sources() if s is not None]
