"""Images [batch, height, width, channels] in other sizes, and boxes cut out of them."""

from __future__ import annotations

from collections.abc import Callable

from aot.frontends.tf.neural.layout import image, to_channels_first, to_channels_last
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.image.resize import ShapeFrom
from aot.opset.image.resize_taps import Sampling, axes_of, resampled
from aot.opset.image.resize_weights import Coordinates, Mode, Rounding
from aot.runtime.abi import DType

TABLE = 1024.0  # steps between two pixels: TensorFlow has cubic weights in a table of so many entries
SPATIAL = (2, 3)  # axes of images with channels first


def _sizes(node: TfNode, size: OutPort) -> OutPort:
    return node.cast(size, DType.I64)


def _resized(
    node: TfNode, x: OutPort, size: OutPort, mode: Mode, coordinates: Coordinates, rounding: Rounding
) -> OutPort:
    """Interpolated by one operation where the sizes are known, else by weighted neighbours."""
    channels_first, target = to_channels_first(node, x, True), _sizes(node, size)
    if target.value is not None and target.value.dtype != object:
        y = node.build.Interpolate_11(
            channels_first,
            target,
            node.list(SPATIAL),
            mode=mode,
            shape_calculation_mode=ShapeFrom.SIZES,
            coordinate_transformation_mode=coordinates,
            nearest_mode=rounding,
        )
    else:
        how = Sampling(
            "linear" if mode is Mode.LINEAR else "nearest", coordinates.value, rounding.value, 0.0, False, False, 0.0
        )
        y = resampled(node.build, channels_first, axes_of(node.build, channels_first, SPATIAL, target, True, None), how)
    return to_channels_last(node, y, True)


@tf("ResizeBilinear")
def resize_bilinear(node: TfNode, x: OutPort, size: OutPort) -> OutPort:
    """The result is f32; without flags, element i lies at i * (input / output)."""
    coordinates = Coordinates.ASYMMETRIC
    if node.flag("align_corners"):
        coordinates = Coordinates.ALIGN_CORNERS
    elif node.flag("half_pixel_centers"):
        coordinates = Coordinates.HALF_PIXEL
    wide = node.cast(image(node, x, 4), DType.F32)
    return _resized(node, wide, size, Mode.LINEAR, coordinates, Rounding.FLOOR)


@tf("ResizeNearestNeighbor")
def resize_nearest(node: TfNode, x: OutPort, size: OutPort) -> OutPort:
    coordinates, rounding = Coordinates.ASYMMETRIC, Rounding.FLOOR
    if node.flag("align_corners"):
        coordinates, rounding = Coordinates.ALIGN_CORNERS, Rounding.ROUND_PREFER_CEIL
    elif node.flag("half_pixel_centers"):
        coordinates = Coordinates.TF_HALF_PIXEL_FOR_NN
    return _resized(node, image(node, x, 4), size, Mode.NEAREST, coordinates, rounding)


def _places(node: TfNode, x: OutPort, axis: int, size: OutPort) -> tuple[OutPort, OutPort, OutPort]:
    """Positions of the output's elements in the input, in f32; the last index of the input; the scale."""
    build = node.build
    extent = node.cast(node.size(x, axis), DType.F32)
    count = build.Gather(size, node.scalar(axis - 1), node.scalar(0))
    wide, last = node.cast(count, DType.F32), build.Subtract(extent, 1.0)
    scale = build.Divide(extent, wide)
    if node.flag("align_corners"):
        inner = build.Divide(last, build.Maximum(build.Subtract(wide, 1.0), 1.0))
        scale = build.Select(build.Greater(wide, 1.0), inner, scale)
    at = node.cast(build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64), DType.F32)
    if node.flag("half_pixel_centers"):
        return build.Subtract(build.Multiply(build.Add(at, 0.5), scale), 0.5), last, scale
    return build.Multiply(at, scale), last, scale


@tf("ResizeBicubic")
def resize_bicubic(node: TfNode, x: OutPort, size: OutPort) -> OutPort:
    """Keys's kernel, with -0.5 and without pixels outside for half pixels, else with -0.75."""
    y, target = node.cast(image(node, x, 4), DType.F32), _sizes(node, size)
    for axis in (1, 2):
        where, last, _ = _places(node, y, axis, target)
        y = _cubic(node, y, axis, where, last)
    return y


def _cubic(node: TfNode, x: OutPort, axis: int, where: OutPort, last: OutPort) -> OutPort:
    build, half = node.build, node.flag("half_pixel_centers")
    a = -0.5 if half else -0.75
    low = build.Floor(where)
    share = build.Divide(build.Round(build.Multiply(build.Subtract(where, low), TABLE)), TABLE)

    def polynomial(d: OutPort, *factors: float) -> OutPort:
        value = node.like(factors[0], d)
        for factor in factors[1:]:
            value = build.Add(build.Multiply(value, d), factor)
        return value

    taps: list[tuple[OutPort, OutPort]] = []
    for step in range(-1, 3):
        d = build.Abs(build.Subtract(share, float(step)))
        near = step in (0, 1)
        weight = polynomial(d, a + 2, -(a + 3), 0.0, 1.0) if near else polynomial(d, a, -5 * a, 8 * a, -4 * a)
        position = build.Add(low, float(step))
        clamped = build.Minimum(build.Maximum(position, 0.0), last)
        if half:
            weight = build.Select(build.Equal(position, clamped), weight, node.like(0, weight))
        taps.append((node.cast(clamped, DType.I64), weight))
    total = taps[0][1]
    for _, weight in taps[1:]:
        total = build.Add(total, weight)
    y: OutPort | None = None
    for position, weight in taps:
        weight = build.Divide(weight, total) if half else weight
        part = build.Gather(x, position, node.scalar(axis))
        part = build.Multiply(part, build.Unsqueeze(weight, node.list(range(1, 4 - axis))))
        y = part if y is None else build.Add(y, part)
    assert y is not None
    return y


@tf("ResizeArea")
def resize_area(node: TfNode, x: OutPort, size: OutPort) -> OutPort:
    """The mean over the area that an element covers, as a product with shares of rows, then of columns."""
    build = node.build
    y, target = node.cast(image(node, x, 4), DType.F32), _sizes(node, size)
    for axis in (1, 2):
        where, last, scale = _places(node, y, axis, target)
        begins = build.Unsqueeze(where, node.list([1]))
        ends = build.Add(begins, scale)
        count = node.size(y, axis)
        pixels = node.cast(build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64), DType.F32)
        right = build.Minimum(build.Add(pixels, 1.0), ends)
        share = build.Maximum(build.Subtract(right, build.Maximum(pixels, begins)), 0.0)
        rest = build.Maximum(build.Subtract(ends, build.Maximum(build.Add(last, 1.0), begins)), 0.0)
        share = build.Add(
            share, build.Select(build.Equal(pixels, last), rest, node.like(0, rest))
        )  # elements past the end count as edge
        share = build.Divide(share, scale)
        y = weighed(node, y, axis, share)
    return y


def weighed(node: TfNode, x: OutPort, axis: int, share: OutPort) -> OutPort:
    """Sums over height (axis 1) or width (axis 2), by shares [output, input]."""
    build = node.build
    order = node.list([0, 2, 3, 1] if axis == 1 else [0, 1, 3, 2])
    back = node.list([0, 3, 1, 2] if axis == 1 else [0, 1, 3, 2])
    return build.Transpose(build.MatMul(build.Transpose(x, order), share, transpose_b=True), back)


@tf("CropAndResize")
def crop_and_resize(node: TfNode, x: OutPort, boxes: OutPort, images: OutPort, size: OutPort) -> OutPort:
    """Boxes (y0, x0, y1, x1) in fractions of their image; places outside have the extrapolation value."""
    build, method = node.build, node.text("method")
    node.refuse(method not in ("bilinear", "nearest"), f"method must be bilinear or nearest, got {method!r}")
    x = node.cast(image(node, x, 4), DType.F32)
    sizes, one = _sizes(node, size), node.list([1])
    axes = [_crop_places(node, x, boxes, sizes, k) for k in range(2)]
    inside = [build.LogicalAnd(build.GreaterEqual(at, 0.0), build.LessEqual(at, last)) for at, last in axes]
    flat = build.Reshape(x, build.Concat(node.list([-1]), node.dims(x, [3]), axis=0))
    height, width = (node.size(x, a) for a in (1, 2))
    first = build.Multiply(node.cast(images, DType.I64), height)
    first = build.Unsqueeze(first, one)

    def pixels(rows: OutPort, columns: OutPort) -> OutPort:
        at = build.Multiply(build.Add(first, node.cast(rows, DType.I64)), width)
        positions = build.Add(build.Unsqueeze(at, node.list([2])), build.Unsqueeze(node.cast(columns, DType.I64), one))
        return build.Gather(flat, positions, node.scalar(0))

    clamped = [build.Minimum(build.Maximum(at, 0.0), last) for at, last in axes]
    y = pixels(*(build.Round(p) for p in clamped)) if method == "nearest" else _blended(node, clamped, pixels)
    both = build.LogicalAnd(
        build.Unsqueeze(inside[0], node.list([2, 3])), build.Unsqueeze(inside[1], node.list([1, 3]))
    )
    return build.Select(both, y, node.like(node.number("extrapolation_value"), y))


def _crop_places(node: TfNode, x: OutPort, boxes: OutPort, sizes: OutPort, k: int) -> tuple[OutPort, OutPort]:
    """[boxes, size]: where the elements of a crop lie along height or width; the last index there."""
    build = node.build
    last = build.Subtract(node.cast(node.size(x, k + 1), DType.F32), 1.0)
    low, high = (
        build.Unsqueeze(build.Gather(boxes, node.scalar(i), node.scalar(1)), node.list([1])) for i in (k, k + 2)
    )
    count = build.Gather(sizes, node.scalar(k), node.scalar(0))
    at = node.cast(build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64), DType.F32)
    rest = build.Maximum(build.Subtract(node.cast(count, DType.F32), 1.0), 1.0)
    step = build.Divide(build.Multiply(build.Subtract(high, low), last), rest)
    many = build.Add(build.Multiply(low, last), build.Multiply(at, step))
    middle = build.Multiply(build.Multiply(build.Add(low, high), 0.5), last)
    return build.Select(build.Greater(count, 1), many, middle), last


def _blended(node: TfNode, positions: list[OutPort], pixels: Callable[[OutPort, OutPort], OutPort]) -> OutPort:
    """Between the four pixels around each place."""
    build = node.build
    lows, highs = [build.Floor(p) for p in positions], [build.Ceiling(p) for p in positions]
    down, right = (
        build.Unsqueeze(build.Subtract(at, low), node.list(axes))
        for at, low, axes in zip(positions, lows, ([2, 3], [1, 3]), strict=True)
    )

    def between(a: OutPort, b: OutPort, share: OutPort) -> OutPort:
        return build.Add(a, build.Multiply(build.Subtract(b, a), share))

    rows = [between(pixels(r, lows[1]), pixels(r, highs[1]), right) for r in (lows[0], highs[0])]
    return between(rows[0], rows[1], down)
