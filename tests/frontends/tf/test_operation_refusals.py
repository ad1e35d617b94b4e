"""Errors of operations: attributes and operands that they do not allow, and operations that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aot.frontends import front_passes, read_model
from aot.frontends.tf.files.messages import GraphDef
from aot.frontends.tf.graph.nets import Item, output_count
from aot.frontends.tf.unsupported.reasons import REASON
from aot.runtime.errors import AotError, CorruptError, ModelError, UnsupportedError

TYPES = {"float32": 1, "int32": 3, "int64": 9, "complex64": 8}
IMAGE, MATRIX = ("float32", (1, 4, 4, 3)), ("float32", (3, 4))
FILTER = ("float32", (2, 2, 3, 5))
WINDOW = {"padding": "SAME", "strides": [1, 1, 1, 1]}
REFUSED = [
    ("FakeQuantWithMinMaxArgs", [MATRIX], {"num_bits": 1 << 40}, ModelError, "num_bits must be 2 to 16"),
    ("Unpack", [MATRIX], {"num": 1 << 31, "axis": 0}, CorruptError, "num must be 0 to 65536"),
    ("Conv2D", [MATRIX, FILTER], WINDOW, ModelError, "inputs must have 4 axes"),
    ("Conv2D", [IMAGE, MATRIX], WINDOW, ModelError, "inputs must have 4 axes"),
    ("Conv2D", [IMAGE, FILTER], WINDOW | {"padding": "REFLECT"}, UnsupportedError, "padding must be one of"),
    (
        "Conv2D",
        [IMAGE, FILTER],
        WINDOW | {"strides": [1, 1]},
        ModelError,
        "there must be a number for each of 4 axes",
    ),
    ("Conv2D", [IMAGE, FILTER], WINDOW | {"strides": [2, 1, 1, 1]}, UnsupportedError, "over the batch or channels"),
    ("Conv2D", [IMAGE, FILTER], WINDOW | {"data_format": "HWNC"}, UnsupportedError, "data_format must be one of"),
    ("Conv2D", [IMAGE, FILTER], WINDOW | {"padding": "EXPLICIT", "explicit_paddings": [0]}, ModelError, "two numbers"),
    ("Conv2D", [IMAGE, ("float32", (2, 2, 2, 5))], WINDOW, ModelError, "a multiple of the filter's inputs"),
    ("MaxPool", [IMAGE], WINDOW | {"ksize": [1, 2, 2, 2]}, UnsupportedError, "over the batch or channels"),
    ("ExtractImagePatches", [IMAGE], {"ksizes": [2, 2, 2, 1]}, UnsupportedError, "ksizes must be"),
    ("QuantizeV2", [MATRIX, ("float32", ()), ("float32", ())], {"mode": "LOG"}, ModelError, "attribute T is missing"),
    ("Pack", [MATRIX, MATRIX], {"axis": 3}, ModelError, "axis must be within rank 3"),
    ("EnsureShape", [MATRIX], {"shape": (3, 5)}, UnsupportedError, "dimension 1 must be 5"),
    ("Bitcast", [MATRIX], {"type": "int64"}, UnsupportedError, "types must have equal sizes"),
    ("MatMul", [MATRIX], {}, ModelError, "inputs do not fit it"),
    ("Relu", [("complex64", (2,))], {}, UnsupportedError, "complex"),
    ("NoSuchOperation", [MATRIX], {}, UnsupportedError, "there is no conversion for it"),
    ("MatrixDiagPartV3", [MATRIX, ("int32", ("n",)), ("float32", ())], {}, UnsupportedError, "must be known"),
]


def network(kind: str, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """A graph with one operation."""
    made = GraphDef()
    node = made.node.add(name="y", op=kind)
    for i, (dtype, shape) in enumerate(inputs):
        fed = made.node.add(name=f"x{i}", op="Placeholder")
        fed.attr["dtype"].type = TYPES[dtype]
        fed.attr["shape"].shape.SetInParent()
        for n in shape:
            fed.attr["shape"].shape.dim.add(size=n if isinstance(n, int) else -1)
        node.input.append(fed.name)
    for name, value in attrs.items():
        attr = node.attr[name]
        if name == "type":
            attr.type = TYPES[value]
        elif isinstance(value, str):
            attr.s = value.encode()
        elif isinstance(value, tuple):
            for n in value:
                attr.shape.dim.add(size=n)
        elif isinstance(value, list):
            attr.list.i[:] = value
        else:
            attr.i = value
    return made


def convert(path: Path, graph: Any) -> None:
    path.write_bytes(graph.SerializeToString())
    found = read_model(path)
    for front_pass in front_passes():
        front_pass(found)


@pytest.mark.parametrize(
    ("kind", "inputs", "attrs", "error", "text"), REFUSED, ids=[f"{r[0]}-{i}" for i, r in enumerate(REFUSED)]
)
def test_operands_that_do_not_fit_are_named(
    tmp_path: Path, kind: str, inputs: list[Any], attrs: dict[str, Any], error: type[AotError], text: str
) -> None:
    with pytest.raises(error, match=text):
        convert(tmp_path / "bad.pb", network(kind, inputs, attrs))


@pytest.mark.parametrize("kind", [k for k in sorted(REASON) if output_count(Item("y", k)) == 1])
def test_refused_operations_say_why(tmp_path: Path, kind: str) -> None:
    graph = network(kind, [MATRIX], {})
    graph.node.add(name="z", op="Identity", input=["y"])
    with pytest.raises(AotError, match=r"--cut|for inference|decode greedily"):
        convert(tmp_path / "refused.pb", graph)
