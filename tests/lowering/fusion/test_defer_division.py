"""Division of a softmax behind the product that reads it: where it moves, and that results are those of f64."""

from __future__ import annotations

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.model import CompiledModel
from tests.lowering.check import Make, compiled, ints
from tests.passes.check import graph_of, values

INF, NAN = np.inf, np.nan
SHAPES = ((2, 9, 16), (2, 37, 16), (2, 37, 24))  # queries, keys, values
MASK = (9, 37)


def attention(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    scores = b.Add(b.Multiply(b.MatMul(q, k, transpose_b=True), 0.25), mask)
    return b.MatMul(b.Softmax(scores, axis=-1), v)


def written_out(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    scores, last = b.Add(b.Multiply(b.MatMul(q, k, transpose_b=True), 0.25), mask), ints(b, -1)
    powers = b.Exp(b.Subtract(scores, b.ReduceMax(scores, last, keep_dims=True)))
    return b.MatMul(b.Divide(powers, b.ReduceSum(powers, last, keep_dims=True)), v)


def reciprocal_first(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    scores, last = b.Add(b.Multiply(b.MatMul(q, k, transpose_b=True), 0.25), mask), ints(b, -1)
    powers = b.Exp(b.Subtract(scores, b.ReduceMax(scores, last, keep_dims=True)))
    scale = b.Divide(b.const(1.0, DType.F32), b.ReduceSum(powers, last, keep_dims=True))
    return b.MatMul(b.Multiply(scale, powers), v)


def heads_together(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    """Results of all heads side by side, with a layer behind the division."""
    y = b.Transpose(attention(b, q, k, v, mask), ints(b, 1, 0, 2))
    return b.Relu(b.Add(b.Reshape(y, ints(b, 9, 48)), 0.25))


def expected(q: Array, k: Array, v: Array, mask: Array) -> Array:
    q, k, v, mask = (x.astype(np.float64) for x in (q, k, v, mask))
    with np.errstate(invalid="ignore"):
        scores = q @ k.swapaxes(1, 2) * 0.25 + mask
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(powers / powers.sum(-1, keepdims=True) @ v)


def inputs() -> list[Array]:
    return [*values(*SHAPES), np.zeros(MASK, np.float32)]


@pytest.mark.parametrize("make", [attention, written_out, reciprocal_first, heads_together])
def test_the_division_is_behind_the_product(make: Make) -> None:
    made = compiled(make, *SHAPES, MASK)
    assert sum(name.endswith(".scale") for name in made.steps.values) == 1


@pytest.fixture(scope="module")
def masked() -> CompiledModel:
    return in_memory(stages(graph_of(attention, *SHAPES, MASK), CompileOptions(level=None)).built, threads=1)


@pytest.mark.parametrize(
    ("row", "number"), [(slice(3, 4), -INF), (slice(None), -INF), (2, INF), (4, NAN), (slice(0, 2), -1e30), (1, 3e38)]
)
def test_masks_infinities_and_nan(masked: CompiledModel, row: int | slice, number: float) -> None:
    for columns in (slice(None), slice(5, None), slice(36, 37)):
        given = inputs()
        given[3][row, columns] = number
        found, wanted = np.asarray(masked(*given)[0]), expected(*given)
        assert (np.isnan(found) == np.isnan(wanted)).all(), columns
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6, err_msg=str(columns))


def test_excluded_keys_add_nothing() -> None:
    """Shares of keys at minus infinity are exact zeros: with fewer keys the results have the same bits."""
    built = stages(graph_of(attention, *SHAPES, MASK), CompileOptions(level=None)).built
    given = inputs()
    given[3][:, 20:] = -INF
    first = np.asarray(in_memory(built, threads=1)(*given)[0]).copy()
    given[1][:, 20:], given[2][:, 20:] = 1.0, 7.0
    assert first.tobytes() == np.asarray(in_memory(built, threads=1)(*given)[0]).tobytes()


def test_errors_are_those_of_shares() -> None:
    """Against f64 the mean error does not grow: each result is rounded once more, and each probability once less."""
    built = stages(graph_of(attention, *SHAPES, MASK), CompileOptions(level=None)).built
    rng, errors = np.random.default_rng(0), list[tuple[float, float]]()
    for _ in range(8):
        given = [rng.standard_normal(shape).astype(np.float32) for shape in (*SHAPES, MASK)]
        q, k, v, mask = given
        found, wanted = np.asarray(in_memory(built, threads=1)(*given)[0]), expected(*given)
        scores = q @ k.swapaxes(1, 2) * np.float32(0.25) + mask
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        plain = powers / powers.sum(-1, keepdims=True) @ v
        errors.append((np.abs(found - wanted).mean(), np.abs(plain - wanted).mean()))
    ours, numpys = np.mean(errors, 0)
    assert ours < 1.2 * numpys


def two_products(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    shares = b.Softmax(b.Add(b.MatMul(q, k, transpose_b=True), mask), axis=-1)
    return b.Add(b.MatMul(shares, v), b.MatMul(shares, b.Sin(v)))


def shares_added(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    """The shares are no factor alone."""
    shares = b.Softmax(b.Add(b.MatMul(q, k, transpose_b=True), mask), axis=-1)
    return b.MatMul(b.Sqrt(shares), v)


def across_rows(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    """The product sums over rows, each of which has a divisor of its own."""
    shares = b.Softmax(b.Add(b.MatMul(k, q, transpose_b=True), b.Transpose(mask, ints(b, 1, 0))), axis=-1)
    return b.MatMul(shares, v, transpose_a=True)


def many_columns(b: Builder, q: OutPort, k: OutPort, v: OutPort, mask: OutPort) -> OutPort:
    """More results than probabilities."""
    wide = b.Concat(v, v, axis=2)
    return b.MatMul(b.Softmax(b.Add(b.MatMul(q, k, transpose_b=True), mask), axis=-1), wide)


@pytest.mark.parametrize("make", [two_products, shares_added, across_rows, many_columns])
def test_other_softmaxes_divide_first(make: Make) -> None:
    made = compiled(make, *SHAPES, MASK)
    assert not any(name.endswith(".scale") for name in made.steps.values)


@pytest.mark.parametrize(("keys", "columns", "moved"), [("n=8", 64, True), (37, "d=8", False)])
def test_dynamic_sizes_decide_without_their_typical_values(keys: int | str, columns: int | str, moved: bool) -> None:
    shapes = ((2, 9, 16), (2, keys, 16), (2, keys, columns), (9, keys))
    steps = stages(graph_of(attention, *shapes), CompileOptions(level=None)).steps
    assert any(name.endswith(".scale") for name in steps.values) == moved
