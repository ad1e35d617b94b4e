"""Operations that only move data."""

from __future__ import annotations

from aot.frontends.onnx.arrays.axes import OPEN_END, spread
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.movement.blocks import DepthMode
from aot.opset.movement.padding import PadMode
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@onnx("Transpose")
def transpose(node: OnnxNode, x: OutPort) -> OutPort:
    return node.build.Transpose(x, node.list(node.integers("perm", tuple(reversed(range(x.type.rank))))))


@onnx("Concat")
def concat(node: OnnxNode, *xs: OutPort, axis: int) -> OutPort:
    return xs[0] if len(xs) == 1 else node.build.Concat(*xs, axis=axis)


@onnx("Split")
def split(node: OnnxNode, x: OutPort, lengths: OutPort | None = None) -> tuple[OutPort, ...]:
    """Cut `x` into parts of given or equal length; from opset 18 on the last part may be shorter."""
    build, axis, count = node.build, node.axis(node.integer("axis", 0), x.type.rank), len(node.outputs)
    if node.has("num_outputs") and node.integer("num_outputs") != count:
        raise ModelError(f"Split: num_outputs must be {count}, as outputs are, got {node.integer('num_outputs')}")
    if lengths is None and node.has("split"):
        lengths = node.list(node.integers("split"))
    if lengths is None and node.opset < 18:
        first = build.Split(x, node.scalar(axis), num_splits=count, outputs=count)
        return tuple(first.node.out_ports().values())
    if lengths is None:
        part = build.Divide(build.Add(node.dims(x, [axis]), count - 1), count)
        lengths = build.Concat(*[part] * (count - 1), node.list([-1]), axis=0)
    else:
        lengths = node.within(lengths, 0, OPEN_END, "lengths must not be negative")
    first = build.VariadicSplit(x, node.scalar(axis), lengths, outputs=count)
    return tuple(first.node.out_ports().values())


@onnx("Slice")
def slice(
    node: OnnxNode,
    x: OutPort,
    starts: OutPort | None = None,
    ends: OutPort | None = None,
    axes: OutPort | None = None,
    steps: OutPort | None = None,
) -> OutPort:
    """Convert to Slice; bounds are attributes before opset 10."""
    if starts is None or ends is None:
        begin, end = node.integers("starts"), node.integers("ends")
        dims = node.integers("axes", range(len(begin)))
        starts, ends, axes = node.list(begin), node.list(end), node.list(dims)
    counts = {p.shape[0] for p in (starts, ends, axes, steps) if p is not None and p.type.rank == 1}
    count = next((n for n in counts if isinstance(n, int)), 1)  # bounds taken out of a tensor at a place are one number
    node.refuse(count != 1 and not all(isinstance(n, int) for n in counts), "the number of axes must be known")
    starts, ends, axes, steps = (_pinned(node, p) for p in (starts, ends, axes, steps))
    assert starts is not None and ends is not None
    if axes is None:
        axes = node.list(range(count))
    if steps is None:
        steps = node.list([1] * count)
    if axes.value is None:
        rank = x.type.rank
        defaults = (node.list([v] * rank) for v in (0, OPEN_END, 1))
        bounds = zip((starts, ends, steps), defaults, strict=True)
        starts, ends, steps = (spread(node, p, axes, fill, rank) for p, fill in bounds)
        axes = node.list(range(rank))
    return node.build.Slice(x, *(node.cast(p, DType.I64) for p in (starts, ends, steps, axes)))


def _pinned(node: OnnxNode, bound: OutPort | None) -> OutPort | None:
    """Return a bound of a slice as one number, checked, if its size is not known."""
    if bound is None or bound.type.rank != 1 or isinstance(bound.shape[0], int):
        return bound
    return node.build.Unsqueeze(node.single(bound), node.list([0]))


MAX_DIAGONAL = float(1 << 40)  # a diagonal this far away is outside of any matrix, and sums with it do not overflow
PAD_MODES = {"constant": PadMode.CONSTANT, "edge": PadMode.EDGE, "reflect": PadMode.REFLECT}


@onnx("Pad")
def pad(
    node: OnnxNode, x: OutPort, pads: OutPort | None = None, value: OutPort | None = None, axes: OutPort | None = None
) -> OutPort:
    """Convert to Pad; pads are an attribute before opset 11."""
    build, rank, mode = node.build, x.type.rank, node.text("mode", "constant")
    if mode == "wrap":
        return _wrapped(node, x, pads, axes)
    chosen = node.choice("mode", PAD_MODES, "constant")
    if pads is None:
        fill, amounts = node.like(node.number("value", 0.0), x), node.integers("pads")
        return build.Pad(x, node.list(amounts[:rank]), node.list(amounts[rank:]), fill, pad_mode=chosen)
    fill = node.like(0, x) if value is None else node.single(value)
    begins, ends = _pads(node, pads, axes, rank)
    return build.Pad(x, begins, ends, node.cast(fill, x.type.dtype), pad_mode=chosen)


def _pads(node: OnnxNode, pads: OutPort, axes: OutPort | None, rank: int) -> tuple[OutPort, OutPort]:
    axes = node.list(range(rank)) if axes is None else axes
    halves = node.build.Split(node.cast(pads, DType.I64), node.scalar(0), num_splits=2, outputs=2)
    if pads.type.is_static and axes.type.is_static and pads.type.static_shape[0] != 2 * axes.type.static_shape[0]:
        counts = f"{pads.type.static_shape[0]} for {axes.type.static_shape[0]} axes"
        raise ModelError(f"Pad: there must be two pads for each axis, got {counts}")
    begins, ends = (spread(node, p, axes, node.list([0] * rank), rank) for p in halves.node.out_ports().values())
    return begins, ends


def _wrapped(node: OnnxNode, x: OutPort, pads: OutPort | None, axes: OutPort | None) -> OutPort:
    """Pad cyclically: gather each axis modulo its size, after negative pads have cut off elements."""
    build, rank = node.build, x.type.rank
    begins, ends = _pads(node, node.list(node.integers("pads")) if pads is None else pads, axes, rank)
    for a in range(rank):
        size, low, high = (_element(node, p, k) for p, k in ((node.dims(x, [a]), 0), (begins, a), (ends, a)))
        before, behind = (build.Maximum(p, 0) for p in (low, high))
        cut = build.Subtract(before, low)
        extent = build.Add(build.Add(size, build.Minimum(low, 0)), build.Minimum(high, 0))
        extent = node.within(extent, 1, OPEN_END, "an axis that is repeated has elements")
        positions = build.Range(
            build.Negative(before), build.Add(extent, behind), node.scalar(1), output_type=DType.I64
        )
        x = build.Gather(x, build.Add(build.FloorMod(positions, extent), cut), node.scalar(a))
    return x


def _element(node: OnnxNode, values: OutPort, position: int) -> OutPort:
    return node.build.Gather(values, node.scalar(position), node.scalar(0))


@onnx("Tile")
def tile(node: OnnxNode, x: OutPort, repeats: OutPort) -> OutPort:
    return node.build.Tile(x, repeats)


@onnx("DepthToSpace")
def depth_to_space(node: OnnxNode, x: OutPort, *, blocksize: int) -> OutPort:
    mode = node.choice("mode", {"DCR": DepthMode.BLOCKS_FIRST, "CRD": DepthMode.DEPTH_FIRST}, "DCR")
    return node.build.DepthToSpace(x, block_size=blocksize, mode=mode)


@onnx("SpaceToDepth")
def space_to_depth(node: OnnxNode, x: OutPort, *, blocksize: int) -> OutPort:
    mode = node.choice("mode", {"DCR": DepthMode.BLOCKS_FIRST, "CRD": DepthMode.DEPTH_FIRST}, "DCR")
    return node.build.SpaceToDepth(x, block_size=blocksize, mode=mode)


@onnx("ReverseSequence")
def reverse_sequence(
    node: OnnxNode, x: OutPort, lengths: OutPort, *, batch_axis: int = 1, time_axis: int = 0
) -> OutPort:
    return node.build.ReverseSequence(x, lengths, batch_axis=batch_axis, seq_axis=time_axis)


@onnx("Trilu")
def trilu(node: OnnxNode, x: OutPort, k: OutPort | None = None, *, upper: bool = True) -> OutPort:
    """x where row + k <= column (upper), or row + k >= column (lower); 0 elsewhere."""
    build, rank = node.build, x.type.rank
    mask = triangle(node, x, node.scalar(0) if k is None else k, upper)
    return build.Select(mask, x, node.like(0, x)) if rank else x


def triangle(node: OnnxNode, x: OutPort, k: OutPort, upper: bool) -> OutPort:
    """Return a mask [rows, columns] of booleans for the last two axes of `x`."""
    build, zero, one = node.build, node.scalar(0), node.scalar(1)

    def count(axis: int) -> OutPort:
        size = build.Squeeze(node.dims(x, [x.type.rank + axis]), node.list([0]))
        return build.Range(zero, size, one, output_type=DType.I64)

    k = node.single(k)
    k = k if k.value is not None else build.Clamp(node.cast(k, DType.I64), min=-MAX_DIAGONAL, max=MAX_DIAGONAL)
    rows, columns = build.Add(build.Unsqueeze(count(-2), node.list([1])), k), count(-1)
    return build.GreaterEqual(columns, rows) if upper else build.LessEqual(columns, rows)


@onnx("CenterCropPad")
def center_crop_pad(node: OnnxNode, x: OutPort, size: OutPort) -> OutPort:
    """Crop the middle of `x`, or pad it with zeros on both sides."""
    build, rank = node.build, x.type.rank
    sizes, axes = node.dims(x, range(rank)), node.list(node.integers("axes", range(rank)))
    size = node.within(size, 0, OPEN_END, "sizes must not be negative")
    target_sizes = spread(node, size, axes, sizes, rank)
    less, more = (build.Maximum(build.Subtract(*p), 0) for p in ((sizes, target_sizes), (target_sizes, sizes)))
    starts, begins = (build.Divide(p, 2) for p in (less, more))
    stops = build.Add(starts, build.Minimum(target_sizes, sizes))
    middle = build.Slice(x, starts, stops, node.list([1] * rank), node.list(range(rank)))
    return build.Pad(middle, begins, build.Subtract(more, begins), node.like(0, x))
