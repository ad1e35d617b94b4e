"""ONNX models by the references of the opset, against ONNX Runtime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import aot
from aot.runtime.errors import UsageError
from tests.frontends.onnx.models import Array, Numbers, i64, model, run, save
from tests.frontends.onnx.oracle import expected

pytestmark = pytest.mark.oracle
NUMBERS = Numbers(7)
RNG, f32, u8, i8, i7 = NUMBERS.rng, NUMBERS.f32, NUMBERS.u8, NUMBERS.i8, NUMBERS.i7


def scalar(value: float) -> Array:
    return np.array(value, np.float32)


def same(path: Path, *inputs: Array, exact: bool = False) -> None:
    for found, wanted in zip(run(path, *inputs), expected(path, *inputs), strict=True):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        if exact:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


ONE: list[tuple[str, list[Array], dict[str, Array], dict[str, Any]]] = [
    ("Gemm", [f32(3, 4)], {"w": f32(5, 4), "c": f32(5)}, {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    (
        "Conv",
        [f32(1, 4, 9, 8)],
        {"w": f32(6, 2, 3, 3), "b": f32(6)},
        {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1]},
    ),
    ("Conv", [f32(1, 2, 9, 8)], {"w": f32(3, 2, 3, 3)}, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    (
        "ConvTranspose",
        [f32(1, 4, 5, 6)],
        {"w": f32(4, 3, 3, 3), "b": f32(3)},
        {"strides": [2, 2], "pads": [1, 1, 0, 1], "output_padding": [1, 0]},
    ),
    ("ConvTranspose", [f32(1, 2, 5)], {"w": f32(2, 3, 4)}, {"strides": [3], "output_shape": [15]}),
    ("MaxPool", [f32(1, 2, 7, 7)], {}, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", [f32(1, 2, 7, 7)], {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("Softmax", [f32(2, 3, 4)], {}, {"axis": 1}),
    ("LayerNormalization", [f32(2, 3, 4)], {"s": f32(4), "b": f32(4)}, {}),
    ("InstanceNormalization", [f32(2, 3, 4)], {"s": f32(3), "b": f32(3)}, {}),
    ("Resize", [f32(1, 2, 6, 8)], {"r": f32(0), "s": f32(0), "z": i64(1, 2, 4, 3)}, {"mode": "linear", "antialias": 1}),
    (
        "Resize",
        [f32(1, 2, 6, 8)],
        {"r": f32(0), "s": f32(0), "z": i64(1, 2, 9, 3)},
        {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
    ),
    ("GridSample", [f32(1, 2, 3, 4, 5), f32(1, 2, 3, 4, 3)], {}, {"mode": "linear", "padding_mode": "border"}),
    ("GridSample", [f32(1, 2, 3, 4, 5), f32(1, 2, 3, 4, 3)], {}, {"mode": "nearest", "align_corners": 1}),
    ("GridSample", [f32(1, 2, 3, 4, 5), f32(1, 2, 3, 4, 3)], {}, {"mode": "linear", "padding_mode": "reflection"}),
    ("Det", [f32(2, 4, 4)], {}, {}),
    ("ReduceSum", [f32(2, 3, 4), i64(-1, 0)], {}, {"keepdims": 0}),
    ("ReduceMax", [f32(2, 3, 4), i64(1)], {}, {}),
    ("Unsqueeze", [f32(2, 3), i64(0, 2)], {}, {}),
    ("NonZero", [RNG.integers(0, 2, (3, 4))], {}, {}),
    ("Unique", [RNG.integers(0, 3, (4, 2))], {}, {"axis": 0}),
    ("Compress", [f32(3, 4), np.array([True, False, True])], {}, {"axis": 1}),
    (
        "NonMaxSuppression",
        [np.abs(f32(2, 5, 4)), np.abs(f32(2, 3, 5)), i64(2)],
        {"overlap": np.array([0.3], np.float32), "least": np.array([0.5], np.float32)},
        {},
    ),
    ("Squeeze", [f32(1, 3, 1, 4), i64(2)], {}, {}),
    ("CumSum", [f32(2, 3, 4), np.array(-2)], {}, {"reverse": 1}),
    (
        "TfIdfVectorizer",
        [RNG.integers(0, 4, (3, 9))],
        {},
        {
            "mode": "TFIDF",
            "max_skip_count": 2,
            "min_gram_length": 1,
            "max_gram_length": 2,
            "ngram_counts": [0, 3],
            "ngram_indexes": [2, 1, 0, 3, 4],
            "pool_int64s": [1, 2, 3, 1, 2, 3, 0],
            "weights": [1.0, 2.0, 3.0, 0.5, 2.5],
        },
    ),
    ("Slice", [f32(4, 5)], {"s": i64(-1, 1), "e": i64(-9, 4), "a": i64(0, 1), "t": i64(-1, 2)}, {}),
    ("Pad", [f32(2, 3)], {"p": i64(0, 1, 1, 1)}, {"mode": "reflect"}),
    ("Resize", [f32(1, 2, 4, 5)], {"r": f32(0), "s": np.array([1, 1, 2, 1.5], np.float32)}, {"mode": "linear"}),
    ("ReduceSum", [f32(2, 3, 4)], {"a": i64(-1, 0)}, {"keepdims": 0}),
    ("ReduceLogSumExp", [f32(2, 3, 4)], {}, {"axes": [1]}),
    ("ArgMax", [np.array([[1, 3, 3], [2, 2, 0]], np.float32)], {}, {"axis": 1, "select_last_index": 1}),
    ("TopK", [f32(3, 7)], {"k": i64(3)}, {"axis": -1}),
    ("Where", [np.array([True, False])], {"a": f32(2, 1), "b": f32(2)}, {}),
    ("Mod", [np.array([-7, 7, -7], np.int32)], {"b": np.array([3, -3, -3], np.int32)}, {}),
    ("Div", [np.array([-7, 7, -7], np.int32)], {"b": np.array([3, -3, -3], np.int32)}, {}),
    ("Hardmax", [f32(3, 4)], {}, {"axis": 1}),
    ("PRelu", [f32(2, 3, 4)], {"s": f32(3, 1)}, {}),
    ("OneHot", [i64(1, -1, 2)], {"d": i64(4), "v": f32(2)}, {}),
    ("DepthToSpace", [f32(1, 8, 2, 3)], {}, {"blocksize": 2, "mode": "CRD"}),
    ("Trilu", [f32(4, 5)], {"k": np.array(1, np.int64)}, {"upper": 0}),
    ("CumSum", [f32(3, 4)], {"a": np.array(1, np.int64)}, {"reverse": 1}),
    (
        "LSTM",
        [f32(5, 2, 3)],
        {"w": f32(2, 16, 3), "r": f32(2, 16, 4), "b": f32(2, 32)},
        {"hidden_size": 4, "direction": "bidirectional"},
    ),
    (
        "GRU",
        [f32(5, 2, 3)],
        {"w": f32(1, 12, 3), "r": f32(1, 12, 4), "b": f32(1, 24)},
        {"hidden_size": 4, "linear_before_reset": 1},
    ),
]
NEWER = dict.fromkeys(("GridSample", "ReduceMax", "Resize"), 20)  # operation sets; 17 for all others
OUTPUTS = {"TopK": 2, "LSTM": 3, "GRU": 2}


@pytest.mark.parametrize(("kind", "inputs", "constants", "attrs"), ONE, ids=[f"{i}-{c[0]}" for i, c in enumerate(ONE)])
def test_operations_agree_with_onnx_runtime(
    tmp_path: Path, kind: str, inputs: list[Array], constants: dict[str, Array], attrs: dict[str, Any]
) -> None:
    given = {f"x{i}": x for i, x in enumerate(inputs)}
    outputs = [f"y{i}" for i in range(OUTPUTS.get(kind, 1))]
    node = helper.make_node(kind, [*given, *constants], outputs, **attrs)
    same(save(tmp_path, model([node], given, outputs, constants, opset=NEWER.get(kind, 17))), *inputs)


EXACT: list[tuple[str, list[Array], list[Array], dict[str, Any]]] = [
    ("MatMulInteger", [u8(3, 64)], [i7(64, 5), np.uint8(128).reshape(()), np.int8(-3).reshape(())], {}),
    ("ConvInteger", [u8(1, 3, 6, 6)], [u8(4, 3, 3, 3), np.array(100, np.uint8)], {"pads": [1, 1, 1, 1]}),
    ("DynamicQuantizeLinear", [f32(3, 5)], [], {}),
    ("DynamicQuantizeLinear", [np.zeros((3, 5), np.float32)], [], {}),
    ("QuantizeLinear", [f32(3, 5) * 50], [np.array(0.5, np.float32), np.array(3, np.int8)], {}),
    ("DequantizeLinear", [i8(3, 5)], [np.abs(f32(5)), i8(5)], {"axis": 1}),
    (
        "QLinearMatMul",
        [u8(3, 64)],
        [
            scalar(0.02),
            np.array(120, np.uint8),
            u8(64, 5),
            scalar(0.01),
            np.array(130, np.uint8),
            scalar(0.5),
            np.array(7, np.uint8),
        ],
        {},
    ),
    (
        "QLinearConv",
        [u8(1, 3, 6, 6)],
        [
            scalar(0.02),
            np.array(120, np.uint8),
            i7(4, 3, 3, 3),
            np.abs(f32(4)) / 50 + 0.01,
            np.zeros(4, np.int8),
            scalar(0.3),
            np.array(128, np.uint8),
            np.arange(4, dtype=np.int32) * 100,
        ],
        {"pads": [1, 1, 1, 1]},
    ),
]


@pytest.mark.parametrize(
    ("kind", "inputs", "constants", "attrs"), EXACT, ids=[f"{n}-{c[0]}" for n, c in enumerate(EXACT)]
)
def test_quantised_operation_exactly(
    tmp_path: Path, kind: str, inputs: list[Array], constants: list[Array], attrs: dict[str, Any]
) -> None:
    held = {f"c{i}": np.asarray(c) for i, c in enumerate(constants)}
    outputs = ["y", "s", "z"] if kind.startswith("Dynamic") else ["y"]
    names = ["x", *held]
    made = model([helper.make_node(kind, names, outputs, **attrs)], {"x": inputs[0]}, outputs, held)
    same(save(tmp_path, made), *inputs, exact=True)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("layout", [0, 1])
def test_lstm_with_peepholes_and_lengths(tmp_path: Path, direction: str, layout: int) -> None:
    d = 2 if direction == "bidirectional" else 1
    held = {
        "w": f32(d, 16, 3),
        "r": f32(d, 16, 4),
        "b": f32(d, 32),
        "h": f32(d, 2, 4),
        "c": f32(d, 2, 4),
        "p": f32(d, 12),
    }
    x, lengths = f32(5, 2, 3), np.int32([5, 3])
    names, outputs = ["x", "w", "r", "b", "n", "h", "c", "p"], ["y", "h1", "c1"]
    node = helper.make_node("LSTM", names, outputs, hidden_size=4, direction=direction)
    path = save(tmp_path, model([node], {"x": x, "n": lengths}, outputs, held))
    if not layout:
        same(path, x, lengths)
        return
    wanted = expected(path, x, lengths)  # ONNX Runtime has no batches in front
    turned = held | {n: held[n].swapaxes(0, 1) for n in ("h", "c")}
    node = helper.make_node("LSTM", names, outputs, hidden_size=4, direction=direction, layout=1)
    x = x.swapaxes(0, 1)
    found = run(save(tmp_path, model([node], {"x": x, "n": lengths}, outputs, turned)), x, lengths)
    for got, right, axes in zip(found, wanted, ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2)), strict=True):
        np.testing.assert_allclose(got, right.transpose(axes), rtol=1e-4, atol=1e-5)


def test_products_of_all_integers_of_8_bits_are_exact(tmp_path: Path) -> None:
    a, b = u8(3, 64), i8(64, 5)
    a[0], b[:, 0] = 255, -128
    path = save(tmp_path, model([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"]))
    wanted = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(run(path, a, b)[0], wanted)
    np.testing.assert_array_equal(aot.compile_model(path, threads=1)([a, b])[0], wanted)


def branch(name: str, *nodes: Any) -> Any:
    out = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), name, [], [out])


@pytest.mark.parametrize("condition", [True, False])
def test_if_at_run_time_reads_values_around_it(tmp_path: Path, condition: bool) -> None:
    then = branch("then", helper.make_node("Mul", ["x", "x"], ["t"]))
    other = branch("other", helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Add", ["n", "w"], ["e"]))
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    flag, x = np.array(condition), f32(2, 3)
    same(save(tmp_path, model([node], {"c": flag, "x": x}, ["y"], {"w": f32(3)})), flag, x)


def test_loop_of_known_length_is_unrolled(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Identity", ["going"], ["more"]),
        helper.make_node("Add", ["state", "x"], ["next"]),
        helper.make_node("Mul", ["next", "next"], ["square"]),
    ]
    infos = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("going", TensorProto.BOOL, []),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, [3]),
    ]
    outs = [helper.make_tensor_value_info(n, t, None) for n, t in (("more", 9), ("next", 1), ("square", 1))]
    body = helper.make_graph(nodes, "body", infos, outs)
    node = helper.make_node("Loop", ["n", "", "zero"], ["last", "all"], body=body)
    x = f32(3)
    made = model([node], {"x": x}, ["last", "all"], {"n": np.array(4, np.int64), "zero": np.zeros(3, np.float32)})
    same(save(tmp_path, made), x)


def test_scan_backwards(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("s", "e")]
    outs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("t", "o")]
    body = helper.make_graph(nodes, "body", infos, outs)
    node = helper.make_node("Scan", ["z", "x"], ["l", "y"], body=body, num_scan_inputs=1, scan_input_directions=[1])
    x = f32(4, 2)
    same(save(tmp_path, model([node], {"x": x}, ["l", "y"], {"z": np.zeros(2, np.float32)})), x)


def test_sequences_vanish(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"], axis=1),
        helper.make_node("SequenceAt", ["s", "one"], ["a"]),
        helper.make_node("SequenceInsert", ["s", "a", "zero"], ["t"]),
        helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=0),
    ]
    held = {"one": np.array(1, np.int64), "zero": np.array(0, np.int64)}
    x = f32(2, 3)
    same(save(tmp_path, model(nodes, {"x": x}, ["y"], held)), x)


MICROSOFT: list[tuple[str, list[Array], list[Array], dict[str, Any], int]] = [
    ("FusedMatMul", [f32(2, 3, 4)], [f32(2, 5, 4)], {"transB": 1, "alpha": 0.25}, 1),
    ("BiasGelu", [f32(2, 8)], [f32(8)], {}, 1),
    ("FastGelu", [f32(2, 8)], [], {}, 1),
    ("QuickGelu", [f32(2, 8)], [], {}, 1),
    ("SkipLayerNormalization", [f32(2, 3, 8)], [f32(2, 3, 8), f32(8), f32(8), f32(8)], {"epsilon": 1e-5}, 1),
    ("Attention", [f32(2, 3, 8)], [f32(8, 24), f32(24)], {"num_heads": 2}, 1),
    ("Attention", [f32(2, 3, 8)], [f32(8, 24), f32(24), np.int32([[1, 1, 0], [1, 1, 1]])], {"num_heads": 2}, 1),
    ("DynamicQuantizeMatMul", [f32(3, 8)], [u8(8, 4), np.array([0.01], np.float32), np.array([128], np.uint8)], {}, 1),
]


@pytest.mark.parametrize(("kind", "inputs", "constants", "attrs", "count"), MICROSOFT)
def test_operations_of_microsoft_agree_with_onnx_runtime(
    tmp_path: Path, kind: str, inputs: list[Array], constants: list[Array], attrs: dict[str, Any], count: int
) -> None:
    held = {f"c{i}": c for i, c in enumerate(constants)}
    outputs = [f"y{i}" for i in range(count)]
    node = helper.make_node(kind, ["x", *held], outputs, domain="com.microsoft", **attrs)
    same(save(tmp_path, model([node], {"x": inputs[0]}, outputs, held, domain="com.microsoft")), *inputs)


def test_a_compiled_network_agrees_with_onnx_runtime(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ]
    x = f32(1, 3, 8, 8)
    path = save(tmp_path, model(nodes, {"x": x}, ["y"], {"w": f32(8, 3, 3, 3)}))
    compiled = aot.compile_model(path, threads=1)
    assert [t.name for t in (*compiled.inputs, *compiled.outputs)] == ["x", "y"]
    np.testing.assert_allclose(np.asarray(compiled([x])[0]), run(path, x)[0], rtol=1e-4, atol=1e-5)


def test_a_branch_that_does_not_fit_the_shapes_must_not_run(tmp_path: Path) -> None:
    then = branch("then", helper.make_node("MatMul", ["x", "w"], ["t"]))
    other = branch("other", helper.make_node("MatMul", ["x", "v"], ["e"]))
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    x, held = f32(2, 3), {"w": f32(3, 4), "v": f32(7, 4)}
    path = save(tmp_path, model([node], {"c": np.array(True), "x": x}, ["y"], held))
    np.testing.assert_allclose(run(path, np.array(True), x)[0], x @ held["w"], rtol=1e-5)
    with pytest.raises(UsageError, match="neither what it reads nor what follows fits the branch"):
        aot.compile_model(path)([np.array(False), x])
