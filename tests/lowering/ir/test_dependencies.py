"""Steps run after those whose results they read, also where a value is made in parts."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Load, Var, dense, prim
from aot.compilation.driver import compile_model
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.lowering.ir.dependencies import sort
from aot.lowering.ir.steps import Step, Steps
from aot.opset.control.infrastructure import Parameter, Result
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError
from tests.lowering.check import calls, compiled, conv, ints, weights


def test_dense_block() -> None:
    """Each part is read before the next is made, and all lie in one value."""

    def make(b: Builder, x: OutPort) -> OutPort:
        parts = [b.Relu(conv(b, x, 8, 1, begin=(0, 0)))]
        for seed in range(3):
            together = parts[0] if len(parts) == 1 else b.Concat(*parts, axis=1)
            parts.append(b.Relu(conv(b, together, 4, seed=seed)))
        return conv(b, b.Concat(*parts, axis=1), 6, 1, begin=(0, 0), seed=9)

    compiled(make, (1, 3, 6, 7))


def test_nested_concat() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        inner = b.Concat(b.MatMul(x, weights(b, 8, 8)), x, axis=0)
        outer = b.Concat(b.MatMul(inner, weights(b, 8, 8, seed=1)), inner, axis=0)
        return b.MatMul(outer, weights(b, 8, 5))

    compiled(make, (3, 8))


def test_a_part_is_read_elsewhere() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        a, c = b.MatMul(x, weights(b, 8, 8)), b.MatMul(x, weights(b, 8, 8, seed=1))
        d = b.MatMul(b.Exp(a), c)
        return b.MatMul(b.Concat(a, c, d, axis=1), weights(b, 24, 4)), b.ReduceSum(a, ints(b, 0))

    compiled(make, (8, 8))


def test_overwritten_parts() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.MatMul(x, weights(b, 8, 8))
        halves = b.Split(y, b.const(1, ints(b, 1).type.dtype), num_splits=2, outputs=2).node
        swapped = b.Concat(halves.out_port(1), halves.out_port(0), axis=1)
        return b.MatMul(b.Tanh(swapped), y, transpose_b=True)

    compiled(make, (8, 8))


def test_steps_that_nobody_needs_do_not_run() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        b.Exp(b.MatMul(x, weights(b, 8, 8)))
        return b.Relu(x)

    assert calls(compiled(make, (8, 8))) == 1


def test_a_dense_block_whose_channels_are_not_known() -> None:
    """The second part begins somewhere: whether those who read the first read it too is not known."""

    def make(b: Builder, x: OutPort) -> OutPort:
        together = x
        for seed in range(3):
            normed = b.Relu(b.Multiply(together, weights(b, 8 + 4 * seed, 1, seed=seed)))
            together = b.Concat(together, conv1d(b, normed, seed), axis=1)
        return together

    compiled(make, (2, "c=8", "n=5"))


@pytest.mark.parametrize("length", ["n=5", 5])
def test_parts_along_a_run_time_axis(length: int | str) -> None:
    """The one is computed from the other, both are made in their places."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = conv1d(b, x, 0)
        return b.Exp(b.Concat(y, conv1d(b, b.Softmax(y, axis=2), 1), axis=2))

    assert calls(compiled(make, (2, 8, length))) == 7


def test_steps_that_need_each_other() -> None:
    a, b = dense("a", 4), dense("b", 4)
    i = Var("i", 4)
    works = [Definition(out, (i,), prim("exp", Load(x, (i,)))) for x, out in ((a, b), (b, a))]
    steps = [Step((work,), (work.out.name,), "Exp") for work in works]
    with pytest.raises(InternalError, match=r"order: \w and \w need each other"):
        sort(Steps("m", steps=steps))


def conv1d(b: Builder, x: OutPort, seed: int) -> OutPort:
    """To 4 channels, of three terms."""
    channels = x.type.shape[1]
    w = weights(b, 4, channels if isinstance(channels, int) else 8 + 4 * seed, 3, seed=seed)
    return b.Convolution(x, w, strides=(1,), pads_begin=(1,), pads_end=(1,), dilations=(1,))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_groups_read_one_part_and_make_another(axis: int) -> None:
    """Softmax of Softmax, both parts of one value: the rows of a group are flattened, and sizes vary."""
    graph = Graph()
    b = Builder(graph)
    shape = (*(4 if k == axis else Var(f"n{k}") for k in range(3)), 5)
    x = b(Parameter(DType.F32, shape), name="x")
    first = b.Softmax(x, axis=3)
    second = b.Softmax(b.Add(first, first), axis=3)
    b(Result(), b.Concat(first, second, axis=axis))
    data = np.random.default_rng(0).standard_normal([4 if k == axis else 2 + k for k in range(3)] + [5], np.float32)

    def softmax(a: Array) -> Array:
        e = np.exp(a - a.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    one = softmax(data)
    found = np.asarray(compile_model(graph, CompileOptions(level=None), threads=1)([data])[0])
    np.testing.assert_allclose(found, np.concatenate([one, softmax(2 * one)], axis), rtol=1e-5)
