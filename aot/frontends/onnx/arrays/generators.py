"""Generated data: windows, ranges, matrices of mel weights."""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.arrays.axes import OPEN_END
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.ir.values.estimate import check_table
from aot.runtime.abi import DType


@onnx("Range")
def range_(node: OnnxNode, start: OutPort, limit: OutPort, step: OutPort) -> OutPort:
    scalars = (node.single(p) for p in (start, limit, step))
    return node.build.Range(*scalars, output_type=start.type.dtype)


@onnx("EyeLike")
def eye_like(node: OnnxNode, x: OutPort, *, k: int = 0) -> OutPort:
    rows, columns = x.type.static_shape
    dtype = node.dtype("dtype", x.type.dtype)
    check_table("EyeLike", rows, columns)
    return node.build.const(np.eye(rows, columns, k), dtype)


MAX_SAMPLES = 1 << 24  # bins, or samples of a frame or of a second; far above those of any real transform
WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0), "HammingWindow": (25 / 46, 21 / 46, 0.0), "BlackmanWindow": (0.42, 0.5, 0.08),
}  # fmt: skip


@onnx(*WINDOWS)
def window(node: OnnxNode, size: OutPort, *, periodic: bool = True) -> OutPort:
    """a - b cos(t) + c cos(2 t) for t from 0 to 2 pi, which is the last element, or the one after it if periodic."""
    build = node.build
    count = node.within(single(node, size), 0, OPEN_END, "the size must not be negative")
    span = node.cast(count, DType.F64)
    around = span if periodic else build.Subtract(span, 1.0)
    angle = build.Divide(build.Multiply(counted(node, count), 2 * np.pi), around)
    a, b, c = WINDOWS[node.kind]
    waves = build.Add(build.Multiply(build.Cos(angle), -b), build.Multiply(build.Cos(build.Multiply(angle, 2.0)), c))
    return node.cast(build.Add(waves, a), node.dtype("output_datatype", DType.F32))


def single(node: OnnxNode, x: OutPort) -> OutPort:
    """Return a number as an i64 scalar."""
    x = node.cast(x, DType.I64)
    return node.single(x)


def indices(node: OnnxNode, count: OutPort) -> OutPort:
    """Return 0, 1, 2, .. below an i64 scalar."""
    return node.build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64)


def counted(node: OnnxNode, count: OutPort) -> OutPort:
    """Return 0, 1, 2, .. below an i64 scalar, as f64."""
    return node.cast(indices(node, count), DType.F64)


@onnx("MelWeightMatrix")
def mel_weight_matrix(
    node: OnnxNode, bins: OutPort, length: OutPort, rate: OutPort, low: OutPort, high: OutPort
) -> OutPort:
    """Triangles of equal width in mel: column i rises from element edge[i] to edge[i + 1] and falls to edge[i + 2]."""
    build = node.build
    inputs = {"num_mel_bins": bins, "dft_length": length, "sample_rate": rate}
    count, size, hertz = (
        node.within(single(node, p), 0, MAX_SAMPLES, f"{n} is 0 to {MAX_SAMPLES}") for n, p in inputs.items()
    )
    first, last = (_mel(node, p) for p in (low, high))
    steps = build.Add(count, 2)
    width = build.Divide(build.Subtract(last, first), node.cast(steps, DType.F64))
    mels = build.Add(build.Multiply(counted(node, steps), width), first)
    powers = build.Power(build.const(10.0, DType.F64), build.Divide(mels, 2595.0))
    length_and_one = node.cast(build.Add(size, 1), DType.F64)
    scaled_hertz = build.Multiply(build.Multiply(build.Subtract(powers, 1.0), 700.0), length_and_one)
    edges = build.Floor(build.Divide(scaled_hertz, node.cast(hertz, DType.F64)))
    ends = build.Subtract(steps, 2)
    left, centre, right = (
        build.Slice(edges, node.list([k]), build.Unsqueeze(build.Add(ends, k), node.list([0])), node.list([1]))
        for k in range(3)
    )
    rows = build.Unsqueeze(counted(node, build.Add(build.Divide(size, 2), 1)), node.list([1]))
    rise, fall = _share(node, left, rows, centre), _share(node, right, rows, centre)
    rising = build.LogicalAnd(build.GreaterEqual(rows, left), build.LessEqual(rows, centre))
    falling = build.LogicalAnd(build.GreaterEqual(rows, centre), build.Less(rows, right))
    zero = build.const(0.0, DType.F64)
    weights = build.Select(falling, fall, build.Select(rising, rise, zero))
    return node.cast(weights, node.dtype("output_datatype", DType.F32))


def _mel(node: OnnxNode, hertz: OutPort) -> OutPort:
    """Return 2595 log10(1 + f / 700), a scalar."""
    build = node.build
    wide = node.cast(node.single(hertz), DType.F64)
    return build.Multiply(build.Log(build.Add(build.Divide(wide, 700.0), 1.0)), 2595 / np.log(10))


def _share(node: OnnxNode, end: OutPort, position: OutPort, top: OutPort) -> OutPort:
    """Return a ramp from 0 at the end to 1 at the top; 1 if both are the same position."""
    build = node.build
    span = build.Subtract(top, end)
    share = build.Divide(build.Subtract(position, end), span)
    return build.Select(build.Equal(span, 0.0), build.const(1.0, DType.F64), share)
