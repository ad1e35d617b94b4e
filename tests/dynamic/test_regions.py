"""Networks inside of networks, and variables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.opset.control.control_flow import If, Loop, TensorIterator
from aot.opset.control.infrastructure import Parameter
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.opset.control.state import Assign, ReadValue_3
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError, UsageError
from tests.dynamic.networks import check, compiled, parameter, result

X = np.arange(8, dtype=np.float32).reshape(2, 4) - 3


def body(*shapes: tuple[int, ...]) -> tuple[Graph, Builder, list[OutPort]]:
    graph = Graph("body")
    return graph, Builder(graph), [parameter(graph, f"p{i}", *s) for i, s in enumerate(shapes)]


def branch(factor: float) -> Graph:
    graph, build, (x,) = body((2, 4))
    result(graph, build.Multiply(x, build.const(factor, DType.F32)))
    return graph


def test_if_chooses_at_run_time() -> None:
    graph = Graph("if")
    condition, x = parameter(graph, "c", dtype=DType.BOOL), parameter(graph, "x", 2, 4)
    maps = (InputMap(1, 0),), (OutputMap(0, 0),)
    node = graph.add(If(*maps, *maps), condition, x)
    node.regions = {"then": branch(2.0), "else": branch(-1.0)}
    result(graph, node.out_port(0))
    model = compiled(graph)
    for chosen, factor in ((True, 2.0), (False, -1.0)):
        assert np.array_equal(model([np.array(chosen), X])[0], X * factor)


def accumulate() -> Graph:
    graph, build, (part, sum_) = body((2, 1), (2, 1))
    total = build.Add(part, sum_)
    result(graph, total)
    return graph


def iterated(stride: int) -> Graph:
    graph = Graph("iterator")
    build = Builder(graph)
    x = parameter(graph, "x", 2, 4)
    start, end = (0, -1) if stride > 0 else (-1, 0)
    maps = (InputMap(0, 0, axis=1, start=start, end=end, stride=stride), InputMap(1, 1))
    outs = (OutputMap(0, 0), OutputMap(1, 0, axis=1, start=start, end=end, stride=stride))
    zero = build.const(np.zeros((2, 1)), DType.F32)
    node = graph.add(TensorIterator(maps, outs, (BackEdge(0, 1),)), x, zero, outputs=2)
    node.regions = {"body": accumulate()}
    for port in node.out_ports().values():
        result(graph, port)
    return graph


def test_tensor_iterator_goes_both_ways() -> None:
    for stride in (1, -1):
        check(compiled(iterated(stride)), iterated(stride), [X])


def looped() -> Graph:
    """At most 6 times x + x, as long as its sum is below 100."""
    inner, build, (x,) = body((2, 4))
    twice = build.Add(x, x)
    total = build.ReduceSum(twice, build.const([0, 1], DType.I64))
    result(inner, twice)
    result(inner, build.Less(total, build.const(100, DType.F32)))
    graph = Graph("loop")
    build = Builder(graph)
    x = parameter(graph, "x", 2, 4)
    maps = (InputMap(2, 0),), (OutputMap(0, 0),), (BackEdge(0, 0),)
    trips, going = build.const(6, DType.I64), build.const(True, DType.BOOL)
    node = graph.add(Loop(*maps, execution_condition=1), trips, going, x)
    node.regions = {"body": inner}
    result(graph, node.out_port(0))
    return graph


def test_loop_ends_by_its_condition_or_count() -> None:
    model = compiled(looped())
    for x in (X, X + 1, X * 0, X + 100):
        check(model, looped(), [x])


def test_state_is_kept_by_a_request_and_reset() -> None:
    graph = Graph("state")
    build = Builder(graph)
    x = parameter(graph, "x", 2, 4)
    old = build(ReadValue_3("v"), build.Multiply(x, build.const(10, DType.F32)))
    new = build.Add(old, x)
    graph.add(Assign("v"), new)
    result(graph, new)
    model = compiled(graph)
    one, other = model.create_infer_request(), model.create_infer_request()
    assert np.array_equal(one.infer(X)[0], 11 * X)
    assert np.array_equal(one.infer(X)[0], 12 * X)
    assert np.array_equal(other.infer(X)[0], 11 * X)
    one.reset_state()
    assert np.array_equal(one.infer(X)[0], 11 * X)


def test_state_written_from_permuted_state() -> None:
    graph = Graph("shift")
    build = Builder(graph)
    x = parameter(graph, "x", 4, 4)
    old = build(ReadValue_3("v"), x)
    new = build.Transpose(old, build.const([1, 0], DType.I64))
    graph.add(Assign("v"), new)
    result(graph, build.Add(new, x))
    request = compiled(graph).create_infer_request()
    data = np.arange(16, dtype=np.float32).reshape(4, 4)
    for kept in (data.T, data, data.T):
        assert np.array_equal(request.infer(data)[0], kept + data)


def ranked(then: Graph, other: Graph, follow: Callable[[Builder, OutPort, OutPort], OutPort]) -> Graph:
    """y = follow(If(c, x) {then} {other}, z)"""
    graph = Graph("ranks")
    build = Builder(graph)
    condition, x = parameter(graph, "c", dtype=DType.BOOL), parameter(graph, "x", 2, 4)
    z = parameter(graph, "z", 4)
    maps = (InputMap(1, 0),), (OutputMap(0, 0),)
    node = graph.add(If(*maps, *maps), condition, x, name="choice")
    node.regions = {"then": then, "else": other}
    result(graph, follow(build, node.out_port(0), z))
    return graph


def reduced(*axes: int) -> Graph:
    """Sums over axes, which vanish."""
    graph, build, (x,) = body((2, 4))
    result(graph, build.ReduceSum(x, build.const(list(axes), DType.I64)) if axes else build.Relu(x))
    return graph


Z = np.arange(4, dtype=np.float32)


def flat_sum(build: Builder, y: OutPort, z: OutPort) -> OutPort:
    flat = build.Reshape(build.Multiply(y, z), build.const([-1], DType.I64), special_zero=False)
    return build.ReduceMax(flat, build.const([0], DType.I64))


def test_branches_of_different_rank_are_settled_by_what_follows() -> None:
    model = compiled(ranked(reduced(0), reduced(), flat_sum))
    assert model([np.array(True), X, Z])[0] == (X.sum(0) * Z).max()
    assert model([np.array(False), X, Z])[0] == (np.maximum(X, 0) * Z).max()


def test_an_output_has_one_rank() -> None:
    with pytest.raises(UnsupportedError, match=r"'choice': an output of the network has one rank, got f32\[4\] where"):
        compiled(ranked(reduced(0), reduced(), lambda build, y, z: build.Add(y, z)))


def test_only_one_branch_fits_what_follows() -> None:
    """A number is no operand of a product of matrices."""
    model = compiled(ranked(reduced(), reduced(0, 1), lambda build, y, z: build.MatMul(y, z)))
    np.testing.assert_allclose(model([np.array(True), X, Z])[0], np.maximum(X, 0) @ Z)
    with pytest.raises(UsageError, match="If 'choice': its branches give different ranks"):
        model([np.array(False), X, Z])


def test_a_rule_of_a_branch_says_nothing_outside_of_it() -> None:
    """In `then` the count must be 4; memory for what is made of the count outside is not laid out for that."""
    graph = Graph("facts")
    build = Builder(graph)
    condition, count = parameter(graph, "c", dtype=DType.BOOL), parameter(graph, "n", dtype=DType.I64)
    long = build.Broadcast(build.const(1.0, DType.F32), build.Reshape(count, build.const([1], DType.I64)))
    bodies: dict[str, Graph] = {}
    for name in ("then", "else"):
        inner = Graph(name)
        port, made = inner.add(Parameter(DType.F32, None)).out_port(0), Builder(inner)
        four = made.Reshape(port, made.const([4], DType.I64))
        axis = made.const([0], DType.I64)
        result(inner, made.ReduceSum(four, axis) if name == "then" else made.ReduceMax(port, axis))
        bodies[name] = inner
    maps = (InputMap(1, 0),), (OutputMap(0, 0),)
    node = graph.add(If(*maps, *maps), condition, long)
    node.regions = bodies
    result(graph, build.Add(long, node.out_port(0)))
    model = compiled(graph)
    for n in (4, 1000):
        assert np.array_equal(model([np.array(False), np.array(n)])[0], np.full(n, 2, np.float32))
    assert np.array_equal(model([np.array(True), np.array(4)])[0], np.full(4, 5, np.float32))


@pytest.mark.parametrize("n", [1, 3])
def test_squeeze_without_axes_over_a_size_that_varies(n: int) -> None:
    graph = Graph("squeeze")
    build, x = Builder(graph), parameter(graph, "x", Var("n", None), 1, 4)
    squeezed = build.Softmax(build.Squeeze(x), axis=-1)
    result(graph, build.Reshape(squeezed, build.const([-1], DType.I64)))
    data = np.arange(4 * n, dtype=np.float32).reshape(n, 1, 4)
    powers = np.exp(data - data.max(-1, keepdims=True))
    np.testing.assert_allclose(compiled(graph)([data])[0], (powers / powers.sum(-1, keepdims=True)).reshape(-1), 1e-6)


def test_squeeze_without_axes_before_what_fits_one_rank() -> None:
    graph = Graph("squeeze")
    build, x = Builder(graph), parameter(graph, "x", Var("n", None), 1, 4)
    result(graph, build.Transpose(build.Squeeze(x), build.const([1, 0], DType.I64)))
    model = compiled(graph)
    data = np.arange(12, dtype=np.float32).reshape(3, 1, 4)
    assert np.array_equal(model([data])[0], data.reshape(3, 4).T)
    with pytest.raises(UsageError, match="neither what it reads nor what follows fits the branch"):
        model([data[:1]])


def test_squeeze_without_axes_that_decides_the_rank_of_an_output() -> None:
    graph = Graph("squeeze")
    result(graph, Builder(graph).Squeeze(parameter(graph, "x", Var("n", None), 1, 4), name="narrow"))
    with pytest.raises(UnsupportedError, match=r"Squeeze 'narrow': .* got f32\[4\] where n is 1, .*--dim n=N"):
        compiled(graph)
    several = Graph("several")
    result(several, Builder(several).Squeeze(parameter(several, "x", Var("n", None), Var("m", None)), name="narrow"))
    with pytest.raises(UnsupportedError, match=r"Squeeze 'narrow': without axes, .*--dim m=N --dim n=N"):
        compiled(several)
