"""Numbers from nothing."""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.elementwise import CODES
from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from runtime.errors import UnsupportedError


@onnx("Range")
def range_(node: Call, start: OutPort, limit: OutPort, step: OutPort) -> OutPort:
    plain = (node.build.Squeeze(p) if p.type.rank else p for p in (start, limit, step))
    return node.build.Range(*plain, output_type=start.type.dtype)


@onnx("EyeLike")
def eye_like(node: Call, x: OutPort) -> OutPort:
    rows, columns = x.type.static_shape
    dtype = CODES[node.integer("dtype")] if node.has("dtype") else x.type.dtype
    return node.build.const(np.eye(rows, columns, node.integer("k", 0)), dtype)


WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0), "HammingWindow": (25 / 46, 21 / 46, 0.0), "BlackmanWindow": (0.42, 0.5, 0.08),
}  # fmt: skip


@onnx(*WINDOWS)
def window(node: Call, size: OutPort) -> OutPort:
    """Of a size that is known at compile time."""
    count = node.ints(size, "size")[0]
    dtype, periodic = CODES[node.integer("output_datatype", 1)], node.flag("periodic", True)
    angle = 2 * np.pi * np.arange(count) / (count if periodic else count - 1)
    a, b, c = WINDOWS[node.kind]
    return node.build.const(a - b * np.cos(angle) + c * np.cos(2 * angle), dtype)


@onnx("MelWeightMatrix")
def mel_weight_matrix(
    node: Call, bins: OutPort, length: OutPort, rate: OutPort, low: OutPort, high: OutPort
) -> OutPort:
    """Triangles that are equally wide in mel."""
    count, size, hertz = (int(node.known(p, "input").reshape(-1)[0]) for p in (bins, length, rate))
    edges = [2595 * np.log10(1 + float(node.known(p, "input").reshape(-1)[0]) / 700) for p in (low, high)]
    mels = np.arange(count + 2) * ((edges[1] - edges[0]) / (count + 2)) + edges[0]
    places = ((size + 1) * (700 * (10 ** (mels / 2595) - 1)) // hertz).astype(int)
    out = np.zeros((size // 2 + 1, count))
    for i in range(count):
        left, centre, right = places[i : i + 3]
        if centre == left:
            out[centre, i] = 1
        else:
            out[left : centre + 1, i] = (np.arange(left, centre + 1) - left) / (centre - left)
        if right > centre:
            out[centre:right, i] = (right - np.arange(centre, right)) / (right - centre)
    return node.build.const(out, CODES[node.integer("output_datatype", 1)])


RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")


@onnx(*RANDOM)
def random(node: Call, *inputs: OutPort) -> OutPort:
    raise UnsupportedError(f"{node.kind}: random numbers differ from runtime to runtime: give them as an input")


