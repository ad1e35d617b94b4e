"""Weights of 8 bits or fewer, as a file has them."""

from __future__ import annotations

from aot.ir.graph import Graph
from runtime.abi import DType

WIDEST = 8  # bits of a small weight


def weight_bits(graph: Graph) -> int | None:
    """Return the fewest bits in which matrices of constants lie; None if all have more than 8, or are booleans."""
    found: list[int] = []
    for node in graph.nodes.values():
        found += [n for body in node.regions.values() if (n := weight_bits(body)) is not None]
        if node.held is not None and node.out_ports():
            kind = node.out_port().type
            if 0 < kind.dtype.bits <= WIDEST and kind.dtype is not DType.BOOL and len(kind.dims or ()) > 1:
                found.append(kind.dtype.bits)
    return min(found, default=None)
