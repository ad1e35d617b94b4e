"""Shapes and sizes, and values that pass."""

from __future__ import annotations

from math import prod

from aot.frontends.onnx.arrays.axes import unsqueezed_at
from aot.frontends.tf.math.complex_numbers import Complex, Number, by_parts
from aot.frontends.tf.registry import Outputs, TfNode, Value, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

PASSING = (
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "CheckNumerics",
    "CheckNumericsV2",
    "DeepCopy",
    "PlaceholderWithDefault",
)


@tf(*PASSING, takes_complex=True)
def identity(node: TfNode, x: Value) -> Outputs:
    return Outputs([x])


@tf("Print", takes_complex=True)
def print_(node: TfNode, x: Value, *shown: Value) -> Outputs:
    """The first input passes; nothing is shown."""
    return Outputs([x])


@tf("IdentityN", takes_complex=True)
def identity_n(node: TfNode, *xs: Value) -> Outputs:
    return Outputs(xs)


@tf("EnsureShape")
def ensure_shape(node: TfNode, x: OutPort) -> OutPort:
    """Sizes that the shape names are checked, those that vary when the inference runs, and known from there on."""
    wanted = node.shape("shape")
    if wanted is None:
        return x
    node.refuse(len(wanted) != x.type.rank, f"the rank must be {len(wanted)}, got {x.type}")
    for axis, (n, m) in enumerate(zip(wanted, x.shape, strict=True)):
        if n >= 0 and n != m:
            node.refuse(isinstance(m, int), f"dimension {axis} must be {n}, got {m}")
            x = node.within(node.dims(x, [axis]), n, n, f"dimension {axis} is {n}", x)
            sizes = [n if a == axis else 0 for a in range(x.type.rank)]
            x = node.build.Reshape(x, node.list(sizes), special_zero=True)
    return x


def plain(x: Number) -> OutPort:
    """Return a tensor in the shape of `x`."""
    return x.real if isinstance(x, Complex) else x


@tf("Shape", takes_complex=True)
def shape(node: TfNode, x: Number) -> OutPort:
    return node.build.ShapeOf(plain(x), output_type=node.dtype("out_type"))


@tf("ShapeN", takes_complex=True)
def shape_n(node: TfNode, *xs: Number) -> tuple[OutPort, ...]:
    return tuple(shape(node, x) for x in xs)


@tf("Size", takes_complex=True)
def size(node: TfNode, x: Number) -> OutPort:
    port, dtype = plain(x), node.dtype("out_type")
    if port.type.is_static:
        return node.build.const(prod(port.type.static_shape), dtype)
    return node.build.ReduceProd(node.build.ShapeOf(port, output_type=dtype), node.list([0]))


@tf("Rank", takes_complex=True)
def rank(node: TfNode, x: Number) -> OutPort:
    return node.build.const(plain(x).type.rank, DType.I32)


@tf("Reshape")
@by_parts
def reshape(node: TfNode, x: OutPort, target: OutPort) -> OutPort:
    return node.build.Reshape(x, target)


@tf("Squeeze")
@by_parts
def squeeze(node: TfNode, x: OutPort) -> OutPort:
    axes = node.integers("squeeze_dims")
    return node.build.Squeeze(x, node.list(node.axes(axes, x.type.rank))) if axes else node.build.Squeeze(x)


@tf("ExpandDims")
@by_parts
def expand_dims(node: TfNode, x: OutPort, axis: OutPort) -> OutPort:
    if axis.value is None:
        return unsqueezed_at(node, x, node.build.Reshape(axis, node.list([1])))
    return node.build.Unsqueeze(x, node.list([node.axis(node.ints(axis, "axis")[0], x.type.rank + 1)]))


@tf("BroadcastTo")
@by_parts
def broadcast_to(node: TfNode, x: OutPort, target: OutPort) -> OutPort:
    return node.build.Broadcast(x, target)


@tf("BroadcastArgs")
def broadcast_args(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    """The shape that two shapes broadcast to: the larger size, but 0 beside 1."""
    build = node.build
    counts = [node.extent(p, 0, "the rank of shapes") for p in (a, b)]
    ones = [node.build.const([1] * (max(counts) - n), a.type.dtype) for n in counts]
    a, b = (build.Concat(o, p, axis=0) for o, p in zip(ones, (a, b), strict=True))
    return build.Select(build.Equal(a, node.like(1, a)), b, a)


@tf("BroadcastGradientArgs")
def broadcast_gradient_args(node: TfNode, a: OutPort, b: OutPort) -> tuple[OutPort, OutPort]:
    """The axes along which gradients of both operands are summed; shapes must be known."""
    shapes = [node.ints(p, "shapes") for p in (a, b)]
    count = max(map(len, shapes))
    first, second = ((1,) * (count - len(s)) + s for s in shapes)

    def ones(sizes: tuple[int, ...]) -> OutPort:
        return node.build.const([i for i in range(count) if sizes[i] == 1], DType.I32)

    return ones(first), ones(second)


@tf("Fill", takes_complex=True)
def fill(node: TfNode, target: OutPort, value: Number) -> Number:
    if isinstance(value, Complex):
        return Complex(*(node.build.Broadcast(p, target) for p in (value.real, value.imag)))
    return node.build.Broadcast(value, target)


@tf("Pack")
@by_parts
def pack(node: TfNode, *xs: OutPort) -> OutPort:
    """Tensors of equal shapes along a new axis."""
    axis = node.axis(node.integer("axis"), xs[0].type.rank + 1)
    parts = [node.build.Unsqueeze(x, node.list([axis])) for x in xs]
    return parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=axis)


@tf("Unpack")
@by_parts
def unpack(node: TfNode, x: OutPort) -> tuple[OutPort, ...]:
    """The slices of an axis, without it."""
    axis, count = node.axis(node.integer("axis"), x.type.rank), node.integer("num")
    if not count:
        return ()
    first = node.build.Split(x, node.scalar(axis), num_splits=count, outputs=count)
    return tuple(node.build.Squeeze(p, node.list([axis])) for p in first.node.out_ports().values())


@tf("Concat", "ConcatV2")
@by_parts
def concat(node: TfNode, *xs: OutPort) -> OutPort:
    """The axis is the first input of Concat, the last one of ConcatV2."""
    along, parts = (xs[0], xs[1:]) if node.kind == "Concat" else (xs[-1], xs[:-1])
    axis = node.axis(node.ints(along, "axis")[0], parts[0].type.rank)
    return parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=axis)


@tf("ConcatOffset")
def concat_offset(node: TfNode, axis: OutPort, *shapes: OutPort) -> tuple[OutPort, ...]:
    """The offset of each part in the whole."""
    build, along = node.build, node.ints(axis, "concat_dim")[0]
    count = node.extent(shapes[0], 0, "the rank of shapes")
    mask = build.const([int(i == along % count) for i in range(count)], shapes[0].type.dtype)
    starts = [build.const([0] * count, shapes[0].type.dtype)]
    for part in shapes[:-1]:
        starts.append(build.Add(starts[-1], build.Multiply(part, mask)))
    return tuple(starts)
