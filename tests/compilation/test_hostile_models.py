"""Models that ask for too much: refused, or left to the compiled model, before anything is built."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper

from aot.compilation.driver import stages
from aot.ir.operand import Operand
from aot.ir.types import TensorType
from aot.ir.values.estimate import check_table, is_quick
from aot.opset.products.matmul import MatMul
from aot.opset.products.pooling import AvgPool, MaxPool
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, BudgetError, ModelError


def onnx_file(folder: Path, nodes: list[object], inputs: dict[str, tuple[int, ...]], **constants: object) -> Path:
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    tensors = [helper.make_tensor(n, *t) for n, t in constants.items()]  # type: ignore[misc]
    graph: GraphProto = helper.make_graph(nodes, "g", given, [helper.make_empty_tensor_value_info("y")], tensors)
    made: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
    path = folder / "m.onnx"
    path.write_bytes(made.SerializeToString())
    return path


F32, I64 = TensorProto.FLOAT, TensorProto.INT64
HOSTILE: dict[str, tuple[list[object], dict[str, tuple[int, ...]], dict[str, object], type[AotError] | None]] = {
    "hidden_size": (
        [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=1 << 40)],
        {"x": (1, 1, 4)},
        {"w": (F32, (1, 4, 4), [1.0] * 16), "r": (F32, (1, 4, 1), [1.0] * 4)},
        ModelError,
    ),
    "EyeLike": (
        [helper.make_node("ConstantOfShape", ["s"], ["a"]), helper.make_node("EyeLike", ["a"], ["y"])],
        {},
        {"s": (I64, (2,), [10**6, 10**6])},
        BudgetError,
    ),
    "MaxPool of a constant": (
        [helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[10**6, 3], auto_pad="SAME_UPPER")],
        {},
        {"c": (F32, (1, 1, 5, 5), [1.0] * 25)},
        None,
    ),
    "AveragePool": (
        [helper.make_node("AveragePool", ["c"], ["y"], kernel_shape=[1 << 32, 3], auto_pad="SAME_UPPER")],
        {},
        {"c": (F32, (1, 1, 5, 5), [1.0] * 25)},
        None,
    ),
    "skips of TfIdfVectorizer": (
        [
            helper.make_node(
                "TfIdfVectorizer",
                ["c"],
                ["y"],
                mode="TF",
                min_gram_length=2,
                max_gram_length=2,
                max_skip_count=1 << 62,
                ngram_counts=[0, 0],
                ngram_indexes=[0],
                pool_int64s=[1, 2],
            )
        ],
        {},
        {"c": (I64, (4,), [1, 0, 2, 2])},
        None,
    ),
    "a transform of nothing": ([helper.make_node("DFT", ["x"], ["y"], axis=1)], {"x": (2, 0, 2)}, {}, None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_attributes_are_met_before_anything_is_built(tmp_path: Path, name: str) -> None:
    nodes, inputs, constants, error = HOSTILE[name]
    path = onnx_file(tmp_path, nodes, inputs, **constants)
    options = CompileOptions(level=None, max_memory=500_000_000, max_seconds=60)
    begin = time.process_time()
    if error is None:
        assert stages(path, options).program.outputs
    else:
        with pytest.raises(error):
            _ = stages(path, options).program
    assert time.process_time() - begin < 10


def doubling(folder: Path, times: int, first: str = "") -> Path:
    """Function i calls function i - 1 twice."""

    def function(name: str, nodes: list[object]) -> object:
        opsets = [helper.make_opsetid("", 19), helper.make_opsetid("d", 1)]
        return helper.make_function("d", name, ["a"], ["b"], nodes, opsets)

    def call(name: str, a: str, b: str) -> object:
        return helper.make_node(name, [a], [b], domain="d")

    start = [call(first, "a", "b")] if first else [helper.make_node("Relu", ["a"], ["b"])]
    functions = [function("F0", start)]
    below = [f"F{i}" for i in range(times - 1)]
    functions += [function(f"F{i}", [call(f, "a", "t"), call(f, "t", "b")]) for i, f in enumerate(below, 1)]
    path = onnx_file(folder, [call(f"F{times - 1}", "x", "y")], {"x": (2,)})
    made = ModelProto.FromString(path.read_bytes())
    made.opset_import.append(helper.make_opsetid("d", 1))
    made.functions.extend(functions)
    path.write_bytes(made.SerializeToString())
    return path


def test_functions_are_counted_before_they_are_inlined(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="at most 1048576 nodes once functions are inlined, got 3221225471"):
        _ = stages(doubling(tmp_path, 31)).imported
    with pytest.raises(ModelError, match="must not call itself"):
        _ = stages(doubling(tmp_path, 3, first="F1")).imported
    assert len(stages(doubling(tmp_path, 4)).imported.nodes) == 8 + 2


def test_tables_and_folded_values_are_estimated() -> None:
    check_table("x", 1 << 25)
    with pytest.raises(BudgetError, match="x: a constant can have at most 268435456 bytes, got 268435464"):
        check_table("x", (1 << 25) + 1)
    a, b = Operand(_f32(512, 512)), Operand(_f32(512, 512))
    assert is_quick(MatMul(), [a, b], [_f32(512, 512)])
    far = Operand(_f32(1, 1 << 24)), Operand(_f32(1 << 24, 1))
    assert not is_quick(MatMul(), list(far), [_f32(1, 1)])
    image = [Operand(_f32(1, 1, 5, 5))]
    assert is_quick(MaxPool(kernel=(3, 3), strides=(1, 1)), image, [_f32(1, 1, 3, 3)])
    assert not is_quick(AvgPool(kernel=(1 << 20, 3), strides=(1, 1)), image, [_f32(1, 1, 5, 5)])


def _f32(*shape: int) -> TensorType:
    return TensorType(DType.F32, shape)
