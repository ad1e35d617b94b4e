"""Fourier transforms."""

from __future__ import annotations

from math import prod

import numpy as np

from aot.frontends.onnx.arrays.axes import OPEN_END, bounded
from aot.frontends.onnx.arrays.generators import single
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.ir.values.estimate import check_table
from aot.opset.signal.fourier import radices
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UnsupportedError

# Longest transforms that are products with a matrix, in f64: cancelling terms then give nearly zero. Others of small
# prime factors take an eighth of the time and less in stages; where a factor is large, chirps take more.
MAX_MATRIX_LENGTH, MAX_PRIME_MATRIX_LENGTH = 16, 256


@onnx("DFT")
def dft(node: OnnxNode, x: OutPort, length: OutPort | None = None, axis: OutPort | None = None) -> OutPort:
    """Convert to a transform; the axis is an attribute before opset 20."""
    rank = x.type.rank
    if (axis is not None and axis.value is None) or (length is not None and length.value is None):
        number = node.scalar(node.integer("axis", 1)) if axis is None else single(node, axis)
        along = node.build.Select(node.build.Less(number, 0), node.build.Add(number, rank), number)
        along = node.within(along, 0, rank - 2, "the axis is one of the signal's dimensions")
        rule = "dft_length must be positive"
        points = None if length is None else node.within(single(node, length), 1, OPEN_END, rule)
        return _by_sums(node, x, along, points)
    number = node.integer("axis", 1 if node.opset < 20 else -2) if axis is None else node.ints(axis, "axis")[0]
    along = node.axis(number, rank)
    onesided, inverse, extent = node.flag("onesided"), node.flag("inverse"), x.shape[along]
    real = x.shape[-1] == 1
    node.refuse(onesided and not inverse and not real, "a one-sided transform needs a real signal")
    size: int | None = None
    if length is not None:
        size = node.ints(length, "dft_length")[0]
    elif isinstance(extent, int):
        size = 2 * (extent - 1) if onesided and inverse else extent
    most = MAX_MATRIX_LENGTH if radices(size or 0) else MAX_PRIME_MATRIX_LENGTH
    if size is not None and size <= most and isinstance(extent, int):
        return _by_matrix(node, x, along, size)
    return _by_transform(node, x, along, real, None if length is None else node.list([size or 0]))


def _by_sums(node: OnnxNode, x: OutPort, along: OutPort, length: OutPort | None) -> OutPort:
    """Transform along a dynamic axis or to dynamic sizes: [before, n, after] times a matrix built at run time."""
    build, rank = node.build, x.type.rank
    sizes, numbers = node.dims(x, range(rank)), node.list(range(rank))
    onesided, inverse = node.flag("onesided"), node.flag("inverse")

    def volume(chosen: OutPort) -> OutPort:
        return build.ReduceProd(build.Select(chosen, sizes, node.scalar(1)), node.list([0]), keep_dims=True)

    behind = build.LogicalAnd(build.Greater(numbers, along), build.Less(numbers, rank - 1))
    extent = build.Gather(sizes, along, node.scalar(0))
    flat = build.Concat(
        volume(build.Less(numbers, along)),
        build.Reshape(extent, node.list([1])),
        volume(behind),
        node.dims(x, [rank - 1]),
        axis=0,
    )
    lined = build.Reshape(x, bounded(node, x, flat))
    extent, total = node.size(lined, 1), length
    if total is None:
        total = build.Multiply(build.Subtract(extent, 1), 2) if onesided and inverse else extent
    result = _transformed(node, lined, total, onesided, inverse)
    shape = build.Select(build.Equal(numbers, along), node.dims(result, [1]), sizes)
    last = node.list([node.extent(result, -1, "the number of parts")])
    shape = build.Concat(build.Slice(shape, *(node.list([v]) for v in (0, rank - 1, 1, 0))), last, axis=0)
    return node.cast(build.Reshape(result, build.Maximum(shape, 0)), x.type.dtype)


def _transformed(node: OnnxNode, x: OutPort, size: OutPort, onesided: bool, inverse: bool) -> OutPort:
    """Transform [before, n, after, parts] in f64 to [before, frequencies, after, parts]; inputs beyond `size` are 0."""
    build, zero, one = node.build, node.scalar(0), node.scalar(1)
    half = build.Add(build.Divide(size, 2), 1)
    extent = build.Squeeze(node.dims(x, [1]), node.list([0]))
    used = build.Minimum(extent, half if onesided and inverse else size)
    ends = build.Reshape(used, node.list([1]))
    cropped = build.Slice(node.cast(x, DType.F64), node.list([0]), ends, node.list([1]), node.list([1]))
    rows = build.Range(zero, half if onesided and not inverse else size, one, output_type=DType.I64)
    columns = build.Range(zero, used, one, output_type=DType.I64)
    turns = build.FloorMod(build.Multiply(build.Unsqueeze(rows, node.list([1])), columns), size)
    wide = node.cast(size, DType.F64)
    angle = build.Divide(build.Multiply(node.cast(turns, DType.F64), 2 * np.pi), wide)
    cosine, sine = build.Cos(angle), build.Multiply(build.Sin(angle), 1.0 if inverse else -1.0)
    if inverse:
        alone = build.LogicalOr(build.Equal(columns, 0), build.Equal(build.Multiply(columns, 2), size))
        twice = build.Select(alone, node.like(1, wide), node.like(2 if onesided else 1, wide))
        cosine, sine = (build.Multiply(p, build.Divide(twice, wide)) for p in (cosine, sine))
    parts = [build.Squeeze(p, node.list([3])) for p in _halves(node, cropped)]
    real, imaginary = build.MatMul(cosine, parts[0]), build.MatMul(sine, parts[0])
    if len(parts) > 1:
        real = build.Subtract(real, build.MatMul(sine, parts[1]))
        imaginary = build.Add(imaginary, build.MatMul(cosine, parts[1]))
    shown = (real,) if onesided and inverse else (real, imaginary)
    planes = [build.Unsqueeze(p, node.list([3])) for p in shown]
    return planes[0] if len(planes) == 1 else build.Concat(*planes, axis=3)


def _halves(node: OnnxNode, x: OutPort) -> list[OutPort]:
    """Return the real part and, if there is one, the imaginary part."""
    if x.shape[3] == 1:
        return [x]
    return list(node.build.Split(x, node.scalar(3), num_splits=2, outputs=2).node.out_ports().values())


def _by_transform(node: OnnxNode, x: OutPort, along: int, real: bool, length: OutPort | None) -> OutPort:
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


def _by_matrix(node: OnnxNode, x: OutPort, along: int, size: int) -> OutPort:
    """Transform [.., n, .., parts] as rows of n * parts numbers, times a matrix."""
    build, rank, dtype = node.build, x.type.rank, x.type.dtype
    extent, parts = x.type.shape[along], x.type.shape[-1]
    if not isinstance(extent, int) or not isinstance(parts, int):
        raise UnsupportedError("DFT: sizes must be known at compile time")
    matrix = _matrix(extent, parts, size, node.flag("inverse"), node.flag("onesided"))
    order = [*(a for a in range(rank) if a not in (along, rank - 1)), along, rank - 1]
    transposed = build.Transpose(node.cast(x, DType.F64), node.list(order))
    rows = build.Reshape(transposed, node.list([*[0] * (rank - 2), extent * parts]), special_zero=True)
    product = build.MatMul(rows, build.const(matrix.reshape(extent * parts, prod(matrix.shape[2:])), DType.F64))
    split = build.Reshape(product, node.list([*[0] * (rank - 2), *matrix.shape[2:]]), special_zero=True)
    return node.cast(build.Transpose(split, node.list(np.argsort(order).tolist())), dtype)


def _matrix(extent: int, parts: int, size: int, inverse: bool, onesided: bool) -> Array:
    """Return the matrix [input, its part, output, its part] of a transform of `size` elements; other rows are 0."""
    count = size // 2 + 1 if onesided and not inverse else size
    used = min(extent, size // 2 + 1 if onesided and inverse else size)
    check_table("DFT", extent, parts, count, 2)
    angle = 2 * np.pi * ((np.arange(used)[:, None] * np.arange(count)) % size) / size
    cosine, sine = np.cos(angle), np.sin(angle) * (1 if inverse else -1)
    if inverse:
        twice = [1 if k in (0, size / 2) or not onesided else 2 for k in range(used)]  # the other half is the conjugate
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
def stft(
    node: OnnxNode, signal: OutPort, step: OutPort, window: OutPort | None = None, length: OutPort | None = None
) -> OutPort:
    """Spectra of windows `step` apart; sizes may be dynamic."""
    build, onesided = node.build, node.flag("onesided", True)
    sized = length if length is not None else None if window is None else node.dims(window, [0])
    if sized is None:
        raise ModelError("STFT: the window or the frame's length must be given, got neither")
    whole = signal.type.rank == 3 and signal.shape[-1] != 1
    frame = single(node, sized)
    if not whole and onesided and frame.value is not None and step.value is not None:
        flat = build.Squeeze(signal, node.list([2])) if signal.type.rank == 3 else signal
        if window is None:
            window = build.Broadcast(node.like(1, signal), node.list([int(frame.value)]))
        return build.STFT(flat, window, frame, single(node, step))
    parts = signal if signal.type.rank == 3 else build.Unsqueeze(signal, node.list([2]))
    hop = node.within(single(node, step), 1, OPEN_END, "frame_step must be positive")
    extent = build.Squeeze(node.dims(parts, [1]), node.list([0]))
    frame = node.within(frame, 1, extent, "frames are not empty, and at most as long as the signal")
    count = build.Add(build.Divide(build.Subtract(extent, frame), hop), 1)
    zero, one = node.scalar(0), node.scalar(1)
    firsts = build.Multiply(build.Range(zero, count, one, output_type=DType.I64), hop)
    positions = build.Add(build.Unsqueeze(firsts, node.list([1])), build.Range(zero, frame, one, output_type=DType.I64))
    frames = build.Gather(parts, positions, one)  # [batch, frames, frame, parts]
    if window is not None:
        frames = build.Multiply(frames, build.Unsqueeze(window, node.list([1])))
    transposed = build.Transpose(frames, node.list([0, 2, 1, 3]))
    spectra = _transformed(node, transposed, frame, onesided, inverse=False)
    return node.cast(build.Transpose(spectra, node.list([0, 2, 1, 3])), signal.type.dtype)
