"""Random small models that OpenVINO writes: what we compile from its files gives what OpenVINO gives in f32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.compilation.driver import compile_model
from aot.ir.types import Array
from aot.options import CompileOptions
from tests.cases import Tolerance

ov = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset15")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore"),  # OpenVINO's own
]

NETWORK = Tolerance("network", 1e-4, 2e-5)  # two compilers, each with sums in an order of its own
Output = Any  # of OpenVINO, which has no types
Step = Callable[[np.random.Generator, Output], Output]


def normal(rng: np.random.Generator, *shape: int) -> Array:
    depth = max(1, int(np.prod(shape[1:])))
    return (rng.normal(size=shape) / depth**0.5).astype(np.float32)


def shape_of(x: Output) -> list[int]:
    return [int(n) for n in x.get_shape()]


# ---- pictures


def convolve(rng: np.random.Generator, x: Output) -> Output:
    _, c, h, w = shape_of(x)
    out, k, stride = int(rng.choice([4, 8, 16, 19])), int(rng.choice([1, 3, 5])), int(rng.integers(1, 3))
    k = min(k, h, w)
    begin, end = rng.integers(0, k, 2).tolist(), rng.integers(0, k, 2).tolist()
    y = ops.convolution(x, normal(rng, out, c, k, k), [stride] * 2, begin, end, [1, 1])
    return ops.add(y, normal(rng, 1, out, 1, 1))


def convolve_each(rng: np.random.Generator, x: Output) -> Output:
    c = shape_of(x)[1]
    return ops.group_convolution(x, normal(rng, c, 1, 1, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])


def pool(rng: np.random.Generator, x: Output) -> Output:
    if min(shape_of(x)[2:]) < 3:
        return ops.relu(x)
    sizes = [2, 2], [1, 0], [1, 1], [3, 3]
    if rng.integers(2):
        return ops.max_pool(x, sizes[0], [1, 1], sizes[1], sizes[2], sizes[3], "floor")
    return ops.avg_pool(x, *sizes, bool(rng.integers(2)), "floor")


def activate(rng: np.random.Generator, x: Output) -> Output:
    made = [ops.relu, ops.sigmoid, ops.tanh, ops.hswish, ops.mish, lambda y: ops.gelu(y, "erf"), ops.swish]
    return made[int(rng.integers(len(made)))](x)


def residual(rng: np.random.Generator, x: Output) -> Output:
    c = shape_of(x)[1]
    return ops.add(ops.convolution(x, normal(rng, c, c, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1]), x)


def widen(rng: np.random.Generator, x: Output) -> Output:
    return ops.concat([x, activate(rng, convolve_each(rng, x))], 1)


def shrink(rng: np.random.Generator, x: Output) -> Output:
    c = shape_of(x)[1]
    part = ops.slice(x, np.array([c // 2]), np.array([c]), np.array([1]), np.array([1])) if c > 1 else x
    return ops.multiply(part, ops.sigmoid(ops.reduce_mean(part, np.array([2, 3]), True)))


PICTURE: list[Step] = [convolve, convolve_each, pool, activate, residual, widen, shrink]

# ---- rows


def product(rng: np.random.Generator, x: Output) -> Output:
    depth, out = shape_of(x)[-1], int(rng.choice([8, 16, 24]))
    return ops.add(ops.matmul(x, normal(rng, out, depth), False, True), normal(rng, out))


def layer_norm(rng: np.random.Generator, x: Output) -> Output:
    depth = shape_of(x)[-1]
    return ops.multiply(ops.mvn(x, np.array([-1]), True, 1e-5, "inside_sqrt"), normal(rng, depth))


def attend(rng: np.random.Generator, x: Output) -> Output:
    batch, rows, depth = shape_of(x)

    def heads() -> Output:
        y = ops.matmul(x, normal(rng, depth, depth), False, False)
        return ops.transpose(ops.reshape(y, np.array([batch, rows, 2, depth // 2]), False), np.array([0, 2, 1, 3]))

    scores = ops.softmax(ops.multiply(ops.matmul(heads(), heads(), False, True), np.float32(0.3)), 3)
    mixed = ops.transpose(ops.matmul(scores, heads(), False, False), np.array([0, 2, 1, 3]))
    return ops.add(ops.reshape(mixed, np.array([batch, rows, depth]), False), x)


def fold(rng: np.random.Generator, x: Output) -> Output:
    return ops.softmax(ops.transpose(x, np.array([0, 2, 1])), int(rng.integers(1, 3)))


ROWS: list[Step] = [product, layer_norm, attend, activate, product]


def check(model: Any, inputs: list[Array], folder: Path) -> None:
    ov.save_model(model, folder / "m.xml", compress_to_fp16=False)
    theirs = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    expected = [np.array(y) for y in theirs(inputs).values()]
    found = compile_model(folder / "m.xml", CompileOptions(level=None), threads=1)(*inputs)
    for n, y in enumerate(expected):
        assert found[n].shape == y.shape
        assert NETWORK.allows(np.asarray(found[n]), y), f"output {n}: differs by {np.nanmax(np.abs(found[n] - y))}"


def random_model(seed: int, steps: list[Step], shape: list[int], length: int) -> tuple[Any, list[Array]]:
    rng = np.random.default_rng(seed)
    x = ops.parameter(shape, ov.Type.f32, name="x")
    y = x.output(0)
    for _ in range(length):
        y = steps[int(rng.integers(len(steps)))](rng, y).output(0)
    return ov.Model([ops.result(y)], [x], f"random{seed}"), [rng.normal(size=shape).astype(np.float32)]


@pytest.mark.parametrize("seed", range(8))
def test_random_picture_networks(seed: int, tmp_path: Path) -> None:
    model, inputs = random_model(seed, PICTURE, [1 + seed % 2, 3, 17 + seed % 5, 16], 6)
    check(model, inputs, tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_of_rows(seed: int, tmp_path: Path) -> None:
    model, inputs = random_model(seed, ROWS, [1 + seed % 2, 9, 16], 5)
    check(model, inputs, tmp_path)


def test_transposed_softmax(tmp_path: Path) -> None:
    model, inputs = random_model(3, [fold], [2, 9, 16], 2)
    check(model, inputs, tmp_path)
