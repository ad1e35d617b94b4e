"""MediaPipe's custom operations give what their definitions in NumPy give."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import aot
from aot.frontends.unsupported import UnconvertedError
from tests.frontends.onnx.models import converted, run
from tests.frontends.tflite.models import Net, Op, Tensor, constant, model
from tests.frontends.tflite.test_reader import saved

Array = np.ndarray
rng = np.random.default_rng(48)


def f(*shape: int) -> Array:
    return rng.uniform(-2, 2, shape).astype(np.float32)


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def options(**facts: Any) -> bytes:
    """A map of flexbuffers, vectors of numbers typed, as C++ writes them."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in facts.items():
            if isinstance(value, list):
                builder.TypedVectorFromElements(name, value)
            else:
                builder.Add(name, value)
    return bytes(builder.Finish())


def network(kind: str, custom: bytes, inputs: Sequence[Array], outputs: int = 1, constants: int = 0) -> bytes:
    """One operation; the last inputs are constants."""
    fed = len(inputs) - constants
    tensors = [constant(f"x{i}", x) if i >= fed else Tensor(f"x{i}", "f32", x.shape) for i, x in enumerate(inputs)]
    tensors += [Tensor(f"y{i}", "f32", []) for i in range(outputs)]
    places = list(range(len(inputs), len(inputs) + outputs))
    op = Op(f"CUSTOM.{kind}", range(len(inputs)), places, custom=custom)
    return model(Net(tensors, [op], range(fed), places))


def pooled(x: Array, is_same: bool, strides: tuple[int, int], kernel: tuple[int, int]) -> tuple[Array, Array]:
    """Maxima of windows and their places in the windows, element by element."""
    sizes, starts = [], []
    for size, s, k in zip(x.shape[1:3], strides, kernel, strict=True):
        count = -(-size // s) if is_same else (size - k) // s + 1
        pad = max(0, (count - 1) * s + k - size) // 2 if is_same else 0
        sizes.append(count)
        starts.append([i * s - pad for i in range(count)])
    best = np.full((x.shape[0], *sizes, x.shape[3]), -np.inf, np.float32)
    places = np.zeros_like(best)
    for n, i, j, c in np.ndindex(*best.shape):
        for k in np.ndindex(*kernel):
            row, column = starts[0][i] + k[0], starts[1][j] + k[1]
            if 0 <= row < x.shape[1] and 0 <= column < x.shape[2] and x[n, row, column, c] > best[n, i, j, c]:
                best[n, i, j, c] = x[n, row, column, c]
                places[n, i, j, c] = k[0] * kernel[1] + k[1] + np.float32(0.1)
    return best, places


@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize(("strides", "kernel"), [((2, 2), (2, 2)), ((1, 2), (3, 2)), ((2, 3), (3, 4))])
def test_max_pool_with_places(
    strides: tuple[int, int], kernel: tuple[int, int], is_same: bool, activation: int, tmp_path: Path
) -> None:
    x = f(2, 5, 7, 3)
    custom = words(1 if is_same else 2, *strides[::-1], *kernel[::-1], activation)
    best, places = pooled(x, is_same, strides, kernel)
    found = run(saved(tmp_path, network("MaxPoolingWithArgmax2D", custom, [x], 2)), x)
    np.testing.assert_array_equal(found[0], np.maximum(best, 0) if activation else best)
    np.testing.assert_array_equal(found[1], places)


def test_max_unpool_puts_numbers_where_pooling_found_them(tmp_path: Path) -> None:
    x, kernel = f(2, 4, 9, 3), (2, 3)
    best, places = pooled(x, True, kernel, kernel)
    wanted = np.where(np.repeat(np.repeat(best, 2, 1), 3, 2) == x, x, 0)
    made = network("MaxUnpooling2D", words(1, 3, 2, 3, 2, 0), [best, places])
    np.testing.assert_array_equal(run(saved(tmp_path, made), best, places)[0], wanted)


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize(("size", "strides", "kernel"), [(4, (2, 2), (4, 4)), (3, (2, 3), (4, 2)), (3, (2, 1), (2, 3))])
def test_transposed_convolution_with_bias(
    size: int, strides: tuple[int, int], kernel: tuple[int, int], is_same: bool, tmp_path: Path
) -> None:
    """SAME makes the output of an odd size smaller than the stride times that size."""
    x, w, bias = f(2, size, size, 3), f(5, *kernel, 3), f(5)
    pads = [max(0, k - (size - 1) % s - 1) if is_same else 0 for k, s in zip(kernel, strides, strict=True)]
    whole = [(size - 1) * s + k for s, k in zip(strides, kernel, strict=True)]
    wanted = np.zeros((2, *whole, 5))
    for i, j in np.ndindex(size, size):
        part = np.einsum("nc,ohwc->nhwo", x[:, i, j], w, dtype=np.float64)
        wanted[:, i * strides[0] : i * strides[0] + kernel[0], j * strides[1] : j * strides[1] + kernel[1]] += part
    first = [p // 2 for p in pads]
    last = [n - (p - p // 2) for n, p in zip(whole, pads, strict=True)]
    wanted = wanted[:, first[0] : last[0], first[1] : last[1]] + bias
    made = network("Convolution2DTransposeBias", words(1 if is_same else 2, *strides[::-1]), [x, w, bias], constants=2)
    np.testing.assert_allclose(run(saved(tmp_path, made), x)[0], wanted, rtol=1e-5, atol=1e-5)


REGION = {
    "subset_idxs": [0, 2, 3, 5, 6], "left_rotation_idx": 1, "right_rotation_idx": 4, "target_rotation_radians": 0.25,
    "output_height": 6, "output_width": 8, "scale_x": 1.5, "scale_y": 1.25,
}  # fmt: skip


def turn(r: float) -> Array:
    made = np.eye(4)
    made[:2, :2] = [[np.cos(r), -np.sin(r)], [np.sin(r), np.cos(r)]]
    return made


def region(x: Array, facts: dict[str, Any]) -> Array:
    points = np.float64(x[0])
    left, right = points[facts["left_rotation_idx"]], points[facts["right_rotation_idx"]]
    r = facts["target_rotation_radians"] - np.arctan2(right[1] - left[1], right[0] - left[0])
    box = np.stack([(turn(r)[:2, :2] @ points[i, :2]) for i in facts["subset_idxs"]])
    shift, back = np.eye(4), np.eye(4)
    shift[:2, 3] = turn(-r)[:2, :2] @ ((box.min(0) + box.max(0)) / 2)
    size = np.array([facts["output_width"], facts["output_height"]])
    back[:2, 3] = -size / 2
    scale = np.diag([*(np.ptp(box, 0) * [facts["scale_x"], facts["scale_y"]] / size), 1, 1])
    return (shift @ turn(-r) @ scale @ back)[None]


def test_matrix_of_a_region_of_landmarks(tmp_path: Path) -> None:
    x = f(1, 7, 3)
    made = network("Landmarks2TransformMatrix", options(**REGION), [x])
    np.testing.assert_allclose(run(saved(tmp_path, made), x)[0], region(x, REGION), rtol=1e-4, atol=1e-5)


FIRST = {
    "subset": [0, 2, 3, 5, 6], "left_rotation_idx": 1, "right_rotation_idx": 4, "dimensions": 3, "landmarks_range": 192,
    "bbox_size_multiplier": 1.5, "input_hw": [24, 32], "output_hw": [6, 8],
}  # fmt: skip


def first_region(x: Array, facts: dict[str, Any]) -> Array:
    """The matrix of version 1: crop to -1 to 1, box, turn, image."""
    points, span = np.float64(x.reshape(-1, 3)), facts["landmarks_range"]
    left, right = points[facts["left_rotation_idx"]], points[facts["right_rotation_idx"]]
    alpha = -np.arctan((right[1] - left[1]) / (right[0] - left[0]))
    box = np.stack([turn(alpha)[:2, :2] @ points[i, :2] for i in facts["subset"]])
    to_crop, to_image, turned = np.eye(4), np.eye(4), turn(-alpha)
    turned[:2, 3] = turn(-alpha)[:2, :2] @ ((box.min(0) + box.max(0)) / 2) / span * 2 - 1
    for axis in range(2):
        out, own = facts["output_hw"][1 - axis], facts["input_hw"][1 - axis]
        to_crop[axis, [axis, 3]] = 2 / (out - 1), -1
        to_image[axis, [axis, 3]] = (own - 1) / 2
    scale = np.diag([*(np.ptp(box, 0) * facts["bbox_size_multiplier"] / span), 1, 1])
    return (to_image @ turned @ scale @ to_crop)[None]


def test_matrix_of_a_region_in_the_first_version(tmp_path: Path) -> None:
    x = 100 + 40 * f(1, 1, 1, 21)
    found = run(saved(tmp_path, network("Landmarks2TransformMatrix", options(**FIRST), [x])), x)[0]
    np.testing.assert_allclose(found, first_region(x, FIRST), rtol=1e-4, atol=1e-4)


def sampled(x: Array, matrix: Array, height: int, width: int, centre: float) -> Array:
    found = np.zeros((1, height, width, x.shape[3]))
    for i, j in np.ndindex(height, width):
        across, down, _, _ = np.float64(matrix[0]) @ [j + centre, i + centre, 0, 1] - centre
        if 0 <= across <= x.shape[2] - 1 and 0 <= down <= x.shape[1] - 1:
            row, column = int(down), int(across)
            for r, c in np.ndindex(2, 2):
                weight = (1 - abs(down - row - r)) * (1 - abs(across - column - c))
                if weight > 0:
                    found[0, i, j] += weight * x[0, row + r, column + c]
    return found


@pytest.mark.parametrize(
    ("kind", "custom", "centre"),
    [
        ("TransformTensorBilinear", {"output_height": 6, "output_width": 5}, 0.5),
        ("TransformTensor", {"mode": "bilinear", "output_size": [6, 5]}, 0.0),
    ],
)
def test_image_is_sampled_at_the_places_of_a_matrix(
    kind: str, custom: dict[str, Any], centre: float, tmp_path: Path
) -> None:
    """Places outside of the image give 0, and so do those that are no numbers."""
    x = f(1, 5, 7, 2)
    matrix = np.float32([[[0.8, 0.3, 0, -0.6], [-0.2, 0.9, 0, 0.4], [0, 0, 1, 0], [0, 0, 0, 1]]])
    file = saved(tmp_path, network(kind, options(**custom), [x, matrix]))
    wanted = sampled(x, matrix, 6, 5, centre)
    assert 0 < np.count_nonzero(wanted) < wanted.size
    np.testing.assert_allclose(run(file, x, matrix)[0], wanted, rtol=1e-5, atol=1e-5)
    compiled = aot.compile_model(file)
    np.testing.assert_allclose(compiled(x, matrix)[0], wanted, rtol=1e-5, atol=1e-5)
    assert not np.any(compiled(x, np.full_like(matrix, np.nan))[0])


@pytest.mark.parametrize(
    ("shape", "custom"),
    [((1, 4, 3), b""), ((1, 4, 2), b""), ((1, 1, 1, 12), options(dimensions=3, scale=0.5))],
)
def test_landmarks_are_moved_by_a_matrix(shape: tuple[int, ...], custom: bytes, tmp_path: Path) -> None:
    x, matrix = f(*shape), f(1, 4, 4)
    points = x.reshape(-1, 3 if custom else shape[-1]).copy()
    scale = 0.5 if custom else 1.0
    points[:, :2] = points[:, :2] @ matrix[0, :2, :2].T + scale * matrix[0, :2, 3]
    found = run(saved(tmp_path, network("TransformLandmarks", custom, [x, matrix])), x, matrix)[0]
    np.testing.assert_allclose(found, points.reshape(shape), rtol=1e-5, atol=1e-5)


IMAGE, LANDMARKS, EYE = f(1, 4, 4, 2), f(1, 7, 3), np.eye(4, dtype=np.float32)[None]


@pytest.mark.parametrize(
    ("kind", "custom", "inputs", "message"),
    [
        ("MaxPoolingWithArgmax2D", words(1, 2, 2), [IMAGE], "6 numbers of 4 bytes, got 12 bytes"),
        ("MaxPoolingWithArgmax2D", words(1, 2, 0, 2, 2, 0), [IMAGE], "strides and windows must be 1 to"),
        ("MaxPoolingWithArgmax2D", words(1, 2, 2, -2, 2, 0), [IMAGE], "strides and windows must be 1 to"),
        ("MaxPoolingWithArgmax2D", words(7, 2, 2, 2, 2, 0), [IMAGE], "padding 7 is not supported"),
        ("MaxUnpooling2D", words(1, 1, 1, 2, 2, 0), [IMAGE, IMAGE], "strides other than the size of windows"),
        ("Convolution2DTransposeBias", words(1, 0, 2), [IMAGE, f(3, 2, 2, 2), f(3)], "strides must be 1 to"),
        ("Convolution2DTransposeBias", b"", [IMAGE, f(3, 2, 2, 2), f(3)], "3 numbers of 4 bytes, got 0"),
        ("Landmarks2TransformMatrix", b"\xff" * 40, [LANDMARKS], "options must be a map of flexbuffers"),
        ("Landmarks2TransformMatrix", b"", [LANDMARKS], "output_width must be 1 to 65535, got None"),
        ("Landmarks2TransformMatrix", options(**FIRST), [LANDMARKS], r"landmarks must be \[1, 1, 1, 3 count\]"),
        (
            "Landmarks2TransformMatrix",
            options(**FIRST | {"output_hw": [1, 8]}),
            [f(1, 1, 1, 21)],
            "must be 2 to 65535, got 1",
        ),
        ("Landmarks2TransformMatrix", options(**FIRST | {"input_hw": [8]}), [f(1, 1, 1, 21)], "a height and a width"),
        (
            "Landmarks2TransformMatrix",
            options(**REGION | {"subset_idxs": [0, 7]}),
            [LANDMARKS],
            "subset_idxs must be 0 to 6, got 7",
        ),
        (
            "Landmarks2TransformMatrix",
            options(**REGION | {"left_rotation_idx": -1}),
            [LANDMARKS],
            "must be 0 to 6, got -1",
        ),
        (
            "Landmarks2TransformMatrix",
            options(**REGION | {"output_width": 0}),
            [LANDMARKS],
            "must be 1 to 65535, got 0",
        ),
        ("Landmarks2TransformMatrix", options(**REGION | {"scale_x": float("nan")}), [LANDMARKS], "a finite number"),
        ("Landmarks2TransformMatrix", options(**REGION), [f(1, 7, 2)], r"landmarks must be \[1, count, 3\]"),
        ("TransformTensorBilinear", options(output_height=1 << 30), [IMAGE, EYE], "output_height must be 1 to 65535"),
        ("TransformTensorBilinear", bytes(1 << 17), [IMAGE, EYE], "at most 65536 bytes"),
        ("TransformTensorBilinear", options(output_height=2, output_width=2), [IMAGE, f(1, 16)], "matrices must be"),
        ("TransformTensor", options(output_size=[2, 2], mode="nearest"), [IMAGE, EYE], "mode bilinear"),
        ("TransformLandmarks", b"", [f(1, 4, 5), EYE], "2 or 3 coordinates"),
    ],
)
def test_options_are_checked(kind: str, custom: bytes, inputs: list[Array], message: str, tmp_path: Path) -> None:
    file = saved(tmp_path, network(kind, custom, inputs, 2 if kind.startswith("MaxPooling") else 1))
    with pytest.raises((UnconvertedError, aot.AotError), match=message):
        converted(file)


def test_no_bytes_of_options_crash_or_take_long(tmp_path: Path) -> None:
    """Each byte of a map of options changed, and the map cut short at each place."""
    made = options(**REGION)
    for at in range(len(made)):
        for custom in (made[:at], made[:at] + bytes([made[at] ^ 0xFF]) + made[at + 1 :]):
            try:
                converted(saved(tmp_path, network("Landmarks2TransformMatrix", custom, [LANDMARKS])))
            except aot.AotError:
                continue
