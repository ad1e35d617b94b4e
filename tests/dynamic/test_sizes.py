"""One compiled model at many sizes; sizes that do not fit are refused, in words."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.options.texts import dims_of, shapes_of
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UsageError
from tests.dynamic.networks import H, N, W, check, compiled, conv_net, mlp, parameter, pyramid, result, weights
from tests.lowering.check import asks


def noise(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_mlp_runs_at_any_batch() -> None:
    model, oracle = compiled(mlp()), mlp()
    for n in (1, 2, 3, 7, 13, 64):
        check(model, oracle, [noise(n, 20)])


def test_conv_net_runs_at_any_size() -> None:
    model, oracle = compiled(conv_net()), conv_net()
    for shape in ((1, 3, 8, 8), (2, 3, 17, 30), (1, 3, 31, 5), (3, 3, 6, 64)):
        check(model, oracle, [noise(*shape)])


def test_a_pyramid_reads_padding_in_halos() -> None:
    """A rule makes the sizes equal of an input and of its halved and doubled copy."""
    made = stages(pyramid(), CompileOptions(level=None))
    assert not asks(made)
    model, oracle = in_memory(made.built, threads=1), pyramid()
    for shape in ((1, 3, 8, 8), (2, 3, 4, 12)):
        check(model, oracle, [noise(*shape)])
    with pytest.raises(UsageError, match="Concat"):
        model(noise(1, 3, 5, 8))


def strided() -> Graph:
    """x[n, 64, h, w] with a stride of 2, by fewer products."""
    graph = Graph("strided")
    build = Builder(graph)
    around = {"pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    x = parameter(graph, "x", N, 64, H, W)
    result(graph, build.Relu(build.Convolution(x, weights(build, 64, 64, 3, 3), strides=(2, 2), **around)))
    return graph


def test_every_other_output_at_any_size() -> None:
    made = stages(strided(), CompileOptions(level=None))
    assert any(".winograd" in name for name in made.steps.values)
    model, oracle = in_memory(made.built, threads=1), strided()
    for shape in ((1, 64, 8, 8), (2, 64, 17, 30), (1, 64, 31, 5), (3, 64, 6, 64), (1, 64, 1, 1)):
        check(model, oracle, [noise(*shape)])


def attention() -> Graph:
    """x[1, w, 48]: queries, keys and values of three heads by one product."""
    graph = Graph("attention")
    build = Builder(graph)
    whole = build.MatMul(parameter(graph, "x", 1, W, 48), weights(build, 48, 144))
    parts = build.Transpose(
        build.Reshape(whole, build.const([-1, 3, 3, 16], DType.I64)), build.const([1, 2, 0, 3], DType.I64)
    )
    q, k, v = (build.Gather(parts, build.const(n, DType.I64), build.const(0, DType.I64)) for n in range(3))
    result(graph, build.MatMul(build.Softmax(build.MatMul(q, k, transpose_b=True), axis=-1), v))
    return graph


def test_keys_are_copied_at_any_length() -> None:
    made = stages(attention(), CompileOptions(level=None))
    assert any(name.endswith(".keys") for name in made.steps.values)
    model, oracle = in_memory(made.built, threads=1), attention()
    for n in (1, 2, 17, 64, 130):
        check(model, oracle, [noise(1, n, 48)])


def test_equal_bits_for_any_number_of_threads() -> None:
    model = stages(conv_net(), CompileOptions(level=None))
    x = noise(2, 3, 133, 141)
    one, two = (in_memory(model.built, threads)(x) for threads in (1, 2))
    assert all(np.array_equal(one[i], two[i]) for i in range(2))


def added() -> Graph:
    graph = Graph("add")
    build = Builder(graph)
    a, b = parameter(graph, "a", N, 4), parameter(graph, "b", Var("m"), 4)
    result(graph, build.Add(a, b))
    return graph


def test_sizes_that_may_be_one_stretch() -> None:
    model, oracle = compiled(added()), added()
    for n, m in ((3, 3), (1, 3), (3, 1)):
        check(model, oracle, [noise(n, 4), noise(m, 4)])
    with pytest.raises(UsageError, match=r"dimension 0 .* n = 2, m = 3"):
        model([noise(2, 4), noise(3, 4)])


def test_one_name_is_one_size() -> None:
    model = compiled(added(), shapes=shapes_of(["a=batch,4", "b=batch,4"]), dims=dims_of(["batch=1..8"]))
    check(model, added(), [noise(5, 4), noise(5, 4)])
    with pytest.raises(UsageError, match="input 'b' must be 2, as 'batch' is in dimension 0 of input 'a', got 3"):
        model([noise(2, 4), noise(3, 4)])
    with pytest.raises(UsageError, match="input 'a': dimension 0 'batch' must be 1 to 8, got 9"):
        model([noise(9, 4), noise(9, 4)])


def test_shapes_can_be_fixed_and_named() -> None:
    fixed = compiled(conv_net(), shapes=shapes_of(["x=1x3x16x16"]))
    check(fixed, conv_net(), [noise(1, 3, 16, 16)])
    assert all(isinstance(d, int) for d in fixed.inputs[0].shape)
    square = compiled(conv_net(), shapes=shapes_of(["x=2,3,side,side"]), dims=dims_of(["side=8..64"]))
    check(square, conv_net(), [noise(2, 3, 20, 20)])
    with pytest.raises(UsageError, match="'side'"):
        square(noise(2, 3, 20, 21))


def test_dimensions_of_the_file_can_be_replaced() -> None:
    def fixed() -> Graph:
        graph = Graph("fixed")
        build = Builder(graph)
        x = parameter(graph, "x", 1, 4, 6)
        result(graph, build.Relu(build.MatMul(x, weights(build, 6, 3))))
        return graph

    model = compiled(fixed(), shapes=shapes_of(["x=n,5,?"]))
    for n in (1, 3):
        check(model, fixed(), [noise(n, 5, 6)])
    with pytest.raises(ShapeError, match="inner dimensions must be equal") as caught:
        compiled(fixed(), shapes=shapes_of(["x=1x4x7"]))
    assert "with the shapes that were given for inputs" in caught.value.__notes__[-1]


def test_the_only_input_needs_no_name() -> None:
    for given in ("1,3,16,16", "1x3x16x16", "[1,3,16,16]"):
        assert compiled(conv_net(), shapes=shapes_of([given])).inputs[0].shape == (1, 3, 16, 16)
    assert str(compiled(conv_net(), shapes=shapes_of(["n,3,16,w"])).inputs[0]) == "f32[n,3,16,w]"
    with pytest.raises(UsageError, match="shape: must be INPUT=SHAPE"):
        shapes_of(["x"])


@pytest.mark.parametrize("given", ["x=1x3x16", "y=1x3x16x16"])
def test_shapes_must_fit_the_model(given: str) -> None:
    with pytest.raises(UsageError, match="--shape"):
        compiled(conv_net(), shapes=shapes_of([given]))


@pytest.mark.parametrize("text", ["batch=", "batch=4..1", "=1..2", "1..2"])
def test_malformed_dims_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="dim"):
        dims_of([text])


def test_shape_arithmetic_is_solved() -> None:
    def graph() -> Graph:
        made = Graph("shapes")
        build = Builder(made)
        x = parameter(made, "x", N, Var("s"), 12)
        sizes = build.ShapeOf(x)
        first = build.Gather(sizes, build.const([0, 1], DType.I64), build.const(0, DType.I64))
        heads = build.Reshape(x, build.Concat(first, build.const([3, 4], DType.I64), axis=0))
        moved = build.Transpose(heads, build.const([0, 2, 1, 3], DType.I64))
        scores = build.MatMul(moved, moved, transpose_b=True)
        result(made, build.Softmax(scores, axis=-1))
        return made

    model, oracle = compiled(graph()), graph()
    for n, s in ((1, 1), (2, 5), (1, 37)):
        check(model, oracle, [noise(n, s, 12)])


def tiles_net(pad: int) -> Graph:
    """Two 3x3 convolutions, a sum with what came before and a third one with stride 2: Winograd at run-time sizes."""
    graph = Graph("tiles")
    build = Builder(graph)
    x = parameter(graph, "x", N, 16, H, W)
    around = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (pad, pad), "pads_end": (pad, pad)}
    first = build.Relu(build.Convolution(x, weights(build, 24, 16, 3, 3), **around))
    second = build.Convolution(first, weights(build, 24, 24, 3, 3, seed=1), **around)
    result(graph, second)
    result(graph, build.MaxPool(build.Relu(second), strides=(2, 2), kernel=(2, 2), pads_begin=(0, 0), pads_end=(0, 0)))
    return graph


@pytest.mark.parametrize("pad", [0, 1])
def test_winograd_at_any_size(pad: int) -> None:
    asked = stages(tiles_net(pad), CompileOptions(level=None))
    assert "winograd" in asked.groups
    model, oracle, two = in_memory(asked.built, 1), tiles_net(pad), in_memory(asked.built, 2)
    for shape in ((1, 16, 8, 8), (1, 16, 13, 7), (2, 16, 9, 22), (3, 16, 31, 30), (5, 16, 6, 6)):
        x = noise(*shape)
        check(model, oracle, [x])
        assert all(np.array_equal(model(x)[i], two(x)[i]) for i in range(2))


@pytest.mark.parametrize("step", [1, 3])
def test_winograd_in_one_direction_at_any_length(step: int) -> None:
    graphs: list[Graph] = []
    for _ in range(2):
        made = Graph("time")
        build = Builder(made)
        x = parameter(made, "x", N, 32, W)
        w = weights(build, 64, 32, 5)
        pads = 2 * step
        result(made, build.Convolution(x, w, strides=(1,), dilations=(step,), pads_begin=(pads,), pads_end=(pads - 1,)))
        graphs.append(made)
    asked = stages(graphs[0], CompileOptions(level=None))
    assert "winograd" in asked.groups
    model, two = in_memory(asked.built, 1), in_memory(asked.built, 2)
    for shape in ((1, 32, 5), (2, 32, 12), (1, 32, 333), (3, 32, 64)):
        x = noise(*shape)
        check(model, graphs[1], [x])
        assert np.array_equal(model(x)[0], two(x)[0])


def test_deep_winograd_at_any_size() -> None:
    graphs: list[Graph] = []
    for _ in range(2):
        made = Graph("deep")
        build = Builder(made)
        x = parameter(made, "x", N, 16, Var("d"), H, W)
        w = weights(build, 24, 16, 3, 3, 3)
        ones = (1, 1, 1)
        result(made, build.Convolution(x, w, strides=ones, dilations=ones, pads_begin=ones, pads_end=ones))
        graphs.append(made)
    asked = stages(graphs[0], CompileOptions(level=None))
    assert "winograd" in asked.groups
    model, two = in_memory(asked.built, 1), in_memory(asked.built, 2)
    for shape in ((1, 16, 1, 8, 8), (2, 16, 3, 9, 7), (1, 16, 6, 17, 12)):
        x = noise(*shape)
        check(model, graphs[1], [x])
        assert np.array_equal(model(x)[0], two(x)[0])
