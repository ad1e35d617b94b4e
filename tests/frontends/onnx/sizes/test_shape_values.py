"""Integer arithmetic on sizes, some of which vary: compiled networks against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import aot
from tests.frontends.onnx.models import i64, model, save
from tests.frontends.onnx.oracle import expected

node = helper.make_node

# Values of `a`, a size that varies, and `b`, a size of 6 beside it: name of the output, operation, inputs, attributes.
SCALARS: list[tuple[str, list[str], dict[str, Any]]] = [
    *((op, list(p), {}) for op in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min") for p in ("ab", "ba", "aa", "bb")),
    *((op, [x, "four"], {}) for op in ("Sub", "Div", "Mod", "Mul") for x in "ab"),
    *((op, ["minus", x], {}) for op in ("Div", "Mod") for x in "ab"),
    *(("Mod", ["minus", x], {"fmod": 1}) for x in "ab"),
    ("Pow", ["b", "four"], {}),
    ("Sign", ["b"], {}),
    ("Neg", ["b"], {}),
    ("Cast", ["b"], {"to": TensorProto.INT32}),
]


def sized(name: str, value: str) -> list[NodeProto]:
    """A tensor with |value| rows, and how many it has."""
    return [
        node("Cast", [value], [f"{name}.i"], to=TensorProto.INT64),
        node("Abs", [f"{name}.i"], [f"{name}.a"]),
        node("Unsqueeze", [f"{name}.a", "list0"], [f"{name}.u"]),
        node("ConstantOfShape", [f"{name}.u"], [f"{name}.c"]),
        node("Shape", [f"{name}.c"], [name]),
    ]


def test_integer_arithmetic_on_sizes_equals_onnx_runtime(tmp_path: Path) -> None:
    nodes = [node("Shape", ["x"], ["s"]), *(node("Gather", ["s", i], [o]) for i, o in (("zero", "a"), ("one", "b")))]
    for k, (op, inputs, attrs) in enumerate(SCALARS):
        nodes += [node(op, inputs, [f"v{k}"], **attrs), *sized(f"y{k}", f"v{k}")]
    wrap = [node("Cast", ["b"], ["b32"], to=TensorProto.INT32), node("Mul", ["b32", "big"], ["wrapped"])]
    outputs = [o for n in nodes for o in n.output if o.startswith("y") and "." not in o]
    nodes += [*wrap, *sized("wraps", "wrapped")]
    numbers = {"zero": 0, "one": 1, "four": 4, "minus": -7}
    constants = {k: np.array(v, np.int64) for k, v in numbers.items()}
    constants |= {"list0": i64(0), "big": np.array(715827883, np.int32)}
    path = save(tmp_path, model(nodes, {"x": (np.float32, ("n", 6))}, [*outputs, "wraps"], constants))
    made = aot.compile_model(path)
    for n in (1, 4, 9):
        x = np.zeros((n, 6), np.float32)
        want = [v.tolist() for v in expected(path, x)]
        assert [np.array(made(x)[k]).tolist() for k in range(len(want))] == want


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_chunks_of_a_size_that_varies_and_of_one_that_does_not(tmp_path: Path, parts: int) -> None:
    """PyTorch exports `chunk` with bounds that are multiples of ceil(size / parts); the last may exceed the size."""
    nodes, outputs = [node("Shape", ["x"], ["s"])], list[str]()
    constants = {"less": i64(parts - 1), "parts": i64(parts)}
    constants |= {f"k{k}": i64(k) for k in range(parts + 1)}
    for axis in (0, 1):
        nodes += [
            node("Gather", ["s", f"k{axis}"], [f"n{axis}"]),
            node("Add", [f"n{axis}", "less"], [f"m{axis}"]),
            node("Div", [f"m{axis}", "parts"], [f"q{axis}"]),
        ]
        nodes += [node("Mul", [f"q{axis}", f"k{k}"], [f"end{axis}_{k}"]) for k in range(parts + 1)]
        for k in range(parts):
            outputs.append(f"y{axis}_{k}")
            nodes.append(node("Slice", ["x", f"end{axis}_{k}", f"end{axis}_{k + 1}", f"k{axis}"], [outputs[-1]]))
    path = save(tmp_path, model(nodes, {"x": (np.float32, ("n", 6))}, outputs, constants))
    made = aot.compile_model(path)
    for n in (3, 4, 7, 9):
        x = np.arange(n * 6, dtype=np.float32).reshape(n, 6)
        found = made(x)
        for k, want in enumerate(expected(path, x)):
            np.testing.assert_array_equal(np.array(found[k]), want)


def test_a_branch_that_depends_on_a_quotient_of_sizes(tmp_path: Path) -> None:
    """6 // 4 * 4 is not 6, also while another size varies."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["b"]),
        node("Div", ["b", "four"], ["q"]),
        node("Mul", ["q", "four"], ["p"]),
        node("Equal", ["p", "b"], ["c"]),
        node("If", ["c"], ["y"], then_branch=branch("one"), else_branch=branch("four")),
    ]
    constants = {"one": np.array(1), "four": np.array(4)}
    path = save(tmp_path, model(nodes, {"x": (np.float32, ("n", 6))}, ["y"], constants))
    assert np.array(aot.compile_model(path)(np.zeros((2, 6), np.float32))[0]).tolist() == 4


def branch(of: str) -> Any:
    return helper.make_graph(
        [node("Identity", [of], ["r"])], "b", [], [helper.make_tensor_value_info("r", TensorProto.INT64, None)]
    )
