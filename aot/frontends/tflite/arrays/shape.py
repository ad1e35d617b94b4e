"""Shapes: changed, asked for, broadcast; tensors joined and taken apart."""

from __future__ import annotations

from aot.frontends.tf.arrays.shape import plain
from aot.frontends.tf.math.complex_numbers import Number, by_parts
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@tflite("RESHAPE", stored=True)
@by_parts
def reshape(node: TfliteNode, x: OutPort, target: OutPort | None = None) -> OutPort:
    """The shape is an input, or an option of old files."""
    if target is not None and target.type.rank == 1 and target.shape != (0,):
        return node.build.Reshape(x, target)
    new_shape = node.integers("new_shape", ())
    return node.build.Reshape(x, node.list([] if new_shape == (0,) else new_shape))


@tflite("STABLEHLO_RESHAPE", stored=True)
@by_parts
def reshaped(node: TfliteNode, x: OutPort) -> OutPort:
    return node.build.Reshape(x, node.list(node.output_tensors[0].shape))


@tflite("SQUEEZE", stored=True)
@by_parts
def squeeze(node: TfliteNode, x: OutPort) -> OutPort:
    return node.tf("Squeeze", x, squeeze_dims=node.integers("squeeze_dims", ()))


@tflite("SHAPE", stored=True, takes_complex=True)
def shape(node: TfliteNode, x: Number) -> OutPort:
    return node.build.ShapeOf(plain(x), output_type=node.output_type())


@tflite("RANK", stored=True, takes_complex=True)
def rank(node: TfliteNode, x: Number) -> OutPort:
    return node.build.const(plain(x).type.rank, DType.I32)


@tflite("FILL", stored=True)
@by_parts
def fill(node: TfliteNode, target: OutPort, value: OutPort) -> OutPort:
    return node.build.Broadcast(value, target)


@tflite("CONCATENATION")
@by_parts
def concatenation(node: TfliteNode, *xs: OutPort) -> OutPort:
    return joined(node, *xs)


def joined(node: TfliteNode, *xs: OutPort) -> OutPort:
    """Tensors along the axis of the options."""
    if not xs:
        raise ModelError(f"{node.kind}: there must be 1 input or more, got none")
    axis = node.axis(node.integer("axis", 0), xs[0].type.rank)
    return xs[0] if len(xs) == 1 else node.build.Concat(*xs, axis=axis)


@tflite("STABLEHLO_CONCATENATE", stored=True)
@by_parts
def concatenate(node: TfliteNode, *xs: OutPort) -> OutPort:
    axis = node.axis(node.integer("dimension", 0), xs[0].type.rank)
    return xs[0] if len(xs) == 1 else node.build.Concat(*xs, axis=axis)


@tflite("PACK", stored=True)
@by_parts
def pack(node: TfliteNode, *xs: OutPort) -> OutPort:
    return node.tf("Pack", *xs, axis=node.integer("axis", 0))


@tflite("UNPACK", stored=True)
@by_parts
def unpack(node: TfliteNode, x: OutPort) -> tuple[OutPort, ...]:
    return node.tf("Unpack", x, axis=node.integer("axis", 0), num=node.integer("num", 0))


@tflite("SPLIT", stored=True)
@by_parts
def split(node: TfliteNode, axis: OutPort, x: OutPort) -> tuple[OutPort, ...]:
    return node.tf("Split", axis, x, num_split=node.integer("num_splits", 0))


@tflite("STRIDED_SLICE", stored=True)
@by_parts
def strided_slice(node: TfliteNode, x: OutPort, begin: OutPort, end: OutPort, strides: OutPort) -> OutPort:
    """Slices with steps; ends are counted from the begins if `offset` is set."""
    names = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    if node.flag("offset"):
        end = node.build.Add(begin, end)
    return node.tf("StridedSlice", x, begin, end, strides, **{name: node.integer(name, 0) for name in names})


@tflite("STABLEHLO_SLICE", stored=True)
@by_parts
def slice_at(node: TfliteNode, x: OutPort) -> OutPort:
    begins, ends, by = (node.integers(n, ()) for n in ("start_indices", "limit_indices", "strides"))
    return node.build.Slice(x, node.list(begins), node.list(ends), node.list(by), node.list(range(x.type.rank)))


@tflite("DYNAMIC_UPDATE_SLICE", stored=True)
def dynamic_update_slice(node: TfliteNode, x: OutPort, part: OutPort, begins: OutPort) -> OutPort:
    return node.tf("XlaDynamicUpdateSlice", x, part, begins)


@tflite("ONE_HOT", stored=True)
def one_hot(node: TfliteNode, indices: OutPort, depth: OutPort, on: OutPort, off: OutPort) -> OutPort:
    return node.tf(
        "OneHot", indices, node.single(depth), node.single(on), node.single(off), axis=node.integer("axis", 0)
    )


@tflite("DENSIFY", stored=True)
def densify(node: TfliteNode, x: OutPort) -> OutPort:
    """Sparse constants are made dense when they are read."""
    return x


@tflite("STABLEHLO_IOTA", stored=True)
def iota(node: TfliteNode) -> OutPort:
    build, sizes = node.build, node.output_tensors[0].shape
    axis, dtype = node.integer("iota_dimension", 0), node.output_type()
    if not 0 <= axis < len(sizes):
        raise ModelError(f"{node.kind}: iota_dimension must be an axis of the output, got {axis}")
    line = build.Range(node.scalar(0), node.scalar(sizes[axis]), node.scalar(1), output_type=DType.I64)
    others = [a for a in range(len(sizes)) if a != axis]
    return build.Broadcast(node.cast(build.Unsqueeze(line, node.list(others)), dtype), node.list(sizes))


@tflite("STABLEHLO_BROADCAST_IN_DIM", stored=True)
@by_parts
def broadcast_in_dim(node: TfliteNode, x: OutPort, axes: OutPort) -> OutPort:
    """Axes of `x` become those axes of the output that `axes` names."""
    sizes, positions = node.output_tensors[0].shape, node.ints(axes, "axes")
    if len(positions) != x.type.rank or any(not 0 <= p < len(sizes) for p in positions):
        raise ModelError(f"{node.kind}: an axis of the output for each axis, got {positions}")
    others = [a for a in range(len(sizes)) if a not in positions]
    wide = node.build.Unsqueeze(x, node.list(others)) if others else x
    return node.build.Broadcast(wide, node.list(sizes))
