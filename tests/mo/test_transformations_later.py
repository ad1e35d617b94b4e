"""Transformations of the middle and the back phase. Expected graphs: Model Optimizer 2024.6."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from aot.compilation.driver import stages
from aot.ir.interpret import interpret
from aot.mo.graph.graph import Graph, Node
from aot.mo.partial_infer.infer import partial_infer
from aot.mo.transformations.nodes import add, chain, only_consumer
from aot.mo.transforms import has_code, placeholder, rows
from aot.options import CompileOptions
from tests.frontends.onnx.models import model, save
from tests.mo.test_transformations import written

Make = Callable[[Graph, Any], Any]
MASKS = {name: [0] for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")}
EMPTY = np.ones((1, 0, 6, 8), np.float32)
BY_SCALES = {"mode": "nearest", "shape_calculation_mode": "scales", "version": "opset4", "in_ports_count": 4}


def later(make: Make, shape: tuple[int, ...] = (1, 4, 6, 8), layout: str = "NCHW", stage: str = "middle") -> Graph:
    """A graph with data nodes: what `make` returns for its input, an operation or its outputs, and Results of it."""
    graph = Graph()
    graph.stage = stage
    options = Namespace(static_shape=False, data_type="float")
    graph.graph.update(cmd_params=options, ir_version=11, layout=layout, fw="onnx")
    x = add(graph, "parameter.Parameter", name="x", shape=np.array(shape))
    made = make(graph, x)
    for i, node in enumerate(made if isinstance(made, list) else [made]):
        result = add(graph, "result.Result", name=f"result {i}")
        (node if type(node).__name__ == "Port" else node.out_port(0)).connect(result.in_port(0))
    if x.out_port(0).disconnected():
        graph.remove_node(x.id)
    return partial_infer(graph)


def after(graph: Graph, *names: str) -> str:
    """Run the transformations, and return the expressions that the Results read."""
    for name in names:
        transform = placeholder(name)()
        transform.find_and_replace_pattern(graph)
        graph.clean_up()
    results = sorted(graph.get_op_nodes(op="Result"), key=lambda node: node.name)
    return "; ".join(written(r.in_port(0).get_source().node) for r in results)


def i64(*values: int) -> Any:
    return np.array(values, np.int64)


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def quantized(graph: Graph, x: Any) -> Any:
    limits = (np.float32(n) for n in (-1, 1, -1, 1))
    return add(graph, "fakequantize.FakeQuantize", x, *limits, levels=255)


def shuffled(graph: Graph, x: Any) -> Any:
    first = add(graph, "reshape.Reshape", x, i64(1, 2, 2, 6, 8))
    return add(graph, "reshape.Reshape", add(graph, "transpose.Transpose", first, i64(0, 2, 1, 3, 4)), i64(1, 4, 6, 8))


def uneven_blocks(graph: Graph, x: Any) -> Any:
    first = add(graph, "reshape.Reshape", x, i64(1, 2, 2, 1, 6, 8))
    swapped = add(graph, "transpose.Transpose", first, i64(0, 1, 4, 2, 5, 3))
    return add(graph, "reshape.Reshape", swapped, i64(1, 2, 12, 8))


def halves(graph: Graph, x: Any) -> Any:
    return add(graph, "split.Split", x, np.int64(1), num_splits=2)


def doubled(graph: Graph, x: Any) -> Any:
    parts = halves(graph, x)
    twice = [parts.out_port(i) for i in (0, 0, 1, 1)]
    return add(graph, "concat.Concat", *twice, axis=1, in_ports_count=4)


def resized(graph: Graph, x: Any) -> Any:
    high = add(graph, "interpolate.Interpolate", x, i64(12), f32(2), i64(2), **BY_SCALES)
    return add(graph, "interpolate.Interpolate", high, i64(16), f32(2), i64(3), **BY_SCALES)


def sliced(graph: Graph, x: Any) -> list[Any]:
    """Channels 0 to 1 and 1 to 3 of 4."""
    masks = {**MASKS, "begin_mask": [1, 1, 1, 1], "end_mask": [1, 1, 1, 1]}
    masks |= {name: [0, 0, 0, 0] for name in MASKS}
    bounds = [(i64(0, a, 0, 0), i64(1, b, 6, 8), i64(1, 1, 1, 1)) for a, b in ((0, 1), (1, 3))]
    return [add(graph, "strided_slice.StridedSlice", x, *b, **{k: i64(*v) for k, v in masks.items()}) for b in bounds]


CASES: list[tuple[str, Make, str]] = [
    ("MulFakeQuantizeFuse", lambda g, x: quantized(g, add(g, "elementwise.Mul", x, np.float32(2), can_be_fused=True)),
     "FakeQuantize(x, -0.5, 0.5, -1.0, 1.0)"),
    ("MulFakeQuantizeFuse", lambda g, x: quantized(g, add(g, "elementwise.Mul", x, np.float32(-2), can_be_fused=True)),
     "FakeQuantize(Mul(x, -2.0), -1.0, 1.0, -1.0, 1.0)"),
    ("SplitConcatPairToInterpolate", doubled,
     "Interpolate(x, Cast(Floor(Mul(Cast(StridedSlice(ShapeOf(x), [1], [2])), [2.0]))), [2.0], [1])"),
    ("InterpolateSequenceToInterpolate", resized, "Interpolate(x, [12, 16], [2.0, 2.0], [2, 3])"),
    ("UpsampleToResample", lambda g, x: add(g, "upsample.UpsampleOp", x, f32(1, 1, 2, 3), mode="nearest"),
     "Interpolate(x, Cast(Mul(Cast(StridedSlice(ShapeOf(x), [2], [4], [1])), [2.0, 3.0])), [2.0, 3.0], [2, 3])"),
    ("ConvertGroupedStridedSlice", sliced, "; ".join(["VariadicSplit(x, 1, [1, 2, 1])"] * 3)),
    ("ShuffleChannelFusion", shuffled, "ShuffleChannels(x)"),
    ("DepthToSpaceFusion", uneven_blocks,
     "Reshape(Transpose(Reshape(x, [1, 2, 2, 1, 6, 8]), [0, 1, 4, 2, 5, 3]), [1, 2, 12, 8])"),
    ("FuseTransposesSequence", lambda g, x: add(g, "transpose.Transpose", add(g, "transpose.Transpose", x,
     i64(0, 2, 3, 1)), i64(0, 2, 3, 1)), "Transpose(x, [0, 3, 1, 2])"),
    ("FuseTransposesSequence", lambda g, x: add(g, "transpose.Transpose", add(g, "transpose.Transpose", x,
     i64(0, 2, 3, 1)), i64(0, 3, 1, 2)), "x"),
    ("TransposeReduce", lambda g, x: add(g, "ReduceOps.ReduceMean", add(g, "transpose.Transpose", x, i64(0, 2, 3, 1)),
     i64(1, 2), keep_dims=False), "ReduceMean(x, [2, 3])"),
    ("MatMulConstTransposesExtraction", lambda g, x: add(g, "MatMul.MatMul", x, np.eye(8, 2, dtype=np.float32)),
     f"MatMul(x, {np.eye(2, 8).tolist()})"),
    ("RemoveUselessPad", lambda g, x: add(g, "activation_ops.Sin", add(g, "pad.Pad", x, i64(0, 0, 0, 0),
     i64(0, 0, 0, 0), mode="edge")), "Sin(x)"),
    ("RemoveUselessConcatSplitPattern", lambda g, x: [(s := halves(g, add(g, "concat.Concat",
     add(g, "activation_ops.Sin", x), x, axis=1, in_ports_count=2))).out_port(0), s.out_port(1)], "Sin(x); x"),
    ("ReverseTransposeNormalization", lambda g, x: add(g, "transpose.Transpose", x, reverse_order=True),
     "Transpose(x, [3, 2, 1, 0])"),
    ("ArgOpsToTopK", lambda g, x: add(g, "argmax.ArgMaxOp", x, axis=1, top_k=1, output_type=np.int64), "TopK(x, 1)"),
    ("ClampNormalizer", lambda g, x: add(g, "clamp.Clamp", x, np.float32(0), np.float32(1)), "AttributedClamp(x)"),
    ("ClampNormalizer", lambda g, x: add(g, "clamp.Clamp", x, None, np.float32(1)), "Minimum(x, 1.0)"),
    ("CutInputHavingZeroDimFromConcat", lambda g, x: add(g, "concat.Concat", x, EMPTY, axis=1, in_ports_count=2), "x"),
    ("ConcatOdInputEraserAndPortsReconnect", lambda g, x: add(g, "concat.Concat", EMPTY, x, axis=1, in_ports_count=2),
     "Concat(x)"),
    ("ShapeOfConstFolding", lambda g, x: add(g, "elementwise.Add", add(g, "shape.Shape", x, allow_fold=True),
     i64(1, 1, 1, 1)), "[2, 5, 7, 9]"),
    ("FakeOutputResolver", lambda g, x: add(g, "fake_output.FakeOutput", x), "Add(x, 0)"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "expected"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_operations_with_shapes_become_others(name: str, make: Make, expected: str) -> None:
    assert after(later(make), name) == expected


def folded(graph: Graph) -> Any:
    """The value of what the Result reads, all constants folded."""
    for node in graph.get_op_nodes():
        node["stop_value_propagation"] = False
    return Node(partial_infer(graph), "result 0").in_node(0).value


@pytest.mark.parametrize("levels", [16, 255, 256])
@pytest.mark.parametrize("limits", [(-1.5, 2.0), (0.0, 4.0)])
def test_compressed_weights_have_the_values_that_fake_quantize_gives(levels: int, limits: tuple[float, float]) -> None:
    weights = np.linspace(-2, 5, 24, dtype=np.float32).reshape(2, 12)

    def make(graph: Graph, x: Any) -> Any:
        held = add(graph, "const.Const", value=weights)
        bounds = [np.float32(bound) for bound in limits * 2]
        return add(graph, "fakequantize.FakeQuantize", held, *bounds, levels=levels, stop_value_propagation=True)

    graph, plain = later(make, stage="back"), folded(later(make))
    assert after(graph, "CompressQuantizeWeights").startswith("Mul(Sub(Cast([")
    held = max((node.value for node in graph.get_op_nodes(op="Const")), key=np.size)
    if levels == 16:
        assert held.dtype == np.uint8 and held.size == weights.size / 2
    else:
        assert held.dtype == np.int8
        np.testing.assert_allclose(folded(graph), plain, atol=1e-6)


@pytest.mark.parametrize(("point", "readers", "expected"), [
    (3.0, 1, [-3, 4]), (3.00001, 1, [-3, 4]), (0.5, 1, [0, 7]), (127.0, 1, [-127, -120]), (200.0, 1, [0, 7]),
    (3.0, 2, [0, 7]),
])  # fmt: skip
def test_a_zero_point_goes_into_integers_that_hold_it_and_that_nothing_else_reads(
    point: float, readers: int, expected: list[int]
) -> None:
    def make(graph: Graph, x: Any) -> Any:
        data = add(graph, "Cast.Cast", np.array([0, 7], np.int8), dst_type=np.float32, stop_value_propagation=True)
        shifted = add(graph, "elementwise.Sub", data, np.float32(point))
        return [shifted, data][:readers]

    graph = later(make, stage="back")
    after(graph, "ZeroPointOptimizer")
    (held,) = (node for node in graph.get_op_nodes(op="Const") if node.value.dtype == np.int8)
    assert held.value.tolist() == expected


@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, 128), (np.int8, 3)])
def test_quantized_tensors_of_onnx_become_fake_quantize(dtype: Any, zero: int) -> None:
    def make(graph: Graph, x: Any) -> Any:
        scale, point = np.float32(0.5), np.array(zero, dtype)
        quantized = add(graph, "quantize_linear.QuantizeLinear", x, scale, point, infer=_same_shape)
        return add(graph, "dequantize_linear.DequantizeLinear", quantized, scale, point, infer=_same_shape)

    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    limits = f"{(low - zero) / 2}, {(high - zero) / 2}, {float(low)}, {float(high)}"
    expected = f"Mul(Sub(Cast(Cast(FakeQuantize(x, {limits}))), {zero}), 0.5)"
    assert after(later(make), "QuantizeLinearResolver", "DequantizeLinearResolver") == expected


QUANTIZE = """
import numpy as np
from openvino.tools.mo.back.compress_quantized_weights import CompressQuantizeWeights
from openvino.tools.mo.back.replacement import BackReplacementPattern
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.middle.replacement import MiddleReplacementPattern
from openvino.tools.mo.ops.fakequantize import FakeQuantize

class QuantizeWeights(MiddleReplacementPattern):
    enabled = force_clean_up = True

    def find_and_replace_pattern(self, graph):
        for node in graph.get_op_nodes(op="MatMul"):
            limits = {{i: np.float32(v) for i, v in enumerate((-1, 1, -1, 1), 1)}}
            attrs = {{"levels": {levels}, "stop_value_propagation": True}}
            made = create_op_with_const_inputs(graph, FakeQuantize, limits, attrs)
            node.in_port(1).get_connection().insert_node(made)

class Seen(BackReplacementPattern):
    enabled = True

    def run_after(self):
        return [CompressQuantizeWeights]

    def find_and_replace_pattern(self, graph):
        assert not graph.get_op_nodes(op="FakeQuantize") and len(graph.get_op_nodes(op="Cast")) == 1
"""


@pytest.mark.parametrize("levels", [16, 255])  # 4 bits, and 8
def test_compressed_weights_come_back_from_an_extension(levels: int, tmp_path: Path) -> None:
    x, weights = np.eye(3, 8, dtype=np.float32), np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
    path = save(tmp_path, model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, ["y"], {"w": weights}))
    folder = tmp_path / "mine" / "middle"
    folder.mkdir(parents=True)
    (folder / "quantize.py").write_text(QUANTIZE.format(levels=levels))
    made = stages(path, CompileOptions(level=None, extensions=folder.parent)).optimized
    expected = np.rint((weights[:3] + 1) / 2 * (levels - 1)) / (levels - 1) * 2 - 1
    np.testing.assert_allclose(interpret(made, [x])[0], expected, atol=1e-6)


def _same_shape(node: Node) -> None:
    node.out_port(0).data.set_shape(node.in_port(0).data.get_shape())


def test_names_become_unique_and_results_keep_theirs() -> None:
    graph = later(lambda g, x: add(g, "activation_ops.Sin", add(g, "activation_ops.Cos", x, name="a"), name="b"))
    (result,) = graph.get_op_nodes(op="Result")
    result["name"] = "b"
    placeholder("NamesUniquenessCheck")().find_and_replace_pattern(graph)
    assert sorted(node.name for node in graph.get_op_nodes()) == ["a", "b", "b_0", "x"]
    assert result.name == "b"


NETWORK = [
    helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
    helper.make_node("Clip", ["c", "low", "high"], ["k"]),
    helper.make_node("QuantizeLinear", ["k", "scale", "zero"], ["q"]),
    helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
    helper.make_node("Split", ["d"], ["p", "q2"], axis=1, num_outputs=2),
    helper.make_node("Concat", ["p", "p", "q2", "q2"], ["j"], axis=1),
    helper.make_node("Resize", ["j", "", "twice"], ["r"], mode="nearest"),
    helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Transpose", ["m"], ["t"], perm=[0, 2, 3, 1]),
    helper.make_node("Transpose", ["t"], ["u"], perm=[0, 3, 1, 2]),
    helper.make_node("Slice", ["u", "one", "five", "one"], ["s"]),
    helper.make_node("GlobalAveragePool", ["s"], ["g"]),
    helper.make_node("Flatten", ["g"], ["f"]),
    helper.make_node("MatMul", ["f", "v"], ["n"]),
    helper.make_node("Tile", ["n", "repeats"], ["o"]),
    helper.make_node("Sub", ["o", "high"], ["e"]),
    helper.make_node("Div", ["e", "high"], ["h"]),
    helper.make_node("ReduceMean", ["h", "one"], ["y"], keepdims=1),
]
OLD = [  # operations in the form of version 11, with attributes
    helper.make_node("Sqrt", ["x"], ["a"]),
    helper.make_node("Neg", ["a"], ["b"]),
    helper.make_node("Unsqueeze", ["b"], ["c"], axes=[1]),
    helper.make_node("Softmax", ["c"], ["d"], axis=2),
    helper.make_node("LogSoftmax", ["d"], ["e"], axis=-1),
    helper.make_node("Squeeze", ["e"], ["f"], axes=[1]),
    helper.make_node("Flatten", ["f"], ["g"], axis=2),
    helper.make_node("ArgMax", ["g"], ["h"], axis=1, keepdims=0),
    helper.make_node("OneHot", ["h", "eight", "values"], ["i"], axis=-1),
    helper.make_node("ConstantOfShape", ["sizes"], ["j"], value=numpy_helper.from_array(np.array([2], np.float32))),
    helper.make_node("Add", ["i", "j"], ["k"]),
    helper.make_node("ReduceSum", ["g"], ["l"], axes=[1]),
    helper.make_node("Mul", ["k", "l"], ["y"]),
]
LAST = """
{imports}
from openvino.tools.mo.{module}.replacement import {base}

class Last{base}({base}):
    enabled = True

    def run_after(self):
        return [{names}]

    def run_before(self):
        return []

    def find_and_replace_pattern(self, graph):
        assert graph.get_op_nodes(op="Result")
"""
BASES = {"front": ("front.common", "FrontReplacementPattern"), "middle": ("middle", "MiddleReplacementPattern"),
         "back": ("back", "BackReplacementPattern")}  # fmt: skip


def name_all_transformations(folder: Path) -> Path:
    """Return a folder of extensions that name all transformations with code in `run_after`, a file for each phase."""
    for phase, (module, base) in BASES.items():
        chosen = [row for row in rows().values() if row.module.split(".")[0] == phase and not row.old]
        chosen = [row for row in chosen if has_code(placeholder(row.name, row.module)) and ".tf." not in row.module]
        imports = "\n".join(f"from openvino.tools.mo.{row.module} import {row.name}" for row in chosen)
        names = ", ".join(row.name for row in chosen)
        place = folder / "mine" / phase
        place.mkdir(parents=True)
        (place / "last.py").write_text(LAST.format(imports=imports, module=module, base=base, names=names))
    return folder / "mine"


def constants() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    numbers: dict[str, Any] = {
        "w": rng.standard_normal((4, 3, 3, 3)), "v": rng.standard_normal((4, 5)), "low": 0, "high": 6, "scale": 0.05,
        "twice": [1, 1, 2, 2], "values": [1, 3],
    }  # fmt: skip
    whole = {
        "zero": np.uint8(10),
        "one": i64(1),
        "five": i64(5),
        "repeats": i64(2, 1),
        "eight": i64(8),
        "sizes": i64(8),
    }
    return {name: np.array(value, np.float32) for name, value in numbers.items()} | whole


@pytest.mark.parametrize(("nodes", "opset"), [(NETWORK, 18), (OLD, 11)], ids=["new", "old"])
def test_all_transformations_leave_the_results_of_a_network(nodes: list[Any], opset: int, tmp_path: Path) -> None:
    x = np.random.default_rng(4).random((1, 3, 8, 8), np.float32)
    read = {name for node in nodes for name in node.input}
    held = {name: np.asarray(value) for name, value in constants().items() if name in read}
    path = save(tmp_path, model(nodes, {"x": x}, ["y"], held, opset=opset))
    plain = interpret(stages(path, CompileOptions(level=None)).optimized, [x])[0]
    options = CompileOptions(level=None, extensions=name_all_transformations(tmp_path))
    changed = interpret(stages(path, options).optimized, [x])[0]
    np.testing.assert_allclose(changed, plain, rtol=1e-5)


def test_a_chain_ends_where_something_else_reads_it() -> None:
    def make(graph: Graph, x: Any) -> list[Any]:
        middle = add(graph, "activation_ops.Sin", x)
        return [add(graph, "activation_ops.Cos", middle), add(graph, "activation_ops.Exp", middle)]

    graph = later(make)
    (last,) = graph.get_op_nodes(op="Cos")
    assert chain(last, "Sin", "Cos") == [] and only_consumer(last) is not None
    assert [node.op for node in chain(last, "Cos")] == ["Cos"]
