"""Model Optimizer's own transformations that have code. Expected graphs: Model Optimizer 2024.6."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from aot.compilation.driver import stages
from aot.extensions.numpy_names import NAMES, NUMPY
from aot.ir.interpret import interpret
from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.library import library_class
from aot.mo.ordering import sort_transforms, split
from aot.mo.partial_infer.infer import partial_infer
from aot.mo.refused import REFUSED, names, reasons
from aot.mo.transforms import has_code, placeholder, placeholders, rows
from aot.mo.utils.error import Error
from aot.options import CompileOptions
from tests.frontends.onnx.models import model, save
from tests.mo.graphs import build, data, op

MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


def constant(value: Any) -> dict[str, Any]:
    return {**op("Const"), "value": np.asarray(value)}


def operation(name: str, *inputs: str, **attrs: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    return {**op(name), **attrs}, inputs


def front(**nodes: Any) -> Graph:
    """A graph of the front phase: operations with what they read, constants, `x` and a Result of the last one."""
    held: dict[str, Any] = {"x": op("Parameter")}
    links: list[Any] = []
    for id, given in nodes.items():
        if isinstance(given, tuple):
            held[id] = given[0]
            links += [(source, id, {"in": i, "out": 0}) for i, source in enumerate(given[1])]
        else:
            held[id] = constant(given)
    links.append((id, "result", {"in": 0, "out": 0}))
    return build({**held, "result": op("Result")}, links, "front")


def written(node: Node) -> str:
    """Return the operation and all that it reads as text, down to constants and Parameters: `Add(x, [1.0])`."""
    kind = node.soft_get("op")
    if kind == "Const":
        return str(np.asarray(node.value).tolist())
    if kind == "Parameter":
        return node.id
    parts = [
        written(node.in_port(i).get_source().node) for i in sorted(node.in_ports()) if node.is_in_port_connected(i)
    ]
    return f"{kind}({', '.join(parts)})"


def result(graph: Graph) -> Node:
    return Node(graph, "result").in_port(0).get_source().node


CLAMPED = {
    "three": 3.0, "low": 0.0, "high": 6.0, "part": 1 / 6,
    "shifted": operation("Add", "three", "x"), "cut": operation("Clamp", "shifted", "low", "high"),
}  # fmt: skip
SCALED = {**CLAMPED, "m": operation("Mul", "cut", "x")}
FRONT: list[tuple[str, dict[str, Any], str]] = [
    ("HSwishWithClamp", {**SCALED, "y": operation("Mul", "part", "m")}, "HSwish(x)"),
    ("HSigmoidWithClamp", {**CLAMPED, "y": operation("Mul", "cut", "part")}, "HSigmoid(x)"),
    ("HSigmoidWithClamp", {**CLAMPED, "y": operation("Mul", "cut", "high")}, "Mul(Clamp(Add(3.0, x), 0.0, 6.0), 6.0)"),
    ("Sub", {"one": 1.0, "y": operation("Sub", "x", "one")}, "Add(x, Mul(1.0, -1.0))"),
    ("Div", {"two": 2.0, "y": operation("Div", "x", "two")}, "Mul(x, Pow(2.0, -1.0))"),
    ("ReciprocalReplacer", {"y": operation("Reciprocal", "x")}, "Pow(x, -1.0)"),
    ("Log1p", {"y": operation("Log1p", "x")}, "Log(Add([1.0], x))"),
    ("Pack", {"y": operation("Pack", "x", "x", axis=1)}, "Concat(Unsqueeze(x, [1]), Unsqueeze(x, [1]))"),
    ("EltwiseNReplacement", {"y": operation("EltwiseN", "x", "x", "x", operation="max")}, "Maximum(Maximum(x, x), x)"),
    ("RankDecomposer", {"y": operation("Rank", "x", output_type=np.int64)}, "Squeeze(ShapeOf(ShapeOf(x)), 0)"),
    ("SizeFrontReplacer", {"y": operation("Size", "x", output_type=np.int64)}, "ReduceProd(ShapeOf(x), [0])"),
    ("AttributedClampNormalizer", {"y": operation("AttributedClamp", "x", min=1, max=2)}, "Clamp(x, 1.0, 2.0)"),
    ("AttributedRollToRoll", {"y": operation("AttributedRoll", "x", shift=[1], axes=[0])}, "Roll(x, [1], [0])"),
    ("AttributedSplitToSplit", {"y": operation("AttributedSplit", "x", axis=1, num_splits=2)}, "Split(x, 1)"),
    ("ReduceAxisNormalizer", {"y": operation("ReduceMax", "x")}, "ReduceMax(x, Range(0, Rank(x), 1))"),
    ("ReduceAxisNormalizer", {"y": operation("ReduceMax", "x", axis=1)}, "ReduceMax(x, 1)"),
    ("SqueezeNormalize", {"y": operation("Squeeze", "x", squeeze_dims=[1, 2])}, "Squeeze(x, [1, 2])"),
    ("ReshapeDimNormalizer", {"y": operation("Reshape", "x", dim=[0, -1])}, "Reshape(x, [0, -1])"),
    ("TransposeOrderNormalizer", {"y": operation("Transpose", "x", order=[1, 0])}, "Transpose(x, [1, 0])"),
    ("TransposeOrderNormalizer", {"y": operation("Transpose", "x", order=None, reverse_order=True)}, "Transpose(x)"),
    ("ExpandDimsToUnsqueeze", {"y": operation("ExpandDims", "x", expand_axis=1)}, "Unsqueeze(x, [1])"),
    ("ExpandDimsToUnsqueeze", {"a": [2], "y": operation("ExpandDims", "x", "a")}, "Unsqueeze(x, [2])"),
    ("FillToBroadcast", {"v": 3.0, "y": operation("Fill", "x", "v")}, "Broadcast(3.0, x)"),
    ("FillToBroadcast", {"y": operation("ConstantFill", "x", fill_value=2, input_as_shape=1)}, "Broadcast(2, x)"),
    ("ConstantOfShapeToBroadcast", {"y": operation("ConstantOfShape", "x", fill_value=2)}, "Broadcast(2, x)"),
    ("ArgOpsSqueeze", {"y": operation("ArgMax", "x", axis=1, keepdims=0)}, "Squeeze(ArgMax(x), 1)"),
    ("ArgOpsSqueeze", {"y": operation("ArgMax", "x", axis=1, keepdims=1)}, "ArgMax(x)"),
    ("PowerToEltwises", {"y": operation("AttributedPower", "x", scale=2, power=3)}, "Pow(Mul(x, 2.0), 3.0)"),
    ("FlattenONNXToReshape", {"y": operation("FlattenONNX", "x", axis=1)}, "Reshape(x, [0, -1])"),
    ("FlattenONNXToReshape", {"y": operation("FlattenONNX", "x", axis=2)},
     "Reshape(x, Concat(ReduceProd(Gather(ShapeOf(x), [0, 1], 0), [0]), [-1]))"),
    ("SoftmaxONNXFrontReplacer", {"y": operation("SoftMaxONNX", "x", axis=1)},
     "Reshape(SoftMax(FlattenONNX(x)), ShapeOf(x))"),
    ("OneHotNormalize", {"n": 3, "v": [0, 1], "y": operation("OneHot", "x", "n", "v", split_values=True)},
     "OneHot(x, 3, Squeeze(Split([0, 1], 0), [0]), Squeeze(Split([0, 1], 0), [0]))"),
    ("ImageScaler", {"y": operation("ImageScaler", "x", scale=np.array([2.0]), bias=np.array([0.0]))}, "Mul(x, [2.0])"),
    ("LayerNorm", {"a": 1, "two": 2.0, "eps": 1e-6, "half": 0.5, "m": operation("ReduceMean", "x", "a"),
     "c": operation("Sub", "x", "m"), "s": operation("Pow", "c", "two"), "v": operation("ReduceMean", "s", "a"),
     "e": operation("Add", "v", "eps"), "d": operation("Pow", "e", "half"), "y": operation("Div", "c", "d")},
     "MVN(x, 1)"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "nodes", "expected"), FRONT, ids=[f"{i}-{c[0]}" for i, c in enumerate(FRONT)])
def test_operations_of_the_front_phase_become_others(name: str, nodes: dict[str, Any], expected: str) -> None:
    graph = front(**nodes)
    placeholder(name)().find_and_replace_pattern(graph)
    assert written(result(graph)) == expected


def sliced(shape: tuple[int, ...], begin: list[int], end: list[int], **masks: list[int]) -> Graph:
    """A slice of numbers that follow each other."""
    values = {"x": np.arange(np.prod(shape)).reshape(shape), "b": np.array(begin), "e": np.array(end)}
    infer = library_class("const", "Const").infer
    held = {id: {**op("Const"), "value": value, "infer": infer} for id, value in values.items()}
    held |= {f"{id}_d": data(value.shape, value) for id, value in values.items()}
    links: list[Any] = [(id, f"{id}_d", {"out": 0}) for id in values]
    links += [(f"{id}_d", "node", {"in": i}) for i, id in enumerate(values)]
    cls = library_class("strided_slice", "StridedSlice")
    given = {mask: np.array(masks.get(mask, [1] * len(begin) if mask in MASKS[:2] else [])) for mask in MASKS}
    held |= {"node": {**op("StridedSlice"), "infer": cls.infer, **given}, "y": data(), "result": op("Result")}
    graph = build(held, [*links, ("node", "y", {"out": 0}), ("y", "result", {"in": 0})], "middle")
    Node(graph, "result")["infer"] = lambda node: None
    return partial_infer(graph)


@pytest.mark.parametrize(
    ("make", "begin"),
    [
        (lambda: sliced((3, 4, 5), [1], [2]), [1, 0, 0]),
        (lambda: sliced((3, 4, 5), [1, 9, 2], [3, 9, 4], ellipsis_mask=[0, 1, 0]), [1, 9, 2]),
        (lambda: sliced((3, 4, 5, 6), [1, 9, 2], [3, 9, 4], ellipsis_mask=[0, 1, 0]), [1, 0, 9, 2]),
        (lambda: sliced((3, 4, 5), [9, 2], [9, 4], ellipsis_mask=[1, 0]), [0, 9, 2]),
        (lambda: sliced((3, 4), [0, -1], [0, 0], new_axis_mask=[1, 0], shrink_axis_mask=[0, 1]), [0, -1, 0]),
    ],
)
def test_slices_get_a_bound_for_each_dimension(make: Callable[[], Graph], begin: list[int]) -> None:
    graph = make()
    node = Node(graph, "node")
    before = node.out_port(0).data.get_value().copy()
    placeholder("StridedSliceNormalizer")().find_and_replace_pattern(graph)
    partial_infer(graph)
    assert sorted(node.in_port(1).data.get_value().tolist()) == sorted(begin)
    assert not any(node.ellipsis_mask) and {len(node[mask]) for mask in MASKS} == {len(begin)}
    np.testing.assert_array_equal(node.out_port(0).data.get_value(), before)


LAST = """
from openvino.tools.mo.front.common.replacement import FrontReplacementPattern

class A(FrontReplacementPattern):
    enabled = True

    def find_and_replace_pattern(self, graph):
        pass
"""
EXTENSION = """
import numpy as np
from openvino.tools.mo.front.common.replacement import FrontReplacementPattern
from openvino.tools.mo.front.reciprocal import ReciprocalReplacer

class {name}(FrontReplacementPattern):
    enabled = True

    {named}

    def find_and_replace_pattern(self, graph):
        assert np.product([2, 3]) == 6 and np.int is int
        kinds = sorted(node.soft_get("op") for node in graph.get_op_nodes())
        assert ("Pow" in kinds) == {there}, kinds
"""


@pytest.mark.parametrize(
    ("name", "named", "there"),
    [
        ("A", "", True),  # by the names of the classes: the later in the alphabet, the earlier
        ("Seen", "", False),
        ("Seen", "def run_after(self): return [ReciprocalReplacer]", True),
        ("A", "def run_before(self): return [ReciprocalReplacer]", False),
    ],
)
def test_transformations_run_in_their_places(name: str, named: str, there: bool, tmp_path: Path) -> None:
    place = tmp_path / "mine" / "front"
    place.mkdir(parents=True)
    (place / "seen.py").write_text(EXTENSION.format(name=name, named=named, there=there))
    x = np.array([[-4, -1, 2, 5]], np.float32)
    path = save(tmp_path, model([helper.make_node("Reciprocal", ["x"], ["y"])], {"x": x}, ["y"]))
    made = stages(path, CompileOptions(level=None, extensions=place.parent))
    np.testing.assert_allclose(interpret(made.optimized, [x])[0], 1 / x, rtol=1e-6)


X = np.array([[[[1, -2, 3], [4, 5, -6]], [[7, 8, 9], [-1, 2, 3]]]], np.float32)
VECTOR = np.array([2, 3], np.float32)
KEPT: dict[str, tuple[dict[str, Any], dict[str, Any], list[Any], int]] = {  # attributes, constants, inputs, opset
    "Pad": ({"mode": "edge"}, {"pads": np.array([0, 0, 1, 0, 0, 0, 0, 2])}, [X], 17),
    "Pad around": ({"mode": "wrap"}, {"pads": np.array([0, 0, 1, 0, 0, 0, 0, 2])}, [X], 19),
    "Pad of axes": ({"mode": "constant"}, {"pads": np.array([1, 2]), "": None, "axes": np.array([3])}, [X], 18),
    "Pad of old sets": ({"mode": "reflect", "pads": [0, 0, 1, 0, 0, 0, 0, 2]}, {}, [X], 10),
    "Softmax": ({"axis": 1}, {}, [X], 13),
    "LogSoftmax": ({"axis": 0}, {}, [X], 13),
    "InstanceNormalization": ({}, {"scale": VECTOR, "bias": -VECTOR}, [X], 17),
    "Neg": ({}, {}, [X.astype(np.int64)], 17),
    "Sqrt": ({}, {}, [X.astype(np.float64) ** 2], 17),
    "Reciprocal": ({}, {}, [X.astype(np.float16)], 17),
    "Max": ({}, {}, [X], 17),
    "OneHot": ({}, {"values": VECTOR}, [np.array([0, 1]), np.array(3)], 17),
    "Unsqueeze": ({}, {}, [X, np.array([1])], 17),
    "ScatterElements": ({"reduction": "add", "axis": 3}, {}, [X, np.zeros(X.shape, np.int64), X], 16),
}


@pytest.mark.parametrize("case", KEPT)
def test_the_network_computes_the_same_behind_transformations(case: str, tmp_path: Path) -> None:
    attrs, constants, arrays, opset = KEPT[case]
    place = tmp_path / "mine" / "front"
    place.mkdir(parents=True)
    (place / "last.py").write_text(LAST)
    inputs = {f"x{i}": value for i, value in enumerate(arrays)}
    node = helper.make_node(case.partition(" ")[0], [*inputs, *constants], ["y"], **attrs)
    held = {name: value for name, value in constants.items() if name}
    path = save(tmp_path, model([node], inputs, ["y"], held, opset))
    found, wanted = (
        interpret(stages(path, CompileOptions(level=None, extensions=folder)).optimized, arrays)
        for folder in (place.parent, None)
    )
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-6)


def test_transformations_without_code_are_places_in_the_order() -> None:
    ours = [cls for cls in placeholders("onnx") if has_code(cls)]
    assert {"HSwishWithClamp", "StridedSliceNormalizer"} <= {cls.__name__ for cls in ours}
    assert split(sort_transforms(placeholders("onnx"))) == ([], [])
    assert not has_code(placeholder("BackStart"))


def test_each_transformation_has_code_or_one_reason_why_not() -> None:
    found = {key: (has_code(placeholder(row.name, row.module)), reasons(key)) for key, row in rows().items()}
    assert [key for key, (code, why) in found.items() if code == (len(why) == 1) or len(why) > 1] == []
    used = {name for name, _ in names() for key in found if f"{key}.".startswith(f"{name}.")}
    assert [name for name, _ in names() if name not in used] == []


def test_the_reasons_are_in_the_documentation_and_in_the_error() -> None:
    page = Path("docs/use/migrate/model-optimizer.md").read_text("utf-8")
    assert [reason for reason, _ in REFUSED if reason not in page] == []
    with pytest.raises(Error, match="it marks a place in the order"):
        placeholder("BackStart")().find_and_replace_pattern(Graph())
    with pytest.raises(AttributeError, match=r"has no pattern.*bodies before extensions see them"):
        placeholder("SmartInputMatcher")().pattern()


@pytest.mark.parametrize("name", sorted(NAMES))
def test_names_that_numpy_removed_are_there(name: str) -> None:
    assert getattr(NUMPY, name) is not None
    assert name in dir(NUMPY)


def test_other_names_of_numpy_are_its_own() -> None:
    assert NUMPY.linalg is np.linalg and NUMPY.prod is np.prod
    assert NUMPY.in1d([[1, 2], [3, 4]], [2, 3]).tolist() == [False, True, True, False]
    with pytest.raises(AttributeError, match="nothing"):
        _ = NUMPY.nothing
