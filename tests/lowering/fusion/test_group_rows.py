"""Groups: row-wise operations become one kernel, in whichever way a model spells them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.codegen.ir.definition import Group
from aot.codegen.ir.loops import Var
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Dim
from aot.lowering.fusion.group_rows import MEMBERS
from aot.opset.reduction.normalization import Inside
from aot.options import CompileOptions
from tests.dynamic.networks import check, parameter, result
from tests.lowering.check import calls, compiled, conv, ints, weights

SHAPE = (3, 4, 37)
Make = Callable[[Builder, OutPort], OutPort]


def softmax(b: Builder, x: OutPort) -> OutPort:
    return b.Softmax(x, axis=-1)


def log_softmax(b: Builder, x: OutPort) -> OutPort:
    return b.LogSoftmax(x, axis=2)


def written_softmax(b: Builder, x: OutPort) -> OutPort:
    powers = b.Exp(b.Subtract(x, b.ReduceMax(x, ints(b, -1), keep_dims=True)))
    return b.Divide(powers, b.ReduceSum(powers, ints(b, -1), keep_dims=True))


def softmax_without_kept_dimensions(b: Builder, x: OutPort) -> OutPort:
    powers = b.Exp(b.Subtract(x, b.Unsqueeze(b.ReduceMax(x, ints(b, 2)), ints(b, 2))))
    return b.Divide(powers, b.Reshape(b.ReduceSum(powers, ints(b, 2)), ints(b, 3, 4, 1)))


def masked_softmax(b: Builder, x: OutPort) -> OutPort:
    return b.Softmax(b.Add(b.Multiply(x, 0.125), weights(b, 1, 37)), axis=2)


def norm(b: Builder, x: OutPort) -> OutPort:
    return b.MVN(x, ints(b, 2), eps=1e-5)


def _scaled(b: Builder, x: OutPort) -> OutPort:
    return b.Add(b.Multiply(x, weights(b, 37, seed=1)), weights(b, 37, seed=2))


def scaled_norm(b: Builder, x: OutPort) -> OutPort:
    return _scaled(b, norm(b, x))


def written_norm(b: Builder, x: OutPort) -> OutPort:
    gap = b.Subtract(x, b.ReduceMean(x, ints(b, -1), keep_dims=True))
    spread = b.ReduceMean(b.Multiply(gap, gap), ints(b, -1), keep_dims=True)
    return _scaled(b, b.Divide(gap, b.Sqrt(b.Add(spread, 1e-5))))


def norm_by_power(b: Builder, x: OutPort) -> OutPort:
    gap = b.Subtract(x, b.Unsqueeze(b.ReduceMean(x, ints(b, 2)), ints(b, -1)))
    spread = b.Unsqueeze(b.ReduceMean(b.Power(gap, 2.0), ints(b, 2)), ints(b, -1))
    return _scaled(b, b.Multiply(gap, b.Power(b.Add(spread, 1e-5), -0.5)))


def norm_by_squared_difference(b: Builder, x: OutPort) -> OutPort:
    mean = b.ReduceMean(x, ints(b, 2), keep_dims=True)
    spread = b.ReduceMean(b.SquaredDifference(x, mean), ints(b, 2), keep_dims=True)
    return b.Divide(b.Subtract(x, mean), b.Add(b.Sqrt(spread), 1e-3))


def root_mean_square_norm(b: Builder, x: OutPort) -> OutPort:
    spread = b.ReduceMean(b.Multiply(x, x), ints(b, 2), keep_dims=True)
    return b.Multiply(b.Divide(x, b.Sqrt(b.Add(spread, 1e-5))), weights(b, 37))


def unit_length(b: Builder, x: OutPort) -> OutPort:
    return b.NormalizeL2(x, ints(b, 2), eps=1e-6)


FORMS = [
    softmax,
    log_softmax,
    written_softmax,
    softmax_without_kept_dimensions,
    masked_softmax,
    norm,
    scaled_norm,
    written_norm,
    norm_by_power,
    norm_by_squared_difference,
    root_mean_square_norm,
    unit_length,
]


@pytest.mark.parametrize("make", FORMS)
def test_rows_are_one_group(make: Make) -> None:
    made = compiled(make, SHAPE)
    assert calls(made) == 1
    assert isinstance(made.steps.steps[0].works[0], Group)


@pytest.mark.parametrize("make", FORMS)
def test_rows_of_what_was_computed(make: Make) -> None:
    assert calls(compiled(lambda b, x: make(b, b.Sin(b.Exp(b.Multiply(x, 0.25)))), SHAPE)) <= 2


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 5, 7), (1, 33, 1), (4, 1, 16)])
def test_softmax_along_any_axis(axis: int, shape: tuple[int, ...]) -> None:
    compiled(lambda b, x: b.Softmax(x, axis=axis), shape)


def test_rows_side_by_side_in_a_reshaped_value_are_lanes() -> None:
    """[48, 16] read as [12, 64], along the first axis: neighbours in memory belong to neighbouring sums."""

    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MVN(b.Reshape(b.Relu(b.MatMul(x, weights(b, 24, 16))), ints(b, 12, 64)), ints(b, 0), eps=1e-5)

    made = compiled(make, (48, 24))
    assert not any(isinstance(work, Group) for step in made.steps.steps for work in step.works)


def test_norm_over_several_axes() -> None:
    assert calls(compiled(lambda b, x: b.MVN(x, ints(b, 1, 2, 3)), (2, 3, 4, 5))) == 1


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_rows_may_be_parts_of_an_axis(groups: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        rows = b.MVN(b.Reshape(x, ints(b, 2, groups, -1)), ints(b, 2), eps=1e-5, eps_mode=Inside.OUTSIDE_SQRT)
        return b.Multiply(b.Reshape(rows, ints(b, 2, 6, 4, 5)), weights(b, 6, 1, 1))

    assert calls(compiled(make, (2, 6, 4, 5))) == 1


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_groups_of_channels_keep_the_layout_of_pictures(groups: int) -> None:
    """Each channel has a mean, and the groups have one of these: the data stay as convolutions want them."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.GroupNormalization(conv(b, x, 12), weights(b, 12), weights(b, 12, seed=1), num_groups=groups)
        return conv(b, b.Relu(y), 8, seed=2)

    made = compiled(make, (2, 8, 9, 7))
    assert all(v.buffer.strides[1] == 1 for v in made.steps.values.values() if v.buffer.shape == (2, 12, 9, 7))


def test_more_points_of_the_only_row_than_one_thread_should_have() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Multiply(b.Subtract(x, b.ReduceMean(x, ints(b, 0, 1))), 2.0)

    assert calls(compiled(make, (100, 100))) == 1
    assert calls(compiled(make, (200, 100))) == 2


def test_groups_of_channels_of_pictures_of_any_size() -> None:
    def graph(h: Dim, w: Dim) -> Graph:
        made = Graph("norm")
        b = Builder(made)
        x = parameter(made, "x", 2, 12, h, w)
        result(made, b.GroupNormalization(x, weights(b, 12), weights(b, 12, seed=1), num_groups=3))
        return made

    made = stages(graph(Var("h", None, 1), Var("w", None, 1)), CompileOptions(level=None))
    assert calls(made) <= 5
    model = in_memory(made.built, threads=1)
    for h, w in ((1, 1), (4, 5), (17, 3), (64, 70)):
        check(model, graph(h, w), [np.random.default_rng(h).normal(size=(2, 12, h, w)).astype(np.float32)])


def test_attention_is_two_products_and_a_softmax() -> None:
    def make(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
        scores = b.Multiply(b.MatMul(q, k, transpose_b=True), 0.25)
        return b.MatMul(b.Softmax(scores, axis=-1), v)

    assert calls(compiled(make, (2, 3, 9, 16), (2, 3, 11, 16), (2, 3, 11, 8))) == 3


def test_residual_before_a_norm_is_kept_for_later() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Add(b.MatMul(x, weights(b, 16, 16)), x)
        return b.Add(b.MatMul(norm_of(b, y), weights(b, 16, 16, seed=1)), y)

    def norm_of(b: Builder, x: OutPort) -> OutPort:
        return b.MVN(x, ints(b, 1), eps=1e-5)

    assert calls(compiled(make, (5, 16))) == 3


def test_rows_that_are_too_long_for_temporaries() -> None:
    compiled(lambda b, x: b.Softmax(b.Exp(b.Sin(x)), axis=1), (2, 70_000))


def test_two_softmaxes_of_one_value() -> None:
    compiled(lambda b, x: (b.Softmax(x, axis=0), b.Softmax(x, axis=1)), (6, 9))


def test_a_group_that_would_depend_on_itself_is_not_made() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        top = b.ReduceMax(x, ints(b, 1), keep_dims=True)
        mixed = b.MatMul(top, weights(b, 1, 5))  # needs the rows' maxima, and reads across rows below
        turned = b.MatMul(mixed, weights(b, 5, 12), transpose_a=False)
        return b.Softmax(b.Add(b.Subtract(x, top), turned), axis=1)

    compiled(make, (7, 12))


def columns(b: Builder, x: OutPort) -> OutPort:
    """Softmax along columns of a product, which lies in rows."""
    return b.Softmax(b.MatMul(x, x, transpose_a=True, transpose_b=False), axis=1)


def rows_and_columns(b: Builder, x: OutPort) -> OutPort:
    y = b.MatMul(x, x, transpose_a=True, transpose_b=False)
    return b.Multiply(b.Softmax(y, axis=1), b.Softmax(y, axis=2))


def in_turns(b: Builder, x: OutPort) -> OutPort:
    y = b.MatMul(x, x, transpose_a=True, transpose_b=False)
    for axis in (1, 2, 1, 2):
        y = b.Subtract(y, b.Log(b.ReduceSum(b.Exp(y), ints(b, axis), keep_dims=True)))
    return y


def merged_columns(b: Builder, x: OutPort) -> OutPort:
    """Sums over tokens of heads, which are parts of a dimension of the product."""
    y = b.MatMul(b.Transpose(x, ints(b, 0, 2, 1)), weights(b, 8, 32), transpose_a=False, transpose_b=False)
    y = b.Transpose(b.Reshape(y, ints(b, 1, 40, 2, 16), special_zero=False), ints(b, 0, 2, 1, 3))
    y = b.Add(b.Elu(y, alpha=1.0), 1.0)
    return b.Multiply(y, b.ReduceSum(y, ints(b, 2), keep_dims=True))


@pytest.mark.parametrize(("make", "groups"), [(columns, 0), (rows_and_columns, 1), (in_turns, 2), (merged_columns, 0)])
def test_columns_run_in_lanes_over_rows(make: Make, groups: int) -> None:
    text = compiled(make, (1, 8, 40)).groups
    assert text.count("group rows") == groups
    assert "plain" not in text


def test_columns_of_places_in_pictures() -> None:
    """The factors are read reshaped: which lanes the product has is settled after the groups."""

    def make(b: Builder, x: OutPort) -> OutPort:
        return rows_and_columns(b, b.Reshape(x, ints(b, 1, 8, 40), special_zero=False))

    text = compiled(make, (1, 8, 5, 8)).groups
    assert text.count("group rows") == 1
    assert "plain" not in text


def test_more_rows_than_one_group_has() -> None:
    """Statements of a group are nested as deep as it has temporaries: beyond a number of members another begins."""

    def make(b: Builder, x: OutPort) -> OutPort:
        for _ in range(MEMBERS * 3 // 4):  # of four members each
            x = b.Softmax(b.Multiply(x, x), axis=2)
        return x

    works = [w for s in compiled(make, (1, 2, 8)).steps.steps for w in s.works]
    assert max(len(w.members) for w in works if isinstance(w, Group)) <= MEMBERS
