"""Fourier transforms. Lengths crop a signal or fill it with zeros.

norm           transform         inverse
backward       sum               sum / n
ortho          sum / sqrt(n)     sum / sqrt(n)
forward        sum / n           sum
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from aot.frontends.pt2.arrays.movement import transposed, windows
from aot.frontends.pt2.math.complex_numbers import conj, paired, parts_of, view_as_complex
from aot.frontends.pt2.registry import AtenNode, Complex, Size, aten, aten_complex
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

C = TypeVar("C", bound=Callable[..., Any])
Signal = Complex | OutPort
EXPONENTS = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}  # the sum is divided by n to this power
BY_NUMBER = (0.0, 0.5, 1.0)  # exponents of the length by `normalization`
KINDS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


def rank_of(x: Signal) -> int:
    return (x.real if isinstance(x, Complex) else x).type.rank


def _scaled(node: AtenNode, y: OutPort, sizes: OutPort, exponent: float) -> OutPort:
    """`y` divided by the product of sizes to a power."""
    if not exponent:
        return y
    count = node.cast(node.build.ReduceProd(sizes, node.list([0])), y.type.dtype)
    divisor = count if abs(exponent) == 1 else node.build.Sqrt(count)
    return (node.build.Divide if exponent > 0 else node.build.Multiply)(y, divisor)


def _lengths(node: AtenNode, x: OutPort, axes: Sequence[int], sizes: Sequence[Size] | None) -> OutPort:
    """Return the lengths of a transform as a vector; -1 and no sizes stand for the sizes of `x`."""
    if not sizes:
        return node.dims(x, axes)
    parts = [node.dims(x, [a]) if n == -1 else node.vector([n]) for a, n in zip(axes, sizes, strict=True)]
    return parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=0)


def c2c(
    node: AtenNode,
    x: OutPort | Complex,
    axes: Sequence[int],
    sizes: Sequence[Size] | None,
    inverse: bool,
    exponent: float,
) -> Complex:
    whole = parts_of(node, x)
    lengths = _lengths(node, whole.real, axes, sizes)
    run = node.build.IDFT if inverse else node.build.DFT
    port = run(paired(node, whole), node.list(axes), *([lengths] if sizes else []))
    return view_as_complex(node, _scaled(node, port, lengths, exponent - inverse))


def r2c(
    node: AtenNode, x: OutPort | Complex, axes: Sequence[int], sizes: Sequence[Size] | None, exponent: float
) -> Complex:
    if isinstance(x, Complex):
        raise ModelError(f"{node.kind}: the signal must be real, got a complex one")
    x = node.real(x)
    lengths = _lengths(node, x, axes, sizes)
    port = node.build.RDFT(x, node.list(axes), *([lengths] if sizes else []))
    return view_as_complex(node, _scaled(node, port, lengths, exponent))


def c2r(
    node: AtenNode, x: OutPort | Complex, axes: Sequence[int], sizes: Sequence[Size] | None, exponent: float
) -> OutPort:
    """Return the inverse of r2c; without sizes, the last one is even."""
    whole = parts_of(node, x)
    build = node.build
    lengths = _lengths(node, whole.real, axes, sizes)
    if not sizes or sizes[-1] == -1:
        ahead = build.Slice(lengths, node.list([0]), node.list([-1]), node.list([1]))
        even = build.Multiply(build.Subtract(node.dims(whole.real, axes[-1:]), node.list([1])), node.list([2]))
        lengths = build.Concat(ahead, even, axis=0)
    port = build.IRDFT(paired(node, whole), node.list(axes), lengths)
    return _scaled(node, port, lengths, exponent - 1)


def both(*kinds: str) -> Callable[[C], C]:
    """Register a conversion of real and of complex signals."""

    def register(function: C) -> C:
        aten_complex(*kinds)(function)
        return aten(*kinds)(function)

    return register


def run(
    node: AtenNode, kind: str, x: OutPort | Complex, axes: Sequence[int], sizes: Sequence[Size] | None, norm: str | None
) -> Signal:
    node.refuse(norm not in EXPONENTS, f"norm is backward, ortho or forward, got {norm!r}")
    power = EXPONENTS[norm]
    match kind:
        case "fft":
            return c2c(node, x, axes, sizes, False, power)
        case "ifft":
            return c2c(node, x, axes, sizes, True, 1 - power)
        case "rfft":
            return r2c(node, x, axes, sizes, power)
        case "irfft":
            return c2r(node, x, axes, sizes, 1 - power)
        case "hfft":
            return c2r(node, conj(node, parts_of(node, x)), axes, sizes, power)
        case _:
            return conj(node, r2c(node, x, axes, sizes, 1 - power))


@both(*(f"fft_{k}.default" for k in KINDS))
def fft(node: AtenNode, x: OutPort | Complex, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Signal:
    kind = node.kind.removeprefix("fft_").removesuffix(".default")
    return run(node, kind, x, [node.axis(dim, rank_of(x))], None if n is None else [n], norm)


@both(*(f"fft_{k}{n}.default" for k in KINDS for n in ("2", "n")))
def fftn(
    node: AtenNode,
    x: OutPort | Complex,
    s: Size | Sequence[Size] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Signal:
    """Over several axes: of 2, the last ones unless `dim` says otherwise."""
    kind, rank = node.kind.removeprefix("fft_").removesuffix(".default"), rank_of(x)
    sizes = None if s is None else list(s) if isinstance(s, Sequence) else [s]
    if dim is None and kind.endswith("2"):
        dim = (-2, -1)
    if dim is None and sizes:
        dim = tuple(range(rank - len(sizes), rank))
    axes = node.axes(dim, rank)
    return run(node, kind[:-1], x, axes, sizes, norm)


@both("_fft_c2c.default")
def fft_c2c(node: AtenNode, x: OutPort | Complex, dim: Sequence[int], normalization: int, forward: bool) -> Complex:
    return c2c(node, x, node.axes(dim, rank_of(x)), None, not forward, _numbered(node, normalization))


@aten("_fft_r2c.default")
def fft_r2c(node: AtenNode, x: OutPort, dim: Sequence[int], normalization: int, onesided: bool) -> Complex:
    axes, power = node.axes(dim, x.type.rank), _numbered(node, normalization)
    return r2c(node, x, axes, None, power) if onesided else c2c(node, x, axes, None, False, power)


@both("_fft_c2r.default")
def fft_c2r(
    node: AtenNode, x: OutPort | Complex, dim: Sequence[int], normalization: int, last_dim_size: Size
) -> OutPort:
    axes = node.axes(dim, rank_of(x))
    return c2r(node, x, axes, [*[-1] * (len(axes) - 1), last_dim_size], _numbered(node, normalization))


def _numbered(node: AtenNode, normalization: int) -> float:
    node.refuse(normalization not in range(3), f"normalization is 0 to 2, got {normalization}")
    return BY_NUMBER[normalization]


@aten("fft_fftshift.default", "fft_ifftshift.default")
def fftshift(node: AtenNode, x: OutPort, dim: int | Sequence[int] | None = None) -> OutPort:
    """The zero frequency moves to the middle, or back."""
    build, axes = node.build, node.axes(dim, x.type.rank)
    sizes = node.dims(x, axes)
    if "ifftshift" in node.kind:
        sizes = build.Add(sizes, node.list([1]))
    return build.Roll(x, build.Divide(sizes, node.list([2])), node.list(axes))


@aten("fft_fftfreq.default", "fft_rfftfreq.default")
def fftfreq(node: AtenNode, n: int, d: float = 1.0, dtype: DType | None = None) -> OutPort:
    overload = np.fft.rfftfreq if "rfft" in node.kind else np.fft.fftfreq
    return node.build.const(overload(n, d), node.dtype())


# ---- transforms of frames


@aten_complex("stft.default")
@aten("stft.default")
def stft(
    node: AtenNode,
    x: OutPort | Complex,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: OutPort | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Signal:
    """[.., length] -> [.., frequencies, frames]; a short window lies in the middle of its frame."""
    node.refuse(bool(align_to_window), "frames that are aligned to the window are not supported")
    parts = x.ports if isinstance(x, Complex) else (x,)
    frames = [windows(node, p, p.type.rank - 1, n_fft, hop_length or n_fft // 4) for p in parts]
    frames = [_weighted(node, p, n_fft, win_length or n_fft, window) for p in frames]
    rank, power = frames[0].type.rank, 0.5 if normalized else 0.0
    if isinstance(x, Complex) or onesided is False:
        spectrum = c2c(node, Complex(*frames) if len(frames) > 1 else frames[0], [rank - 1], None, False, power)
    else:
        spectrum = r2c(node, frames[0], [rank - 1], None, power)
    order = [*range(rank - 2), rank - 1, rank - 2]
    turned = Complex(*(transposed(node, p, order) for p in spectrum.ports))
    is_complex = isinstance(x, Complex) if return_complex is None else return_complex
    return turned if is_complex else paired(node, turned)


def _weighted(node: AtenNode, frames: OutPort, size: int, length: int, window: OutPort | None) -> OutPort:
    """Frames times a window."""
    build = node.build
    if window is None:
        window = build.Broadcast(node.like(1, frames), node.list([length]))
    before = (size - length) // 2
    if size != length:
        around = node.list([before]), node.list([size - length - before])
        window = build.Pad(window, *around, node.like(0, window))
    return build.Multiply(frames, node.cast(window, frames.type.dtype))


@aten_complex("istft.default")
def istft(
    node: AtenNode,
    x: Complex,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: OutPort | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Size | None = None,
    return_complex: bool = False,
) -> OutPort:
    """[.., frequencies, frames] -> [.., length]"""
    node.refuse(return_complex or onesided is False, "spectra of both sides, of complex signals, are not supported")
    build, data, hop = node.build, paired(node, x), hop_length or n_fft // 4
    if window is None:
        window = build.Broadcast(node.like(1, data), node.list([win_length or n_fft]))
    sizes = [node.scalar(n_fft), node.scalar(hop), *([] if length is None else [node.port(length, DType.I64)])]
    return build.ISTFT(data, node.cast(window, data.type.dtype), *sizes, center=center, normalized=normalized)
