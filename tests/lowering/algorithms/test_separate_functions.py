"""Functions of sums along memory that are computed for many neighbours at once."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Group
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.lowering.algorithms import separate_functions
from aot.options import CompileOptions
from tests.lowering.check import compiled, conv, ints, weights
from tests.passes.check import Make, graph_of, values


def apart(made: Compilation) -> int:
    works = [w for step in made.steps.steps for w in step.works]
    return sum(isinstance(w, Group) and w.name == "functions" for w in works)


def head(b: Builder, x: OutPort) -> OutPort:
    """One output from sixteen channels."""
    return b.Sigmoid(conv(b, b.Relu(conv(b, x, 16)), 1, 1, begin=(0, 0)))


def rows(b: Builder, x: OutPort) -> OutPort:
    return b.Erf(b.ReduceSum(x, ints(b, -1)))


def plain(b: Builder, x: OutPort) -> OutPort:
    """A head without a function."""
    return b.Relu(conv(b, b.Relu(conv(b, x, 16)), 1, 1, begin=(0, 0)))


def two(b: Builder, x: OutPort) -> OutPort:
    return b.Sigmoid(conv(b, b.Relu(conv(b, x, 96)), 2, 1, begin=(0, 0)))


def jumping(b: Builder, x: OutPort) -> OutPort:
    """A kernel of the functions alone would keep denormals, and one of the sums flushes them."""
    y = conv(b, b.Relu(conv(b, x, 96)), 2, 1, begin=(0, 0))
    return b.Multiply(b.Tanh(y), b.Sign(y))


def enlarged(b: Builder, x: OutPort) -> OutPort:
    """Three outputs of a transposed convolution: neighbours are sums of other taps."""
    w, two = weights(b, 16, 3, 4, 4), (2, 2)
    y = b.ConvolutionBackpropData(x, w, strides=two, dilations=(1, 1), pads_begin=(1, 1), pads_end=(1, 1))
    return b.Tanh(b.Add(y, weights(b, 1, 3, 1, 1)))


def steps_of_head(made: Compilation) -> int:
    """Return the steps that write the output."""
    return sum(made.steps.outputs[0] in {b.name for b in s.writes()} for s in made.steps.steps)


@pytest.mark.parametrize(
    ("make", "shape", "count"),
    [
        (two, (1, 3, 40, 24), 2),
        (enlarged, (1, 16, 12, 10), 2),
        (head, (1, 3, 40, 24), 1),  # a group
        (two, (1, 3, 2, 3), 1),  # less than another call
        (jumping, (1, 3, 40, 24), 1),
    ],
)
def test_functions_of_other_sums_are_a_step(
    make: Make, shape: tuple[int, ...], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = values(shape)
    options = CompileOptions(level=None, verify=True)
    made = stages(graph_of(make, shape), options)
    assert steps_of_head(made) == count
    found = np.asarray(in_memory(made.built, threads=1)(*x)[0]).copy()
    monkeypatch.setattr(separate_functions, "_is_heavy", is_light)
    before = stages(graph_of(make, shape), options)
    assert np.asarray(in_memory(before.built, threads=1)(*x)[0]).tobytes() == found.tobytes()
    np.testing.assert_allclose(found, interpret(graph_of(make, shape), x)[0], rtol=1e-5, atol=1e-6)


def is_light(*_: object) -> bool:
    return False


@pytest.mark.parametrize(
    ("make", "shape", "count"),
    [
        (head, (1, 3, 40, 24), 1),
        (rows, (64, 40, 24), 1),
        (plain, (1, 3, 40, 24), 0),
        (two, (1, 3, 40, 24), 0),  # sums that share a register tile
        (head, (1, 3, 40, 4), 0),  # columns that fill no vector
        (head, (1, 3, 2, 24), 0),  # threads share columns
    ],
)
def test_functions_are_vectors_where_rows_of_sums_have_some(make: Make, shape: tuple[int, ...], count: int) -> None:
    assert apart(compiled(make, shape)) == count


@pytest.mark.parametrize("target", ["native", "x86-64-v2"])
def test_results_keep_their_bits(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = values((2, 3, 40, 37))
    options = CompileOptions(level=None, target=target, verify=True)
    made = stages(graph_of(head, x[0].shape), options)
    assert apart(made) == 1
    found = [np.asarray(in_memory(made.built, threads=n)(*x)[0]).copy() for n in (1, 3)]
    monkeypatch.setattr(separate_functions, "_is_heavy", is_light)
    before = stages(graph_of(head, x[0].shape), options)
    assert apart(before) == 0
    found.append(np.asarray(in_memory(before.built, threads=1)(*x)[0]))
    assert len({y.tobytes() for y in found}) == 1
    np.testing.assert_allclose(found[0], interpret(graph_of(head, x[0].shape), x)[0], rtol=2e-6)
