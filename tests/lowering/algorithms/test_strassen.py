"""Products by seven multiplications in place of eight: how large errors may be, sizes, and where it is not done."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.lowering.algorithms.strassen_matrices import BASIS, LEFT, OUT, RIGHT
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.lowering.check import Make, compiled, conv, weights
from tests.passes.check import graph_of, values

X86 = "x86-64-v3"  # chosen there by `near`, whatever machine the tests run on
RMS, MOST = 1.6, 2.0  # times the error of plain products; in the mean it is 1.43 times that


@pytest.fixture(autouse=True)
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """All targets have an L3 for which it pays."""
    monkeypatch.setattr(Target, "near_l3", True)


def products(made: Compilation) -> int:
    """Return the number of products that Strassen's algorithm computes."""
    return made.groups.count("group strassen ")


def lowered(make: Make, *shapes: tuple[int | str, ...], options: CompileOptions | None = None) -> Compilation:
    return stages(graph_of(make, *shapes), options or CompileOptions(level=None, target=X86))


def dense(b: Builder, x: OutPort, columns: int = 512, seed: int = 0) -> OutPort:
    """Build a product with a bias and an activation; the weights are [columns, sum]."""
    depth = x.type.shape[-1]
    assert isinstance(depth, int)
    w = weights(b, columns, depth, seed=seed)
    return b.Gelu(b.Add(b.MatMul(x, w, transpose_b=True), weights(b, columns, seed=seed + 1)))


def pointwise(b: Builder, x: OutPort, channels: int = 512, stride: int = 1) -> OutPort:
    return b.Relu(conv(b, x, channels, 1, stride=stride, begin=(0, 0)))


def test_seven_products_are_all_eight() -> None:
    left, right, out = np.array(LEFT), np.array(RIGHT) @ np.array(BASIS), np.array(OUT)
    found = np.einsum("qt,tx,tw->qxw", out, left, right)
    wanted = np.zeros((4, 4, 4), int)
    for i, j, k in np.ndindex(2, 2, 2):
        wanted[2 * i + j, 2 * i + k, 2 * k + j] = 1
    np.testing.assert_array_equal(found, wanted)


def test_the_basis_is_as_large_as_the_weights() -> None:
    assert len(BASIS) == 4
    assert round(abs(np.linalg.det(BASIS))) == 1


@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(128, 512, 512), (197, 384, 384), (33, 1024, 512), (64, 768, 1000), (50, 516, 770)]
)
def test_error_is_near_that_of_plain_products(rows: int, depth: int, columns: int) -> None:
    errors: list[Array] = []
    for plain in (False, True):
        graph = graph_of(lambda b, x: b.MatMul(x, weights(b, depth, columns)), (rows, depth))
        w = next(n.data for n in graph.order() if n.type == "Constant" and n.data is not None and n.data.ndim == 2)
        made = stages(graph, CompileOptions(level=None, target=X86, plain_products=plain))
        assert products(made) == int(not plain)
        x = np.random.default_rng(1).normal(size=(rows, depth)).astype(np.float32)
        errors.append(np.asarray(in_memory(made.built, 1)(x)[0]) - x.astype(np.float64) @ w.astype(np.float64))
    seven, eight = errors
    assert np.sqrt(np.mean(seven**2)) < RMS * np.sqrt(np.mean(eight**2))
    assert np.abs(seven).max() < MOST * np.abs(eight).max()


@pytest.mark.parametrize("rows", [32, 33, 61, 130])
def test_any_number_of_rows(rows: int) -> None:
    """Halves of an odd number share the row between them, which one of them writes."""
    assert products(compiled(dense, (rows, 512), target=X86)) == 1


@pytest.mark.parametrize("shape", [(1, 512, 14, 14), (2, 512, 7, 7), (1, 512, 7, 9), (3, 512, 7, 7), (1, 384, 10, 5)])
def test_convolutions_of_one_tap(shape: tuple[int, ...]) -> None:
    assert products(compiled(pointwise, shape, target=X86)) == 1


def test_every_other_pixel() -> None:
    assert products(compiled(lambda b, x: pointwise(b, x, stride=2), (1, 512, 28, 28), target=X86)) == 1


def test_products_may_write_results_with_a_border() -> None:
    made = compiled(lambda b, x: conv(b, pointwise(b, x), 32, stride=2), (1, 512, 13, 13), target=X86)
    assert products(made) == 1


def test_rows_and_columns_of_heads_use_strassen() -> None:
    """Rows that lie in several parts, and columns that go to several places."""

    def make(b: Builder, x: OutPort) -> OutPort:
        merged = b.Reshape(
            b.Transpose(x, b.const(np.array([0, 2, 1, 3]), DType.I64)), b.const(np.array([1, 64, 512]), DType.I64)
        )
        return b.Relu(
            b.Transpose(
                b.Reshape(dense(b, merged), b.const(np.array([1, 64, 8, 64]), DType.I64)),
                b.const(np.array([0, 2, 1, 3]), DType.I64),
            )
        )

    assert products(compiled(make, (1, 8, 64, 64), target=X86)) == 1


def test_products_of_the_same_rows_share_their_halves() -> None:
    made = compiled(lambda b, x: tuple(dense(b, x, seed=n) for n in range(3)), (64, 512), target=X86)
    assert (products(made), made.groups.count("group halves ")) == (3, 1)


def test_a_network_of_several() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = dense(b, x, 1024)
        return b.Add(x, dense(b, y, 512, seed=3))

    assert products(compiled(make, (1, 40, 512), target=X86)) == 2


@pytest.mark.parametrize("shape", [(128, 512), (61, 512), (1, 512, 14, 14)])
def test_equal_bits_for_any_number_of_threads(shape: tuple[int, ...]) -> None:
    built = lowered(dense if len(shape) == 2 else pointwise, shape).built
    (x,) = values(shape)
    one, *others = (np.asarray(in_memory(built, threads)(x)[0]).copy() for threads in (1, 2, 3))
    assert all(np.array_equal(one, y) for y in others)


def test_weights_take_no_more_memory() -> None:
    made, plain = (
        lowered(dense, (64, 512), options=CompileOptions(level=None, target=X86, plain_products=p))
        for p in (False, True)
    )
    assert (products(made), products(plain)) == (1, 0)
    assert made.program.constant_bytes == plain.program.constant_bytes


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (dense, (16, 512)),
        (dense, ("n", 512)),
        (lambda b, x: dense(b, x, 64), (128, 512)),
        (dense, (128, 96)),
        (lambda b, x: dense(b, x, 511), (128, 512)),
        (dense, (128, 511)),
    ],
)
def test_plain_where_it_does_not_pay(make: Make, shape: tuple[int | str, ...]) -> None:
    assert products(lowered(make, shape)) == 0


@pytest.mark.parametrize("target", ["aarch64", "x86-64-v3", "x86-64-v4"])
def test_plain_where_the_l3_may_be_far(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert products(lowered(dense, (128, 512), options=CompileOptions(target=target))) == 0


def test_weights_that_f16_holds_stay_so() -> None:
    """On a machine that converts them by the way: they take half of the memory."""

    def make(b: Builder, x: OutPort) -> OutPort:
        data = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float16)
        return b.MatMul(x, b.const(data.astype(np.float32), DType.F32))

    made = stages(graph_of(make, (128, 512)), CompileOptions(level=None, target=X86))
    assert products(made) == int(not made.target.converts_half_aside)


def test_shared_weights_are_stored_once() -> None:
    """Another step reads the weights too, like a table of words that is also the weights of the last layer."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, OutPort]:
        w = weights(b, 512, 512)
        return b.MatMul(x, w, transpose_b=True), b.Add(w, b.ReduceMax(x, b.const(np.array([0]), DType.I64)))

    assert products(compiled(make, (128, 512), target=X86)) == 0


def test_plain_products_keep_what_is_not_finite_in_its_row() -> None:
    x: Array = values((128, 512))[0]
    x[5, 7] = np.inf
    graph = graph_of(dense, (128, 512))
    y = np.asarray(in_memory(stages(graph, CompileOptions(level=None, target=X86, plain_products=True)).built, 1)(x)[0])
    assert np.isfinite(np.delete(y, 5, axis=0)).all()
