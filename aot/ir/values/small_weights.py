"""Weights of 16 bits or fewer, as a file has them."""

from __future__ import annotations

from collections import Counter
from math import prod

from aot.ir.graph import Graph, Node, OutPort
from aot.ir.types import Array
from aot.ir.values.deferred import LEAST_ELEMENTS, NIBBLE, WIDEST, Deferred, rows_of
from aot.runtime.abi import DType

SOME = 1 << 16  # numbers examined at a time; the first piece decides for most constants of 8 bits
# Inputs that are weights or data of a product, and those that are weights of a recurrent layer.
_PRODUCTS = {"MatMul": (0, 1), "Convolution": (0, 1)}
RECURRENT = {
    **dict.fromkeys(("RNNCell", "GRUCell", "RNNRecurrence", "GRURecurrence", "LSTMRecurrence"), (2, 3)),
    **dict.fromkeys(("RNNSequence", "GRUSequence", "LSTMCell"), (3, 4)),
    **dict.fromkeys(("LSTMSequence", "ClippedLSTMSequence"), (4, 5)),
}
_DECOMPRESSION = ("Convert", "Subtract", "Multiply", "Reshape", "Transpose")  # between integers and their product


def weight_bits(graph: Graph) -> int | None:
    """Return the fewest bits of a number in a constant matrix; None if all have more than 8, or are booleans."""
    widths: list[int] = []
    for node in graph.all_nodes():
        if node.constant_data is not None and node.out_ports() and node.out_port().destinations:
            kind = node.out_port().type
            if 0 < kind.dtype.bits <= WIDEST and kind.dtype is not DType.BOOL and len(kind.dims or ()) > 1:
                widths.append(_bits(node.constant_data, kind.dtype, min(widths, default=WIDEST)))
    return min(widths, default=None)


def _bits(constant: Array | Deferred, dtype: DType, known: int) -> int:
    """Return the bits that the numbers of a constant need; bytes below 16 need 4. `known`: bits of another constant."""
    if dtype is not DType.U8 or known <= NIBBLE:
        return dtype.bits
    most, each = 1 << NIBBLE, max(SOME // max(prod(constant.shape[1:]), 1), 1)
    pieces = (rows_of(constant, n, min(n + each, constant.shape[0])) for n in range(0, constant.shape[0], each))
    return NIBBLE if all(piece.max(initial=0) < most for piece in pieces) else dtype.bits


def has_short_weights(graph: Graph) -> bool:
    """True if most numbers of the large matrices of constants are floats of 16 bits."""
    sizes = Counter[bool]()
    for node in graph.nodes.values():
        data = node.constant_data
        if data is not None and data.size > LEAST_ELEMENTS and len(data.shape) > 1 and node.out_ports():
            sizes[node.out_port().type.dtype in (DType.BF16, DType.F16)] += data.size
    return sizes[True] > sizes[False]


def rounded_products(graph: Graph, least: int = LEAST_ELEMENTS) -> int:
    """Return the number of products with data to round to 8 bits, unless options say otherwise.

    Their weights are more than `least` integers of 8 bits or fewer, and their data floats. The number is 0 if the graph
    contains its own quantisation of data. Constants may be deferred.
    """
    return 0 if rounds_data(graph) else _plain_products(graph, least)


def rounds_data(graph: Graph) -> bool:
    """True if data are rounded to integers of 8 bits or fewer."""
    return any(map(_is_rounding, graph.all_nodes()))


def _is_rounding(node: Node) -> bool:
    if node.type != "Convert":
        return node.type == "FakeQuantize"
    dtype, source_type = node.out_port().type.dtype, node.source(0).type.dtype
    return dtype.is_integer and dtype.bits <= WIDEST and source_type.is_float


def _plain_products(graph: Graph, least: int) -> int:
    count = 0
    for node in graph.all_nodes():
        positions, sources = _PRODUCTS.get(node.type) or RECURRENT.get(node.type, ()), node.sources()
        ports = [p for p in (sources[k] for k in positions if k < len(sources)) if p is not None]
        counts = [_integers(p) for p in ports] if all(p.type.dtype.is_float for p in ports) else []
        apart = [p.shape[0] if node.type.endswith("Sequence") else 1 for p in ports]  # directions, which are split
        large = sum(n is not None and isinstance(d, int) and n > least * d for n, d in zip(counts, apart, strict=False))
        count += large if node.type in RECURRENT else large == 1 and None in counts
    return count


def _integers(port: OutPort) -> int | None:
    """Return the number of integers of 8 bits or fewer that a constant is made of, 0 if of others; None for data."""
    while port.node.type in _DECOMPRESSION and port.node.constant_data is None:
        if port.type.dtype.is_integer:  # wider ones are not kept small: DequantizeLinear computes in them
            return 0
        sources = [s for s in port.node.sources() if s is not None]
        port = max(sources, key=lambda s: len(s.type.dims or ()))
    constant = port.node.constant_data
    if constant is None:
        return None
    dtype = constant.origin if isinstance(constant, Deferred) else port.type.dtype
    return constant.size if dtype.is_integer and dtype.bits <= WIDEST else 0
