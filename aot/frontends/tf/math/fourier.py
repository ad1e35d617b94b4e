"""Fourier transforms of the last axes."""

from __future__ import annotations

from aot.frontends.tf.math.complex_numbers import Complex, Number, parts_of
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort

COUNT = {"FFT": 1, "FFT2D": 2, "FFT3D": 3}


def _last(count: int, rank: int) -> list[int]:
    return list(range(rank - count, rank))


def _rank(x: Number) -> int:
    return x.real.type.rank if isinstance(x, Complex) else x.type.rank


def _paired(node: TfNode, number: Number) -> OutPort:
    """[.., 2]"""
    x = parts_of(node, number)
    along = node.list([x.real.type.rank])
    parts = [node.build.Unsqueeze(p, along) for p in (x.real, x.imag)]
    return node.build.Concat(*parts, axis=x.real.type.rank)


def _apart(node: TfNode, x: OutPort) -> Complex:
    last = node.scalar(x.type.rank - 1)
    return Complex(*(node.build.Gather(x, node.scalar(k), last) for k in range(2)))


@tf(
    *COUNT, *("I" + k for k in COUNT), *("Batch" + k for k in COUNT), *("BatchI" + k for k in COUNT), takes_complex=True
)
def fft(node: TfNode, x: Number) -> Complex:
    name = node.kind.removeprefix("Batch")
    run = node.build.IDFT if name.startswith("I") else node.build.DFT
    axes = _last(COUNT[name.removeprefix("I")], _rank(x))
    return _apart(node, run(_paired(node, x), node.list(axes)))


@tf(*("R" + k for k in COUNT))
def rfft(node: TfNode, x: OutPort, length: OutPort) -> Complex:
    """Lengths crop the signal or fill it with zeros."""
    axes = _last(COUNT[node.kind[1:]], x.type.rank)
    sizes = node.ints(length, "fft_length")
    return _apart(node, node.build.RDFT(x, node.list(axes), node.list(sizes)))


@tf(*("IR" + k for k in COUNT), takes_complex=True)
def irfft(node: TfNode, x: Number, length: OutPort) -> OutPort:
    axes = _last(COUNT[node.kind[2:]], _rank(x))
    sizes = node.ints(length, "fft_length")
    return node.build.IRDFT(_paired(node, x), node.list(axes), node.list(sizes))
