"""Data that moves."""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from aot.opset.blocks import DepthMode
from aot.opset.padding import PadMode
from runtime.abi import DType
from runtime.errors import ModelError


@onnx("Transpose")
def transpose(node: Call, x: OutPort) -> OutPort:
    return node.build.Transpose(x, node.list(node.integers("perm", tuple(reversed(range(x.type.rank))))))


@onnx("Concat")
def concat(node: Call, *xs: OutPort) -> OutPort:
    return xs[0] if len(xs) == 1 else node.build.Concat(*xs, axis=node.integer("axis"))


@onnx("Split")
def split(node: Call, x: OutPort, lengths: OutPort | None = None) -> tuple[OutPort, ...]:
    """As long as given, or equally long; the last part may be shorter."""
    axis, count = node.axis(node.integer("axis", 0), x.type.rank), len(node.outputs)
    if lengths is None and node.has("split"):
        lengths = node.list(node.integers("split"))
    extent = x.shape[axis]
    if lengths is None and isinstance(extent, int):
        part = -(-extent // count)
        lengths = node.list([min(part, max(extent - i * part, 0)) for i in range(count)])
    if lengths is None:
        first = node.build.Split(x, node.scalar(axis), num_splits=count, outputs=count)
    else:
        first = node.build.VariadicSplit(x, node.scalar(axis), lengths, outputs=count)
    return tuple(first.node.out_ports().values())


@onnx("Slice")
def slice(
    node: Call, x: OutPort, starts: OutPort | None = None, ends: OutPort | None = None,
    axes: OutPort | None = None, steps: OutPort | None = None,
) -> OutPort:  # fmt: skip
    """Bounds are attributes before opset 10."""
    if starts is None or ends is None:
        begin, end = node.integers("starts"), node.integers("ends")
        chosen = node.integers("axes", range(len(begin)))
        starts, ends, axes = node.list(begin), node.list(end), node.list(chosen)
    count = starts.shape[0]
    if not isinstance(count, int):
        raise ModelError("Slice: the number of axes must be known")
    if axes is None:
        axes = node.list(range(count))
    if steps is None:
        steps = node.list([1] * count)
    return node.build.Slice(x, *(node.cast(p, DType.I64) for p in (starts, ends, steps, axes)))


PAD_MODES = {"constant": PadMode.CONSTANT, "edge": PadMode.EDGE, "reflect": PadMode.REFLECT}


@onnx("Pad")
def pad(
    node: Call, x: OutPort, pads: OutPort | None = None, value: OutPort | None = None, axes: OutPort | None = None
) -> OutPort:
    """Pads are an attribute before opset 11."""
    build, rank, mode = node.build, x.type.rank, node.text("mode", "constant")
    if mode == "wrap":
        return _wrapped(node, x, pads, axes)
    chosen = node.choice("mode", PAD_MODES, "constant")
    if pads is None:
        fill, given = node.like(node.number("value", 0.0), x), node.integers("pads")
        return build.Pad(x, node.list(given[:rank]), node.list(given[rank:]), fill, pad_mode=chosen)
    fill = node.like(0, x) if value is None else node.build.Squeeze(value) if value.type.rank else value
    begins, ends = _pads(node, pads, axes, rank)
    return build.Pad(x, begins, ends, node.cast(fill, x.type.dtype), pad_mode=chosen)


def _pads(node: Call, pads: OutPort, axes: OutPort | None, rank: int) -> tuple[OutPort, OutPort]:
    if axes is None and pads.value is None:
        half = (node.list([v]) for v in (0, rank, 1, 0))
        rest = (node.list([v]) for v in (rank, 2 * rank, 1, 0))
        return node.build.Slice(pads, *half), node.build.Slice(pads, *rest)
    chosen = range(rank) if axes is None else [node.axis(a, rank) for a in node.ints(axes, "axes")]
    given = node.known(pads, "pads").reshape(-1).tolist()
    if len(given) != 2 * len(chosen):
        raise ModelError(f"Pad: two pads for each axis, got {len(given)} for {len(chosen)} axes")
    both = np.zeros((2, rank), object)
    for i, a in enumerate(chosen):
        both[:, a] = given[i], given[i + len(chosen)]
    return node.list(both[0]), node.list(both[1])


def _wrapped(node: Call, x: OutPort, pads: OutPort | None, axes: OutPort | None) -> OutPort:
    """Each axis is gathered modulo its size."""
    rank = x.type.rank
    given = node.integers("pads") if pads is None else node.ints(pads, "pads")
    chosen = range(rank) if axes is None else [node.axis(a, rank) for a in node.ints(axes, "axes")]
    for i, a in enumerate(chosen):
        n = x.type.static_shape[a]
        places = np.arange(-given[i], n + given[i + len(chosen)]) % n
        x = node.build.Gather(x, node.list(places.tolist()), node.scalar(a))
    return x


@onnx("Tile")
def tile(node: Call, x: OutPort, repeats: OutPort) -> OutPort:
    return node.build.Tile(x, repeats)


@onnx("DepthToSpace")
def depth_to_space(node: Call, x: OutPort) -> OutPort:
    mode = node.choice("mode", {"DCR": DepthMode.BLOCKS_FIRST, "CRD": DepthMode.DEPTH_FIRST}, "DCR")
    return node.build.DepthToSpace(x, block_size=node.integer("blocksize"), mode=mode)


@onnx("SpaceToDepth")
def space_to_depth(node: Call, x: OutPort) -> OutPort:
    mode = node.choice("mode", {"DCR": DepthMode.BLOCKS_FIRST, "CRD": DepthMode.DEPTH_FIRST}, "DCR")
    return node.build.SpaceToDepth(x, block_size=node.integer("blocksize"), mode=mode)


@onnx("ReverseSequence")
def reverse_sequence(node: Call, x: OutPort, lengths: OutPort) -> OutPort:
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    return node.build.ReverseSequence(x, lengths, batch_axis=batch, seq_axis=time)


@onnx("Trilu")
def trilu(node: Call, x: OutPort, k: OutPort | None = None) -> OutPort:
    """x where row + k <= column, or the other way round."""
    build, rank = node.build, x.type.rank
    kept = triangle(node, x, node.scalar(0) if k is None else k, node.flag("upper", True))
    return build.Select(kept, x, node.like(0, x)) if rank else x


def triangle(node: Call, x: OutPort, k: OutPort, upper: bool) -> OutPort:
    """[rows, columns] of booleans for the last two axes of `x`."""
    build, zero, one = node.build, node.scalar(0), node.scalar(1)

    def count(axis: int) -> OutPort:
        size = build.Squeeze(node.dims(x, [x.type.rank + axis]), node.list([0]))
        return build.Range(zero, size, one, output_type=DType.I64)

    k = build.Squeeze(k) if k.type.rank else k
    rows, columns = build.Add(build.Unsqueeze(count(-2), node.list([1])), k), count(-1)
    return build.GreaterEqual(columns, rows) if upper else build.LessEqual(columns, rows)


@onnx("CenterCropPad")
def center_crop_pad(node: Call, x: OutPort, size: OutPort) -> OutPort:
    """The middle of `x`, or `x` in the middle of zeros."""
    rank, wanted = x.type.rank, node.ints(size, "shape")
    axes = [node.axis(a, rank) for a in node.integers("axes", range(rank))]
    begins, ends, starts, stops = ([0] * rank for _ in range(4))
    for a, n in enumerate(x.type.static_shape):
        m = wanted[axes.index(a)] if a in axes else n
        starts[a], begins[a] = max((n - m) // 2, 0), max((m - n) // 2, 0)
        stops[a], ends[a] = starts[a] + min(m, n), max(m - n, 0) - begins[a]
    bounds = (node.list(v) for v in (starts, stops, [1] * rank, range(rank)))
    return node.build.Pad(node.build.Slice(x, *bounds), node.list(begins), node.list(ends), node.like(0, x))
