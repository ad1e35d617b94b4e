"""Every attribute of every operation, at other values than its default, through the texts of graphs and of IR files."""

from __future__ import annotations

import types
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

import aot.opset  # noqa: F401
from aot.frontends.openvino.attributes import Symbols, build, partial_shape
from aot.ir.graph import Graph
from aot.ir.op import Op, RegionOp
from aot.ir.registry import all_operations, attributes
from aot.ir.text.parser import parse_graph
from aot.ir.text.printer import print_graph
from aot.ir.types import Dim, Shape
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError
from tests.each import check_each
from tests.properties.oracle import fields

EDGES = {"Parameter", "Constant", "Result"}  # graphs write them in their own ways
FILES = [
    cls for cls in all_operations().values() if cls.opset and not issubclass(cls, RegionOp) and cls.type != "Constant"
]


def others(hint: Any, default: Any) -> list[Any]:
    """Values of a type, without the default."""
    if get_origin(hint) in (Union, types.UnionType) and hint != Dim:
        hint = next(h for h in get_args(hint) if h is not type(None))
    if hint == Shape:
        found: list[Any] = [(2, 3), (7,)]
    elif get_origin(hint) is tuple:
        found = [tuple(others(get_args(hint)[0], None)[:n]) for n in (0, 1, 2)]
    elif issubclass(hint, StrEnum):
        found = list(hint)
    elif hint is bool:
        found = [False, True]
    else:
        found = {int: [7, -3, 2**40], float: [0.3, -1e-9, 5.0, 3e38], str: ["two words", "x"]}[hint]
    return [v for v in found if v != default or type(v) is not type(default)]


def variants(cls: type[Op]) -> list[Op]:
    """The operation with each attribute at each of its other values."""
    hints = get_type_hints(cls)
    needed = {f.name: others(hints[f.name], None)[0] for f in attributes(cls) if not hasattr(cls, f.name)}
    found = [cls(**needed)]
    for field in attributes(cls):
        default = getattr(cls, field.name, needed.get(field.name))
        found += [cls(**{**needed, field.name: value}) for value in others(hints[field.name], default)]
    return found


def test_text_of_graphs() -> None:
    kinds = [c for c in all_operations().values() if c.type not in EDGES and not issubclass(c, RegionOp)]
    check_each(check_text, kinds)


def check_text(cls: type[Op]) -> None:
    ops = variants(cls)
    graph = Graph("m")
    for k, op in enumerate(ops):
        graph.add(op, name=f"n{k}")
    read = parse_graph(print_graph(graph))
    assert [node.op for node in read.nodes.values()] == ops


def test_text_of_files() -> None:
    check_each(check_fields, FILES)


def check_fields(cls: type[Op]) -> None:
    for op in variants(cls):
        read = build(cls, fields(op), lambda text: partial_shape(text, "layer", Symbols()))
        assert read == op


def test_each_element_type_has_its_text() -> None:
    assert {fields(all_operations()["Convert"](destination_type=t))["destination_type"] for t in DType} == {  # type: ignore[call-arg]
        t.value for t in DType
    }


def test_elements_that_an_operation_does_not_have() -> None:
    graph = Graph("m")
    x = graph.add(all_operations()["Parameter"](element_type=DType.I32, shape=(2,)), name="x")  # type: ignore[call-arg]
    y = graph.add(all_operations()["SoftPlus"](), x.out_port(0), name="act")
    with pytest.raises(ModelError, match="SoftPlus: elements must be of type float, got i32") as error:
        _ = y.out_port(0).type
    assert "layer 'act'" in error.value.__notes__[0]
