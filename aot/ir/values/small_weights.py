"""Weights of 8 bits or fewer, as a file has them."""

from __future__ import annotations

from aot.ir.graph import Graph, OutPort
from aot.runtime.abi import DType

WIDEST = 8  # bits of a small weight
_PRODUCTS = ("MatMul", "Convolution")
_DECOMPRESSION = ("Convert", "Subtract", "Multiply", "Reshape", "Transpose")  # between integers and their product


def weight_bits(graph: Graph) -> int | None:
    """Return the fewest bits in which matrices of constants lie; None if all have more than 8, or are booleans."""
    found: list[int] = []
    for node in graph.nodes.values():
        found += [n for body in node.regions.values() if (n := weight_bits(body)) is not None]
        if node.held is not None and node.out_ports() and node.out_port().destinations:
            kind = node.out_port().type
            if 0 < kind.dtype.bits <= WIDEST and kind.dtype is not DType.BOOL and len(kind.dims or ()) > 1:
                found.append(kind.dtype.bits)
    return min(found, default=None)


def plain_products(graph: Graph) -> int:
    """Return the number of products whose weights have 8 bits or fewer, and whose data are not rounded to 8 bits."""
    found = sum(plain_products(body) for node in graph.nodes.values() for body in node.regions.values())
    for node in graph.nodes.values():
        ports = [p for p in node.sources() if p is not None][:2] if node.type in _PRODUCTS else []
        if len(ports) == 2 and all(p.type.dtype.is_float for p in ports):
            held = [_bits(p) for p in ports]
            found += any(isinstance(n, int) and n <= WIDEST for n in held) and None in held
    return found


def _bits(port: OutPort) -> int | None:
    """Return the bits that numbers of a port have been rounded to, as constants or data; None: not to integers.

    More than 8 for a constant of other types.
    """
    while port.node.type in _DECOMPRESSION and port.node.held is None:
        if port.type.dtype.is_integer and port.type.dtype.bits <= WIDEST:
            return port.type.dtype.bits
        sources = [s for s in port.node.sources() if s is not None]
        port = max(sources, key=lambda s: len(s.type.dims or ()))
    if port.node.type == "FakeQuantize":
        return WIDEST
    return None if port.node.held is None else port.type.dtype.bits
