"""Variables: in bodies, and with sizes that only run time knows. The oracle is the interpreter, call by call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.opset.control.control_flow import If, Loop
from aot.opset.control.port_maps import InputMap, OutputMap
from aot.opset.control.state import Assign, ReadValue_3, ReadValue_6
from aot.options.texts import specialise_of
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UsageError
from aot.runtime.model import CompiledModel
from tests.dynamic.networks import CLOSE, compiled, parameter, result

ONE = np.ones((1, 3), np.float32)


def follows(make: Callable[[], Graph], calls: Sequence[Sequence[Array]]) -> CompiledModel:
    """Each call of one request gives what the interpreter gives, with the state that the calls before have left."""
    model, state = compiled(make()), dict[str, Array]()
    request = model.create_infer_request()
    for arrays in calls:
        found = request.infer(list(arrays))
        for i, expected in enumerate(interpret(make(), arrays, state=state)):
            assert found[i].shape == expected.shape
            np.testing.assert_allclose(found[i], expected, rtol=CLOSE)
    kept = {one.name: one.state for one in request.query_state()}
    assert set(kept) >= set(state)
    for name, expected in state.items():
        np.testing.assert_allclose(kept[name], expected, rtol=CLOSE)
    return model


# ---- in bodies


def adding(factor: float) -> Graph:
    """v = v (at first 10 x) + factor * x; gives v."""
    graph = Graph("body")
    build = Builder(graph)
    x = parameter(graph, "p", 1, 3)
    old = build(ReadValue_6("v", DType.F32, (1, 3)), build.Multiply(x, 10.0))
    new = build.Add(old, build.Multiply(x, factor))
    graph.add(Assign("v"), new)
    result(graph, new)
    return graph


def plain() -> Graph:
    graph = Graph("body")
    result(graph, parameter(graph, "p", 1, 3))
    return graph


def in_branches(then: Callable[[], Graph], other: Callable[[], Graph]) -> Callable[[], Graph]:
    def make() -> Graph:
        graph = Graph("branches")
        condition, x = parameter(graph, "c", dtype=DType.BOOL), parameter(graph, "x", 1, 3)
        maps = (InputMap(1, 0),), (OutputMap(0, 0),)
        node = graph.add(If(*maps, *maps), condition, x)
        node.regions = {"then": then(), "else": other()}
        result(graph, node.out_port(0))
        return graph

    return make


@pytest.mark.parametrize("order", ["tft", "ftf", "fft", "ttt"])
def test_a_branch_that_does_not_run_assigns_nothing(order: str) -> None:
    make = in_branches(lambda: adding(2.0), plain)
    follows(make, [(np.array(c == "t"), ONE * (i + 1)) for i, c in enumerate(order)])


def test_both_branches_assign() -> None:
    make = in_branches(lambda: adding(2.0), lambda: adding(-1.0))
    follows(make, [(np.array(c), ONE) for c in (True, False, False, True)])


def loop(body: Graph, *, outside: bool) -> Graph:
    """Runs the body n times on x; with `outside`, the network reads the variable before and assigns it after."""
    graph = Graph("loop")
    build = Builder(graph)
    n, x = parameter(graph, "n", dtype=DType.I64), parameter(graph, "x", 1, 3)
    first = build(ReadValue_6("v", DType.F32, (1, 3)), x) if outside else x
    maps = (InputMap(2, 0),), (OutputMap(0, 0, axis=0),), ()
    node = graph.add(Loop(*maps), n, build.const(True, DType.BOOL), x)
    node.regions = {"body": body}
    result(graph, node.out_port(0))
    result(graph, first)
    if outside:
        graph.add(Assign("v"), build.Negative(first))
    return graph


@pytest.mark.parametrize("outside", [False, True])
def test_the_next_iteration_reads_what_the_last_one_assigned(outside: bool) -> None:
    make = lambda: loop(adding(1.0), outside=outside)  # noqa: E731
    follows(make, [(np.array(n), ONE * (i + 1)) for i, n in enumerate((3, 0, 1, 5))])


def test_a_loop_that_compile_time_counts_is_put_in_place() -> None:
    def make() -> Graph:
        graph = loop(adding(1.0), outside=False)
        (node,) = graph.get_op_nodes("Loop")
        node.in_port(0).connect(Builder(graph).const(3, DType.I64))
        return graph

    follows(make, [(np.array(9), ONE), (np.array(9), ONE)])


def test_a_branch_in_a_loop_assigns() -> None:
    """In even iterations the variable grows; all variables of the inner body are those of the network."""

    def make() -> Graph:
        body = Graph("body")
        build = Builder(body)
        i, x = parameter(body, "i", dtype=DType.I64), parameter(body, "p", 1, 3)
        even = build.Equal(build.Mod(i, 2), 0)
        maps = (InputMap(1, 0),), (OutputMap(0, 0),)
        node = body.add(If(*maps, *maps), even, x)
        node.regions = {"then": adding(1.0), "else": plain()}
        result(body, node.out_port(0))
        graph = Graph("nested")
        build = Builder(graph)
        n, x = parameter(graph, "n", dtype=DType.I64), parameter(graph, "x", 1, 3)
        maps = (InputMap(2, 1),), (OutputMap(0, 0, axis=0),), ()
        node = graph.add(Loop(*maps, current_iteration=0), n, build.const(True, DType.BOOL), x)
        node.regions = {"body": body}
        result(graph, node.out_port(0))
        return graph

    follows(make, [(np.array(n), ONE) for n in (4, 1, 0, 3)])


def test_later_operations_of_a_body_read_what_was_assigned() -> None:
    def make() -> Graph:
        body = Graph("body")
        build = Builder(body)
        x = parameter(body, "p", 1, 3)
        first = build.Add(build(ReadValue_3("v"), x), 1.0)
        passed = body.add(Assign("v"), first).out_port(0)
        second = build(ReadValue_3("v"), build.Multiply(passed, 100.0))
        result(body, build.Add(first, second))
        return loop(body, outside=False)

    follows(make, [(np.array(2), ONE), (np.array(1), ONE * 7)])


# ---- sizes that vary


def cache(*, initial: bool = True, heads: int = 2, shape: tuple[int | Var, ...] | None = None) -> Graph:
    """KV cache: k grows by the rows of x in each call; gives all rows times their number, and its sum."""
    graph = Graph("cache")
    build = Builder(graph)
    x = parameter(graph, "x", 1, Var("n", None, 1), heads)
    op = ReadValue_6("k", DType.F32, shape or (1, Var("past"), heads))
    old = build(op, build.const(np.zeros((1, 0, heads)), DType.F32)) if initial else build(op)
    new = build.Concat(old, x, axis=1)
    graph.add(Assign("k"), new)
    result(graph, build.Multiply(new, 3.0))
    result(graph, build.ReduceSum(new, build.const([1], DType.I64)))
    return graph


def rows(count: int, heads: int = 2) -> Array:
    return np.random.default_rng(count).standard_normal((1, count, heads)).astype(np.float32)


@pytest.mark.parametrize("initial", [False, True])
def test_a_cache_grows_beyond_its_capacity(initial: bool) -> None:
    follows(lambda: cache(initial=initial), [(rows(n),) for n in (1, 1, 7, 60, 200, 1, 3)])


def two_caches() -> Graph:
    """Variables that lie behind each other move when the first one grows; another one of fixed size stays."""
    graph = cache()
    build = Builder(graph)
    x = graph.parameters[0].out_port(0)
    total = build.ReduceSum(x, build.const([1], DType.I64))
    old = build(ReadValue_3("m"), build(ReadValue_6("other", DType.F32, (1, Var("rows"), 2)), total_rows(build, x)))
    graph.add(Assign("other"), build.Concat(old, x, x, axis=1))
    graph.add(Assign("m"), old)
    fixed = build(ReadValue_3("f"), total)
    graph.add(Assign("f"), build.Add(fixed, total))
    result(graph, old)
    result(graph, fixed)
    return graph


def total_rows(build: Builder, x: OutPort) -> OutPort:
    return build.Multiply(x, 0.5)


def test_variables_move_when_others_grow() -> None:
    follows(two_caches, [(rows(n),) for n in (2, 1, 40, 3)])


def test_a_request_has_a_cache_of_its_own_and_forgets_it() -> None:
    model = compiled(cache())
    one, other = model.create_infer_request(), model.create_infer_request()
    one.infer(rows(5))
    assert other.infer(rows(2))[0].shape == (1, 2, 2)
    assert one.infer(rows(1))[0].shape == (1, 6, 2)
    one.reset_state()
    assert one.infer(rows(4))[0].shape == (1, 4, 2)


def test_variables_are_read_and_set_by_hand() -> None:
    request = compiled(two_caches()).create_infer_request()
    states = {one.name: one for one in request.query_state()}
    assert states["k"].state.shape == (1, 0, 2)
    states["k"].state = rows(100)
    states["f"].state = np.full((1, 2), 5, np.float32)
    np.testing.assert_array_equal(states["k"].state, rows(100))
    found = request.infer(rows(3))
    np.testing.assert_allclose(found[0], np.concatenate([rows(100), rows(3)], 1) * 3, rtol=CLOSE)
    np.testing.assert_array_equal(found[3], np.full((1, 2), 5))
    assert states["k"].state.shape == (1, 103, 2)
    states["k"].reset()
    assert request.infer(rows(2))[0].shape == (1, 2, 2)
    with pytest.raises(UsageError, match=r"variable 'k': expected f32\[1,\?,2\], got f32\[1,4,3\]"):
        states["k"].state = rows(4, 3)


def growing_loop() -> Graph:
    """Each iteration adds a row to a variable that varies: in a body, and with sizes of the loop."""
    body = Graph("body")
    build = Builder(body)
    x = parameter(body, "p", 1, 3)
    old = build(ReadValue_6("v", DType.F32, (Var("r"), 3)), build.Multiply(x, -1.0))
    new = build.Concat(old, x, axis=0)
    body.add(Assign("v"), new)
    result(body, build.ReduceSum(new, build.const([0], DType.I64), keep_dims=True))
    return loop(body, outside=False)


def test_a_variable_grows_in_a_loop() -> None:
    follows(growing_loop, [(np.array(n), ONE * (i + 1)) for i, n in enumerate((2, 0, 5, 1))])


def test_variables_declared_dynamic_may_be_fixed() -> None:
    """Declared as ?, but always of one size: it costs nothing more than a variable of fixed size."""

    def make() -> Graph:
        graph = Graph("fixed")
        build = Builder(graph)
        x = parameter(graph, "x", 1, 3)
        old = build(ReadValue_6("v", DType.F32, (Var("a"), Var("b"))), x)
        graph.add(Assign("v"), build.Add(old, x))
        result(graph, old)
        return graph

    model = follows(make, [(ONE,), (ONE,)])
    (state,) = model.create_infer_request().query_state()
    assert state.state.shape == (1, 3)


def test_assigned_types_must_fit_the_declaration() -> None:
    graph = cache(shape=(1, Var("past"), 2))
    (sink,) = graph.sinks
    build = Builder(graph)
    sink.in_port(0).connect(build.const(np.zeros((1, 2, 3)), DType.F32))
    with pytest.raises(ModelError, match=r"Assign: variable 'k' is f32\[1,\?,2\], got f32\[1,2,3\]"):
        compiled(graph)


def test_versions_keep_the_same_variables() -> None:
    """The version for one row and the general one take turns on one cache."""
    model, state = compiled(cache(), specialise=specialise_of(["n=1"])), dict[str, Array]()
    request = model.create_infer_request()
    for n in (5, 1, 1, 80, 1, 2):
        (expected, total) = interpret(cache(), [rows(n)], state=state)
        found = request.infer(rows(n))
        np.testing.assert_allclose(found[0], expected, rtol=CLOSE)
        np.testing.assert_allclose(found[1], total, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
def test_a_cache_as_openvino_has_it(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    ops, util = ov.opset13, pytest.importorskip("openvino.op.util")
    info = util.VariableInfo()
    info.variable_id, info.data_type, info.data_shape = "k", ov.Type.f32, ov.PartialShape([1, -1, 4])
    variable = util.Variable(info)
    x = ops.parameter([1, -1, 4], np.float32, name="x")
    joined = ops.concat([ops.read_value(ops.constant(np.ones((1, 2, 4), np.float32)), variable), x], 1)
    mean = ops.reduce_mean(joined, ops.constant([1]), True)
    network = ov.Model([ops.result(ops.subtract(joined, mean))], [ops.assign(joined, variable)], [x], "cache")
    ov.save_model(network, tmp_path / "m.xml", compress_to_fp16=False)
    one = ov.Core().compile_model(network, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    other = compile_model(tmp_path / "m.xml", threads=1).create_infer_request()
    for n in (5, 1, 100, 0, 1):
        if not n:
            one.reset_state()
            other.reset_state()
            continue
        data = rows(n, 4)
        np.testing.assert_allclose(other.infer(data)[0], one.infer([data])[0], rtol=1e-4, atol=1e-5)
        (mine,), (theirs,) = other.query_state(), one.query_state()
        assert mine.name == theirs.name
        np.testing.assert_array_equal(mine.state, theirs.state.data)
