"""Extensions in one file: operations and rewrites as functions, conversions of foreign operations."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import aot
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.scope import Scope, within
from aot.opset.base.composed import ComposedOp, operation
from aot.passes.pattern import PatternRule, rewrite
from aot.passes.rewrite import RuleSet
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, UnsupportedError, UsageError
from tests.frontends.pt2.test_operations import FAMILIES, contents, saved
from tests.frontends.tf import graphs
from tests.frontends.tflite import models
from tests.passes.check import after, graph_of, operations

EXAMPLE = Path(__file__).parents[2] / "examples" / "extensions" / "decorators"
SHAPE = (2, 3, 4)
MODEL = """<ir_version: 10, opset_import: ["": 21, "me": 1]> m (float[n,3] x) => (float[n,3] y) {
    t = me.ScaledTanh <scale = 3.0> (x)
    a = Relu(t)
    b = Relu(t)
    y = Add(a, b)
}"""


@rewrite(lambda p, x: p.Multiply(x, p.Sigmoid(x)))
def swish(build: Builder, x: OutPort) -> OutPort:
    """x * Sigmoid(x) -> Swish(x)"""
    return build.Swish(x)


@rewrite(lambda p, x, c: p.Softmax(p.Add(x, p.constant(c)), axis=lambda a: a in (1, -2)))
def unshifted(build: Builder, x: OutPort, c: OutPort) -> OutPort | None:
    """Softmax(x + c) -> Softmax(x) for one number"""
    return build.Softmax(x, axis=1) if c.value is not None and c.value.size == 1 else None


def halves(p: Any, x: Any) -> Any:
    split = p.Split(x, 1, num_splits=2)
    return p.Concat(split[0], split[1], axis=1)


@rewrite(halves)
def joined(build: Builder, x: OutPort) -> OutPort:
    """Concat(Split(x)) -> x"""
    return build.Identity(x)


def split(b: Builder, x: OutPort, swapped: bool = False) -> OutPort:
    made = b.Split(x, b.const(1, DType.I64), num_splits=2, outputs=2).node
    order = (1, 0) if swapped else (0, 1)
    return b.Concat(*(made.out_port(i) for i in order), axis=1)


CASES: list[tuple[PatternRule, Any, list[str]]] = [
    (swish, lambda b, x: b.Multiply(x, b.Sigmoid(x)), ["Swish"]),
    (swish, lambda b, x: b.Multiply(b.Sigmoid(x), x), ["Swish"]),
    (swish, lambda b, x: b.Multiply(b.Relu(x), b.Sigmoid(x)), ["Relu", "Sigmoid", "Multiply"]),
    (unshifted, lambda b, x: b.Softmax(b.Add(2.0, x), axis=1), ["Softmax"]),
    (unshifted, lambda b, x: b.Softmax(b.Add(x, 2.0), axis=2), ["Add", "Softmax"]),
    (unshifted, lambda b, x: b.Softmax(b.Add(x, b.const([1, 2, 3, 4], DType.F32)), axis=1), ["Add", "Softmax"]),
    (unshifted, lambda b, x: b.Softmax(b.Add(x, b.Relu(x)), axis=1), ["Relu", "Add", "Softmax"]),
]


@pytest.mark.parametrize(("rule", "make", "left"), CASES, ids=range(len(CASES)))
def test_patterns_fit_tensors_constants_and_attributes(rule: PatternRule, make: Any, left: list[str]) -> None:
    assert after([RuleSet("rules", (rule,))], make, SHAPE) == left


def test_outputs_of_one_operation_are_told_apart() -> None:
    assert after([RuleSet("rules", (joined,))], split, (2, 4)) == ["Identity"]
    swapped = [RuleSet("rules", (joined,))], lambda b, x: split(b, x, swapped=True)
    assert after(*swapped, (2, 4)) == ["Split", "Concat"]


@pytest.mark.parametrize(
    ("make", "matched", "reason"),
    [
        (lambda b, x: b.Softmax(b.Add(x, 2.0), axis=2), 0, "whose axis is 2"),
        (lambda b, x: b.Softmax(b.Relu(x), axis=1), 1, "is made by Relu 'Relu_1', not by Add"),
        (lambda b, x: b.Softmax(b.Add(x, x), axis=1), 2, "is no constant: it is made by Parameter 'x0'"),
    ],
)
def test_attempts_tell_how_far_a_pattern_fits(make: Any, matched: int, reason: str) -> None:
    graph = graph_of(make, SHAPE)
    found, stop = unshifted.attempt(graph.results[0].source(0).node)
    assert (found, stop.matched, unshifted.size) == (None, matched, 2)
    assert reason in stop.reason


WRONG: list[tuple[Any, Any, str]] = [
    (lambda p, x: p.Relux(x), lambda b, x: x, "did you mean Relu"),
    (lambda p, x: p.Softmax(x, axi=1), lambda b, x: x, "Softmax has the attributes axis, got axi"),
    (lambda p, x: x, lambda b, x: x, "a pattern must return an operation"),
    (lambda p, x: p.Relu("x"), lambda b, x: x, "inputs of Relu must be parameters, operations or numbers"),
    (lambda p, x: p.Relu(x), lambda b, y: y, "has the parameters of the pattern behind the first one, x, got y"),
]


@pytest.mark.parametrize(("pattern", "function", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_patterns_are_refused_when_they_are_declared(pattern: Any, function: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rewrite(pattern)(function)


def declared(function: Any) -> type[ComposedOp]:
    function.__module__ = "extension"
    return operation(function)


def test_operations_are_functions_of_a_builder() -> None:
    def clipped_sum(build: Any, x: Any, y: Any = None, *, low: float = 0, axes: tuple = (1,), keep: bool = True) -> Any:
        """Sum of what is above `low`."""
        whole = x if y is None else build.Add(x, y)
        return build.ReduceSum(build.Maximum(whole, low), build.const(axes, DType.I64), keep_dims=keep)

    with within(Scope()):
        cls: Any = declared(clipped_sum)
        assert (cls.type, cls.opset, cls.arity, cls().low) == ("ClippedSum", "extension", (1, 2), 0.0)
        graph = graph_of(lambda b, x: b.ClippedSum(x, x, low=1.0, keep=False), ("n=2", 3))
        assert operations(graph) == ["ClippedSum"]
        x = np.array([[1, 2, 3], [-1, 0, 4]], np.float32)
        assert aot.compile_model(graph)(x)[0].tolist() == [12, 10]


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda build: build,
        lambda build, *x: build,
        lambda build, x, *, scale: x,
        lambda build, x, *, scale=1.0: x,
    ],
    ids=range(5),
)
def test_wrong_operations_are_refused(function: Any) -> None:
    with within(Scope()), pytest.raises(UsageError, match="operation: "):
        declared(function)


def test_wrong_results_of_operations_are_errors() -> None:
    with within(Scope()):
        declared(lambda build, x: 3)
        cls: Any = declared(no_tensor)
        with pytest.raises(AotError, match="the function must return tensors, got 3"):
            _ = graph_of(lambda b, x: b(cls(), x), (2,)).results[0].out_port(0).type


def no_tensor(build: Any, x: Any) -> Any:
    """3"""
    return 3


@pytest.mark.parametrize("given", [("tf",), ("onnx",), ("mxnet", "Y")])
def test_conversions_are_of_frameworks_whose_files_are_read(given: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="conversion: a framework of onnx"):
        aot.conversion(*given)


CONVERSION = """
import aot

@aot.conversion("onnx", "me.Doubled")
@aot.conversion("tf", "Doubled")
@aot.conversion("tflite", "CUSTOM.Doubled")
@aot.conversion("pt2", "me::doubled.default")
def doubled(node, x):
    return node.build.Add(x, x)
"""


def of_onnx(place: Path) -> Path:
    text = '<ir_version: 10, opset_import: ["": 21, "me": 1]> m (float[2] x) => (float[2] y) { y = me.Doubled (x) }'
    onnx.save(onnx.parser.parse_model(text), place / "m.onnx")
    return place / "m.onnx"


def of_tensorflow(place: Path) -> Path:
    return graphs.written(place, graphs.graph(("Doubled", "y", "x")))


def of_tensorflow_lite(place: Path) -> Path:
    tensors = [models.Tensor(name, "f32", (2,)) for name in "xy"]
    path = place / "m.tflite"
    path.write_bytes(models.model(models.Net(tensors, [models.Op("CUSTOM.Doubled", [0], [1])], [0], [1])))
    return path


TENSORS = [{"name": name, "arg": {"as_tensor": {"name": f"inputs_{i}"}}, "kind": 1} for i, name in enumerate("ab")]
OTHERS = [{"name": "scale", "arg": {"as_float": 3.0}, "kind": 1}, {"name": "none", "arg": {"as_none": True}, "kind": 1}]


def of_pytorch(place: Path, arguments: Sequence[dict[str, Any]] = TENSORS[:1]) -> Path:
    """A program of two inputs of two elements, and one operation with these arguments."""
    path = next(path for path in FAMILIES if path.stem == "math")
    data, cases = contents(path)
    case = copy.deepcopy(next(case for case in cases if case["name"] == "add.Tensor-0"))
    graph = case["fixed"]["program"]["graph_module"]["graph"]
    for values in graph["tensor_values"].values():
        values |= {"sizes": [{"as_int": 2}], "strides": [{"as_int": 1}]}
    graph["nodes"][0] |= {"target": "torch.ops.me.doubled.default", "inputs": list(arguments)}
    return saved(case["fixed"], data, place)


@pytest.mark.parametrize("network", [of_onnx, of_tensorflow, of_tensorflow_lite, of_pytorch])
def test_one_conversion_serves_every_framework(network: Callable[[Path], Path], tmp_path: Path) -> None:
    file = tmp_path / "doubled.py"
    file.write_text(CONVERSION)
    made = aot.stages(network(tmp_path), aot.CompileOptions(level=None, extensions=file))
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(interpret(made.optimized, [x] * len(made.optimized.parameters))[0], 2 * x)


OF_PYTORCH = {
    "by name": ("node, b, a, scale=1.0", "a, b, scale"),
    "by place": ("node, x, y", "x, y, node.number('scale', 1.0)"),
    "one by name": ("node, x, *, b, scale=1.0", "x, b, scale"),
    "any number": ("node, *tensors", "*tensors, node.number('scale', 1.0)"),
    "left out": ("node, x, y, bias=None, *, scale: float, none=0", "x, y, scale if bias is none else 0"),
}


@pytest.mark.parametrize(("parameters", "values"), OF_PYTORCH.values(), ids=OF_PYTORCH)
def test_arguments_of_pytorch_are_given_by_name_and_by_place(parameters: str, values: str, tmp_path: Path) -> None:
    file = tmp_path / "scaled.py"
    file.write_text(
        f"""
import aot

def scaled(build, x, y, scale):
    return build.Subtract(x, build.Multiply(y, scale))

@aot.conversion("pt2", "me::doubled.default")
def converted({parameters}):
    return scaled(node.build, {values})
"""
    )
    made = aot.stages(of_pytorch(tmp_path, TENSORS + OTHERS), aot.CompileOptions(level=None, extensions=file))
    x, y = np.array([1, -2], np.float32), np.array([5, 7], np.float32)
    np.testing.assert_array_equal(interpret(made.optimized, [x, y])[0], x - 3 * y)


def test_too_many_tensors_of_pytorch_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "doubled.py"
    file.write_text(CONVERSION)
    with pytest.raises(UnsupportedError, match=r"me::doubled\.default: the conversion takes 1 tensors, got 1 more"):
        _ = aot.stages(of_pytorch(tmp_path, TENSORS), aot.CompileOptions(level=None, extensions=file)).optimized


@pytest.mark.parametrize("extensions", [EXAMPLE, EXAMPLE / "front" / "scaled_tanh.py"], ids=["folder", "file"])
def test_the_example_compiles(extensions: Path, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    made = aot.stages(tmp_path / "m.onnx", aot.CompileOptions(extensions=extensions))
    text = made.text("optimized")
    assert text.count("Relu(") == 1
    x = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    found = aot.compile_model(tmp_path / "m.onnx", extensions=extensions)(x)[0]
    np.testing.assert_allclose(found, 2 * np.maximum(3 * np.tanh(x), 0), rtol=1e-5, atol=1e-6)
