"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from aot.ir.types import Array
from runtime.abi import DType
from runtime.errors import UnsupportedError

SMALL = 256  # up to here a transform is a product with a matrix, in f64: then what cancels out is nearly zero


@onnx("DFT")
def dft(node: Call, x: OutPort, length: OutPort | None = None, axis: OutPort | None = None) -> OutPort:
    """The axis is an attribute before opset 20."""
    rank = x.type.rank
    given = node.integer("axis", 1 if node.opset < 20 else -2) if axis is None else node.ints(axis, "axis")[0]
    along = node.axis(given, rank)
    onesided, inverse, extent = node.flag("onesided"), node.flag("inverse"), x.shape[along]
    real = x.shape[-1] == 1
    node.refuse(onesided and not inverse and not real, "a one-sided transform needs a real signal")
    size: int | None = None
    if length is not None:
        size = node.ints(length, "dft_length")[0]
    elif isinstance(extent, int):
        size = 2 * (extent - 1) if onesided and inverse else extent
    if size is not None and size <= SMALL and isinstance(extent, int):
        return _by_matrix(node, x, along, size)
    return _by_transform(node, x, along, real, None if length is None else node.list([size or 0]))


def _by_transform(node: Call, x: OutPort, along: int, real: bool, length: OutPort | None) -> OutPort:
    build, rank, axes = node.build, x.type.rank, node.list([along])
    size = () if length is None else (length,)
    inverse = node.flag("inverse")
    if node.flag("onesided"):
        if inverse:
            return build.Unsqueeze(build.IRDFT(x, axes, *size), node.list([rank - 1]))
        return build.RDFT(build.Squeeze(x, node.list([rank - 1])), axes, *size)
    if real:
        x = build.Pad(x, node.list([0] * rank), node.list([*[0] * (rank - 1), 1]), node.like(0, x))
    return (build.IDFT if inverse else build.DFT)(x, axes, *size)


def _by_matrix(node: Call, x: OutPort, along: int, size: int) -> OutPort:
    """[.., n, .., parts] as rows of n * parts numbers, times a matrix."""
    build, rank, dtype = node.build, x.type.rank, x.type.dtype
    extent, parts = x.type.shape[along], x.type.shape[-1]
    if not isinstance(extent, int) or not isinstance(parts, int):
        raise UnsupportedError("DFT: sizes must be known at compile time")
    matrix = _matrix(extent, parts, size, node.flag("inverse"), node.flag("onesided"))
    order = [*(a for a in range(rank) if a not in (along, rank - 1)), along, rank - 1]
    moved = build.Transpose(node.cast(x, DType.F64), node.list(order))
    rows = build.Reshape(moved, node.list([*[0] * (rank - 2), extent * parts]), special_zero=True)
    found = build.MatMul(rows, build.const(matrix.reshape(extent * parts, -1), DType.F64))
    split = build.Reshape(found, node.list([*[0] * (rank - 2), *matrix.shape[2:]]), special_zero=True)
    return node.cast(build.Transpose(split, node.list(np.argsort(order).tolist())), dtype)


def _matrix(extent: int, parts: int, size: int, inverse: bool, onesided: bool) -> Array:
    """[input, its part, output, its part]: the sums of a transform of `size` elements; inputs behind do not count."""
    count = size // 2 + 1 if onesided and not inverse else size
    used = min(extent, size // 2 + 1 if onesided and inverse else size)
    angle = 2 * np.pi * ((np.arange(used)[:, None] * np.arange(count)) % size) / size
    cosine, sine = np.cos(angle), np.sin(angle) * (1 if inverse else -1)
    if inverse:
        twice = [1 if k in (0, size / 2) or not onesided else 2 for k in range(used)]  # the other half is conjugate
        cosine, sine = (m * np.array(twice)[:, None] / size for m in (cosine, sine))
    out = np.zeros((extent, parts, count, 1 if onesided and inverse else 2))
    out[:used, 0, :, 0] = cosine
    if parts > 1:
        out[:used, 1, :, 0] = -sine
    if out.shape[3] > 1:
        out[:used, 0, :, 1] = sine
        if parts > 1:
            out[:used, 1, :, 1] = cosine
    return out


@onnx("STFT")
def stft(node: Call, *inputs: OutPort | None) -> OutPort:
    """Inputs: signal, step, window, frame length."""
    signal, step, window, length = (*inputs, None, None)[:4]
    build = node.build
    if signal is None or step is None:
        raise UnsupportedError("STFT: signal and step must be given")
    node.refuse(signal.type.rank == 3 and signal.shape[-1] != 1, "complex signals are not supported")
    node.refuse(not node.flag("onesided", True), "two-sided spectra are not supported")
    flat = build.Squeeze(signal, node.list([2])) if signal.type.rank == 3 else signal
    if length is not None:
        frame = node.ints(length, "frame_length")[0]
    elif window is not None:
        frame = window.type.static_shape[0]
    else:
        raise UnsupportedError("STFT: the window or the frame's length must be given")
    if window is None:
        window = build.Broadcast(node.like(1, signal), node.list([frame]))
    hop = node.scalar(node.ints(step, "frame_step")[0])
    return build.STFT(flat, window, node.scalar(frame), hop)
