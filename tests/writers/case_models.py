"""Cases of operations as networks of one node, and OpenVINO's view of what is written of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from aot.frontends.openvino.attributes import texts
from aot.ir.graph import Graph
from aot.ir.op import Op
from aot.ir.registry import definition_of
from aot.ir.types import Array
from aot.opset.control.infrastructure import Constant, Parameter, Result
from tests.cases import Case, tables

MODULES = sorted(tables())
NAME = "the node"


def cases(module: str) -> Iterator[tuple[str, Case]]:
    """The cases of a module, with names that are unique in it; the first of those alike but for sizes and types.

    Files have sizes and types outside of the operation: `test_convert.py` writes all of them.
    """
    seen = set[object]()
    for i, case in enumerate(tables()[module]):
        key = case.op, *(operand and (operand.rank, operand.value is not None) for operand in case.operands())
        if key not in seen:
            seen.add(key)
            yield f"{module}-{i}-{case.name}", case


def network(case: Case) -> Graph:
    """A network whose only operation is the case's; inputs that are known are constants of it."""
    graph, sources = Graph("case"), []
    for i, (spec, operand) in enumerate(zip(case.inputs, case.operands(), strict=True)):
        if operand is None:
            sources.append(None)
            continue
        known = spec if isinstance(spec, np.ndarray) else None
        op: Op = Parameter(operand.dtype, operand.shape) if known is None else Constant(operand.dtype)
        port = graph.add(op, name=f"x{i}", data=known).out_port(0)
        port.add_tensor_names((f"x{i}",))
        sources.append(port)
    node = graph.add(case.op, *sources, name=NAME, outputs=len(case.op.outputs(*case.operands())))
    for i, port in node.out_ports().items():
        graph.add(Result(), port, name=f"y{i}").out_port(0).add_tensor_names((f"y{i}",))
    return graph


def given(case: Case) -> list[Array]:
    """Values of the inputs that are not constants."""
    pairs = zip(case.inputs, case.arrays, strict=True)
    return [a for spec, a in pairs if a is not None and not isinstance(spec, np.ndarray)]


def misread(op: Op, theirs: dict[str, Any]) -> list[str]:
    """Attributes of an operation that OpenVINO's node of its layer has not, or with another value.

    Empty lists and axes from the end may be what OpenVINO counts out.
    """
    ours = texts(op, definition_of(op) or "")
    if ours.get("auto_pad", "explicit") != "explicit":
        ours |= dict.fromkeys(("pads_begin", "pads_end") & ours.keys(), "0, 0")  # the others do not count
    empty = {str(f.metadata.get("xml", f.name)) for f in fields(op) if getattr(op, f.name) == ()}
    wrong: list[str] = []
    for name, value in theirs.items():
        text = ours.get(name)
        if text is None and (name in empty or value is None):
            continue
        if text is None or not _equal(text, value):
            wrong.append(f"{name}: {text} was read as {value}")
    return wrong


def _equal(text: str, value: Any) -> bool:
    parts = [p.strip() for p in text.split(",") if p.strip()]
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, list):
        return parts == [str(v) for v in value] or _close(parts, value)
    if isinstance(value, int | float):
        return _close(parts, [value])
    if hasattr(value, "get_type_name"):
        return text == value.get_type_name()
    return "".join(parts).lower() == str(value).lower().strip("[]{}").replace(",", "").replace(" ", "")


def _close(parts: list[str], values: list[Any]) -> bool:
    try:
        numbers = [float(p) for p in parts]
    except ValueError:
        return False
    return len(numbers) == len(values) and bool(np.allclose(numbers, values, rtol=1e-6, atol=0, equal_nan=True))
