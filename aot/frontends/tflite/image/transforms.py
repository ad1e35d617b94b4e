"""MediaPipe's custom operations of landmarks: an affine matrix of a region, and images and points moved by a matrix.

Options are maps of flexbuffers. Matrices are [1, 4, 4], of which the first two rows count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.tflite.custom_options import flexible, real, whole, wholes
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

MATRIX = (1, 4, 4)


@dataclass(frozen=True, slots=True)
class _Crop:
    """Numbers that make a matrix of a turned box.

    A place of the image is rows . (place of the crop - half) + factor * centre, each along x and y, with
    rows = diag(outer) . turn back . diag(scale * size of the box).
    """

    turn: OutPort
    subset: list[int]
    scale: list[float]
    half: list[float]
    outer: Sequence[float] = (1.0, 1.0)
    factor: Sequence[float] = (1.0, 1.0)


@tflite("CUSTOM.Landmarks2TransformMatrix")
def region_of_landmarks(node: TfliteNode, x: OutPort) -> OutPort:
    """The matrix that takes places of a crop to those of the image.

    The crop is the box around a subset of the landmarks [1, count, 3], turned so that two of them stand at an angle.
    The first version has landmarks [1, 1, 1, 3 count] in a range, and gives places of pixels' centres.
    """
    facts = flexible(node)
    is_first = "subset" in facts
    points = node.build.Reshape(x, node.list([1, -1, 3])) if is_first else x
    if x.shape[:-1] != (1, 1, 1) if is_first else x.type.rank != 3 or x.shape[0] != 1 or x.shape[2] != 3:
        raise ModelError(
            f"{node.kind}: landmarks must be {'[1, 1, 1, 3 count]' if is_first else '[1, count, 3]'}, got {x.type}"
        )
    last = node.extent(points, 1, "the number of landmarks") - 1
    crop = _first_crop(node, facts, points, last) if is_first else _second_crop(node, facts, points, last)
    return _matrix(node, points, crop)


def _first_crop(node: TfliteNode, facts: dict[str, Any], points: OutPort, last: int) -> _Crop:
    sides = {name: wholes(node, facts, name, 2)[::-1] for name in ("input_hw", "output_hw")}
    node.refuse(any(len(side) != 2 for side in sides.values()), "input_hw and output_hw are a height and a width")
    span, wider = whole(node, facts, "landmarks_range", 1), real(node, facts, "bbox_size_multiplier")
    node.refuse(facts.get("dimensions", 3) != 3, "landmarks of 3 dimensions are supported")
    image, output = ([size - 1.0 for size in side] for side in sides.values())
    down, across = _between(node, facts, points, last)
    return _Crop(
        turn=node.build.Multiply(node.build.Atan(node.build.Divide(down, across)), -1.0),
        subset=wholes(node, facts, "subset", 0, last),
        scale=[2 * wider / (size * span) for size in output],
        half=[size / 2 for size in output],
        outer=[size / 2 for size in image],
        factor=[size / span for size in image],
    )


def _second_crop(node: TfliteNode, facts: dict[str, Any], points: OutPort, last: int) -> _Crop:
    sizes = [whole(node, facts, f"output_{side}", 1) for side in ("width", "height")]
    scales = [real(node, facts, f"scale_{axis}") for axis in "xy"]
    if min(scales) <= 0:
        raise ModelError(f"{node.kind}: scales must be above 0, got {scales}")
    angle = node.tf("Atan2", *_between(node, facts, points, last))
    return _Crop(
        turn=node.build.Subtract(real(node, facts, "target_rotation_radians"), angle),
        subset=wholes(node, facts, "subset_idxs", 0, last),
        scale=[scale / size for scale, size in zip(scales, sizes, strict=True)],
        half=[size / 2 for size in sizes],
    )


def _columns(node: TfliteNode, points: OutPort, landmarks: list[int]) -> tuple[OutPort, OutPort]:
    """Return x and y of these landmarks, [1, count, 1] each."""
    build = node.build
    picked = build.Gather(points, node.list(landmarks), node.scalar(1))
    across, down = (build.Gather(picked, node.list([axis]), node.scalar(2)) for axis in (0, 1))
    return across, down


def _between(node: TfliteNode, facts: dict[str, Any], points: OutPort, last: int) -> tuple[OutPort, OutPort]:
    """Return how far the right of the two landmarks lies below and beside the left one."""
    left, right = (
        _columns(node, points, [whole(node, facts, f"{side}_rotation_idx", 0, last)]) for side in ("left", "right")
    )
    return node.build.Subtract(right[1], left[1]), node.build.Subtract(right[0], left[0])


def _matrix(node: TfliteNode, points: OutPort, crop: _Crop) -> OutPort:
    build = node.build
    cos, sin = build.Cos(crop.turn), build.Sin(crop.turn)
    back = build.Multiply(sin, -1.0)

    def turned(p: OutPort, q: OutPort, sin: OutPort) -> tuple[OutPort, OutPort]:
        return (
            build.Subtract(build.Multiply(p, cos), build.Multiply(q, sin)),
            build.Add(build.Multiply(p, sin), build.Multiply(q, cos)),
        )

    axis = node.list([1])
    edges = [
        (build.ReduceMin(p, axis, keep_dims=True), build.ReduceMax(p, axis, keep_dims=True))
        for p in turned(*_columns(node, points, crop.subset), sin)
    ]
    middle_x, middle_y = (build.Multiply(build.Add(low, high), 0.5) for low, high in edges)
    centre = turned(middle_x, middle_y, back)
    wide, high = (build.Multiply(build.Subtract(b, a), scale) for (a, b), scale in zip(edges, crop.scale, strict=True))
    rows = [
        (build.Multiply(cos, wide), build.Multiply(sin, high)),
        (build.Multiply(back, wide), build.Multiply(cos, high)),
    ]
    one, zero = (build.const([[[value]]], DType.F32) for value in (1.0, 0.0))
    cells: list[OutPort] = []
    for row, outer, middle, factor in zip(rows, crop.outer, centre, crop.factor, strict=True):
        first, second = (build.Multiply(cell, outer) for cell in row)
        half_size = build.Add(build.Multiply(first, crop.half[0]), build.Multiply(second, crop.half[1]))
        cells += [first, second, zero, build.Subtract(build.Multiply(middle, factor), half_size)]
    cells += [zero, zero, one, zero, zero, zero, zero, one]
    return build.Reshape(build.Concat(*cells, axis=2), node.list(MATRIX))


@tflite("CUSTOM.TransformTensorBilinear")
def crop(node: TfliteNode, x: OutPort, matrix: OutPort) -> OutPort:
    """The image at the places that a matrix gives for those of the output, by centres of pixels; 0 outside."""
    facts = flexible(node)
    return _sampled(node, x, matrix, [whole(node, facts, f"output_{side}", 1) for side in ("height", "width")], 0.5)


@tflite("CUSTOM.TransformTensor")
def crop_by_corners(node: TfliteNode, x: OutPort, matrix: OutPort) -> OutPort:
    """TransformTensorBilinear in its first version: places are those of corners of pixels."""
    facts = flexible(node)
    mode, sizes = facts.get("mode", "bilinear"), wholes(node, facts, "output_size", 1)
    node.refuse(mode != "bilinear", f"mode bilinear is supported, got {mode}")
    if len(sizes) != 2:
        raise ModelError(f"{node.kind}: output_size must be a height and a width, got {sizes}")
    return _sampled(node, x, matrix, sizes, 0.0)


def _sampled(node: TfliteNode, x: OutPort, matrix: OutPort, sizes: list[int], centre: float) -> OutPort:
    """Return the image at places M (column + centre, row + centre) - centre, interpolated; 0 where one is outside."""
    build = node.build
    if node.image(x).shape[0] != 1:
        raise ModelError(f"{node.kind}: images must be [1, height, width, channels], got {x.type}")
    height, width, channels = (node.extent(x, a, "the size of images") for a in (1, 2, 3))
    node.refuse(not height or not width, "images without pixels are not supported")
    across, down = _moved(node, matrix, *_grid(node, sizes, centre))
    across, down = (build.Subtract(p, centre) for p in (across, down))
    inside = build.LogicalAnd(_is_within(node, across, width - 1), _is_within(node, down, height - 1))
    corners: list[tuple[OutPort, OutPort, OutPort]] = []  # the pixel before, the pixel after, and its weight
    for coordinate, size in ((across, width), (down, height)):
        safe = build.Select(inside, coordinate, node.like(0, coordinate))  # NaN is outside, too
        first = build.Floor(safe)
        number = node.cast(first, DType.I64)
        after = build.Minimum(build.Add(number, 1), size - 1)  # with weight 0 at the border
        corners.append((number, after, build.Unsqueeze(build.Subtract(safe, first), node.list([1]))))
    flat = build.Reshape(x, node.list([height * width, channels]))

    def pixels(row: OutPort, column: OutPort) -> OutPort:
        return build.Gather(flat, build.Add(build.Multiply(row, width), column), node.scalar(0))

    def mixed(p: OutPort, q: OutPort, share: OutPort) -> OutPort:
        return build.Add(build.Multiply(build.Subtract(1.0, share), p), build.Multiply(share, q))

    (left, right, x_weight), (top, bottom, y_weight) = corners
    above, below = (mixed(pixels(row, left), pixels(row, right), x_weight) for row in (top, bottom))
    sampled = build.Select(build.Unsqueeze(inside, node.list([1])), mixed(above, below, y_weight), node.like(0, x))
    return build.Reshape(sampled, node.list([1, *sizes, channels]))


def _is_within(node: TfliteNode, coordinate: OutPort, last: int) -> OutPort:
    build = node.build
    return build.LogicalAnd(build.GreaterEqual(coordinate, 0.0), build.LessEqual(coordinate, float(last)))


def _grid(node: TfliteNode, sizes: list[int], centre: float) -> tuple[OutPort, OutPort]:
    """Return the columns and the rows of all places of an image, [count] each."""
    build = node.build
    steps = [build.Range(node.scalar(0), node.scalar(size), node.scalar(1), output_type=DType.F32) for size in sizes]
    shape, flat = node.list(sizes), node.list([-1])
    rows = build.Broadcast(build.Unsqueeze(build.Add(steps[0], centre), node.list([1])), shape)
    columns = build.Broadcast(build.Unsqueeze(build.Add(steps[1], centre), node.list([0])), shape)
    return build.Reshape(columns, flat), build.Reshape(rows, flat)


def _moved(
    node: TfliteNode, matrix: OutPort, across: OutPort, down: OutPort, scale: float = 1.0
) -> tuple[OutPort, OutPort]:
    """Return x and y of points, [count] each, after a matrix; its shifts are multiplied by `scale`."""
    build = node.build
    if matrix.shape != MATRIX:
        raise ModelError(f"{node.kind}: matrices must be [1, 4, 4], got {matrix.type}")
    flat = build.Reshape(matrix, node.list([16]))

    def cell(number: int) -> OutPort:
        return build.Gather(flat, node.list([number]), node.scalar(0))

    def row(first: int) -> OutPort:
        product = build.Add(build.Multiply(cell(first), across), build.Multiply(cell(first + 1), down))
        return build.Add(product, build.Multiply(cell(first + 3), scale))

    return row(0), row(4)


@tflite("CUSTOM.TransformLandmarks")
def moved_landmarks(node: TfliteNode, x: OutPort, matrix: OutPort) -> OutPort:
    """Points [1, count, 2 or 3] after a matrix: x and y are moved, z stays.

    Version 1 has the option `dimensions`: points of that many numbers in the last axis, with shifts times `scale`.
    """
    build, facts = node.build, flexible(node)
    own = node.extent(x, x.type.rank - 1, "the number of coordinates") if x.type.rank else 0
    count = whole(node, facts, "dimensions", 2, 3) if "dimensions" in facts else own
    scale = real(node, facts, "scale") if "scale" in facts else 1.0
    if count not in (2, 3) or own % count:
        raise ModelError(f"{node.kind}: points must have 2 or 3 coordinates, got {x.type}")
    points = build.Reshape(x, node.list([-1, count]))
    columns: Any = build.Split(points, node.scalar(1), num_splits=count, outputs=count).node.out_ports().values()
    flat = [build.Reshape(p, node.list([-1])) for p in columns]
    parts = [*_moved(node, matrix, flat[0], flat[1], scale), *flat[2:]]
    together = build.Concat(*(build.Unsqueeze(p, node.list([1])) for p in parts), axis=1)
    return build.Reshape(together, node.dims(x, list(range(x.type.rank))))
