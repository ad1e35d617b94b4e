"""Windows of signals; periodic ones are those of one element more, without the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType

MAX_ELEMENTS = 1 << 24  # elements of a window that becomes a constant


def _cosines(node: AtenNode, length: Size, periodic: bool, factors: Sequence[float]) -> OutPort:
    """Return the sum of factors[k] cos(2 pi k n / last) for n before `length`; 1 for a window of one element."""
    build, dtype = node.build, node.dtype()
    whole = node.port(length, DType.I64)
    n = node.cast(build.Range(node.scalar(0), whole, node.scalar(1)), DType.F64)
    last = node.cast(
        build.Maximum(whole if periodic else build.Subtract(whole, node.scalar(1)), node.scalar(1)), n.type.dtype
    )
    total = node.like(factors[0], n)
    for k, factor in enumerate(factors[1:], 1):
        turn = build.Divide(build.Multiply(n, node.like(2 * np.pi * k, n)), last)
        total = build.Add(total, build.Multiply(build.Cos(turn), node.like(factor, n)))
    one = build.Equal(whole, node.scalar(1))
    return node.cast(build.Select(one, node.like(1, n), build.Add(total, build.Multiply(n, node.like(0, n)))), dtype)


@aten("hann_window.default", "hann_window.periodic")
def hann_window(node: AtenNode, window_length: Size, periodic: bool = True, dtype: DType | None = None) -> OutPort:
    return _cosines(node, window_length, periodic, (0.5, -0.5))


@aten("hamming_window.default", "hamming_window.periodic")
@aten("hamming_window.periodic_alpha", "hamming_window.periodic_alpha_beta")
def hamming_window(
    node: AtenNode,
    window_length: Size,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    dtype: DType | None = None,
) -> OutPort:
    return _cosines(node, window_length, periodic, (alpha, -beta))


@aten("blackman_window.default", "blackman_window.periodic")
def blackman_window(node: AtenNode, window_length: Size, periodic: bool = True, dtype: DType | None = None) -> OutPort:
    return _cosines(node, window_length, periodic, (0.42, -0.5, 0.08))


@aten("bartlett_window.default", "bartlett_window.periodic")
def bartlett_window(node: AtenNode, window_length: int, periodic: bool = True, dtype: DType | None = None) -> OutPort:
    return _constant(node, np.bartlett, window_length, periodic)


@aten("kaiser_window.default", "kaiser_window.periodic", "kaiser_window.beta")
def kaiser_window(
    node: AtenNode, window_length: int, periodic: bool = True, beta: float = 12.0, dtype: DType | None = None
) -> OutPort:
    return _constant(node, partial(np.kaiser, beta=beta), window_length, periodic)


def _constant(node: AtenNode, window: Callable[[int], Array], length: int, periodic: bool) -> OutPort:
    """Return a window [length] that is computed now, symmetric ones by `window`; 1 for a window of one element."""
    node.refuse(not 0 <= length <= MAX_ELEMENTS, f"windows have up to {MAX_ELEMENTS} elements, got {length}")
    return node.build.const(np.ones(1) if length == 1 else window(length + periodic)[:length], node.dtype())
