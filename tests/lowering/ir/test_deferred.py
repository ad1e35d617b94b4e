"""Compressed weights stay numbers, zero points and scales until they are read; then their values are there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aot.ir.inference
import aot.ir.values.deferred
from aot.compilation.driver import compile_model, stages
from aot.ir.build import Builder
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.deferred import Deferred
from aot.lowering.storage.integers import whole_numbers
from aot.options import CompileOptions
from aot.passes.middle.fold_constants import fold_constants
from aot.passes.middle.merge_equal_nodes import merge_equal_nodes
from aot.runtime.abi import DType
from tests.passes.check import graph_of

RANGES = {DType.U8: (0, 255), DType.I8: (-128, 127), DType.U4: (0, 15), DType.I4: (-8, 7)}
LEAST = aot.ir.values.deferred.LEAST_ELEMENTS


def compressed(b: Builder, numbers: Array, dtype: DType, zero: Array | None, scale: Array) -> OutPort:
    """(f32(numbers) - f32(zero)) * scale"""
    kind = numpy_dtype(dtype)
    found = b.Convert(b.const(numbers.astype(kind), dtype), destination_type=DType.F32)
    if zero is not None:
        found = b.Subtract(found, b.Convert(b.const(zero.astype(kind), dtype), destination_type=DType.F32))
    return b.Multiply(found, b.const(scale.astype(np.float32), DType.F32))


def weights(b: Builder, seed: int = 0, rows: int = 256, columns: int = 320) -> OutPort:
    r = np.random.default_rng(seed)
    numbers, zero = r.integers(0, 256, (rows, columns)), r.integers(100, 150, (rows, 1))
    return compressed(b, numbers, DType.U8, zero, r.uniform(0.001, 0.01, (rows, 1)))


def held(graph: Graph) -> list[Deferred]:
    return [n.constant_data for n in graph.order() if isinstance(n.constant_data, Deferred)]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(list(RANGES)),
    zeros=st.booleans(),
    groups=st.sampled_from((1, 2, 4)),
    form=st.sampled_from(("plain", "joined", "turned")),
    common=st.integers(1, 4),
    odd=st.sampled_from((None, 0.0, -0.5, 1e-42, np.inf)),
)
def test_numbers_by_form_are_those_by_value(
    seed: int, dtype: DType, zeros: bool, groups: int, form: str, common: int, odd: float | None
) -> None:
    r, (low, high) = np.random.default_rng(seed), RANGES[dtype]
    shape = (40, groups, 32)
    numbers = r.integers(low // common, high // common + 1, shape) * common
    numbers[r.integers(0, 40, 3)] = 0
    zero = r.integers(low // common, high // common + 1, (40, groups, 1)) * common if zeros else None
    scale = (2.0 ** r.uniform(-9, 2, (40, groups, 1))).astype(np.float32)
    if odd is not None:
        scale[r.integers(0, 40)] = odd

    def make(b: Builder, x: OutPort) -> OutPort:
        found = compressed(b, numbers, dtype, zero, scale)
        if form == "joined":
            found = b.Reshape(found, b.const(np.array([40, groups * 32]), DType.I64))
        if form == "turned":
            found = b.Transpose(found, b.const(np.array([2, 0, 1]), DType.I64))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aot.ir.values.deferred, "LEAST_ELEMENTS", 1)
        patch.setattr(aot.ir.inference, "MAX_FOLD_ELEMENTS", 64)
        graph = graph_of(make, (1,))
        fold_constants(graph)
        (constant,) = held(graph)
    seen = [(constant.shape, sums) for sums in ((0,), (constant.type.rank - 1,))] + [((40, groups, 32), (2,))]
    for shape, sums in seen[: 2 + (form == "joined")]:
        with np.errstate(all="ignore"):
            by_form = whole_numbers(constant, sums, 255, shape)
            by_value = whole_numbers(constant.array().reshape(shape), sums, 255)
        assert (by_form is None) == (by_value is None), (shape, sums)
        for a, b in zip(by_form or (), by_value or (), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape) and np.array_equal(a, b), (shape, sums)


def test_weights_of_few_rows_are_compiled_without_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    array = Deferred.array

    def bytes_only(self: Deferred) -> Array:
        assert self.type.dtype.bits == 8, f"{self.op.type} {self.shape} was made"
        return array(self)

    graph = graph_of(lambda b, x: b.MatMul(x, weights(b), transpose_a=False, transpose_b=True), (1, 320))
    x = np.random.default_rng(1).standard_normal((1, 320)).astype(np.float32)
    (wanted,) = interpret(graph, [x])
    monkeypatch.setattr(Deferred, "array", bytes_only)
    np.testing.assert_allclose(compile_model(graph, activations="f32")(x)[0], wanted, rtol=1e-5, atol=1e-4)


Reader = Callable[[Builder, OutPort, OutPort], OutPort]
READERS: dict[str, Reader] = {
    "sum": lambda b, x, w: b.Add(x, w),
    "product of many rows": lambda b, x, w: b.MatMul(x, w, transpose_a=False, transpose_b=False),
    "joined": lambda b, x, w: b.Concat(x, w, axis=0),
    "part": lambda b, x, w: b.Add(x, b.Slice(w, *(b.const(np.array([n]), DType.I64) for n in (1, 2, 1, 0)))),
    "sums": lambda b, x, w: b.Add(x, b.ReduceSum(w, b.const(np.array([0]), DType.I64), keep_dims=True)),
    "rows": lambda b, x, w: b.Add(x, b.Gather(w, *(b.const(np.array(n), DType.I64) for n in ([5, 3], 0)))),
    "window": lambda b, x, w: b.Multiply(x, b.Reshape(b.Abs(w), b.const(np.array([-1, 320]), DType.I64))),
    "result": lambda b, x, w: w,
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_sees_the_values(name: str) -> None:
    rows, columns = 2 if name == "rows" else 256, 256 if name == "product of many rows" else 320
    graph = graph_of(lambda b, x: READERS[name](b, x, weights(b)), (rows, columns))
    x = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)
    (wanted,) = interpret(graph, [x])
    np.testing.assert_allclose(compile_model(graph)(x)[0], wanted, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("joined", [False, True])
def test_parts_of_weights_stay_small(axis: int, joined: bool) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        whole, lengths = weights(b, rows=600), b.const(np.array([-1, 250]), DType.I64)
        if joined:
            whole = b.Reshape(whole, b.const(np.array([600, 1, 320]), DType.I64))
        made = b.VariadicSplit(whole, b.const(2 * axis if joined else axis, DType.I64), lengths, outputs=2)
        return b.Add(x, b.ReduceSum(made, b.const(np.array([0, 1]), DType.I64)))

    graph = graph_of(make, (1,))
    (wanted,) = interpret(graph, [np.float32([1])])
    fold_constants(
        graph,
    )
    np.testing.assert_allclose(interpret(graph, [np.float32([1])])[0], wanted, rtol=1e-5)


@pytest.mark.parametrize(("seeds", "count"), [((0, 0), 1), ((0, 1), 2)])
def test_equal_weights_are_one(seeds: tuple[int, int], count: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        one, other = (weights(b, seed) for seed in seeds)
        return b.MatMul(
            b.MatMul(x, one, transpose_a=False, transpose_b=False), other, transpose_a=False, transpose_b=True
        )

    graph = graph_of(make, (1, 256))
    fold_constants(graph)
    merge_equal_nodes(graph)
    assert len(held(graph)) == len(held(copy_graph(graph))) == count


def test_versions_of_a_model_share_them() -> None:
    graph = graph_of(lambda b, x: b.MatMul(x, weights(b), transpose_a=False, transpose_b=True), ("n", 320))
    options = CompileOptions(dims=(("n", 1, 64),), specialise=(("n", (1, 8)),), target="x86-64-v3", activations="f32")
    whole = stages(graph, options).program
    assert sum(block.nbytes for block in whole.constants) < 4 * LEAST
