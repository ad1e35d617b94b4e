"""Fourier transforms."""

from __future__ import annotations

from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from runtime.errors import UnsupportedError


@onnx("DFT")
def dft(node: Call, x: OutPort, length: OutPort | None = None, axis: OutPort | None = None) -> OutPort:
    """The axis is an attribute before opset 20."""
    rank = x.type.rank
    if axis is not None:
        along = node.axis(node.ints(axis, "axis")[0], rank)
    else:
        along = node.axis(node.integer("axis", 1 if node.opset < 20 else -2), rank)
    real, inverse, onesided = x.shape[-1] == 1, node.flag("inverse"), node.flag("onesided")
    axes = node.list([along])
    size = () if length is None else (node.list(node.ints(length, "dft_length")[:1]),)
    build = node.build
    if onesided and inverse:
        found = build.IRDFT(x, axes, *size)
        return build.Unsqueeze(found, node.list([rank - 1]))
    if onesided:
        node.refuse(not real, "a one-sided transform needs a real signal")
        return build.RDFT(build.Squeeze(x, node.list([rank - 1])), axes, *size)
    if real:
        x = build.Pad(x, node.list([0] * rank), node.list([*[0] * (rank - 1), 1]), node.like(0, x))
    return (build.IDFT if inverse else build.DFT)(x, axes, *size)


@onnx("STFT")
def stft(node: Call, *inputs: OutPort) -> OutPort:
    signal, step, *rest = inputs
    window, length = (*rest, None, None)[:2]
    build = node.build
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
