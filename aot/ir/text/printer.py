"""The text of a graph; `aot.ir.text.parser` reads it back.

    graph mlp(%x: f32[batch,784]) {
      symbols batch in 1..64
      %w = const<f32[512,784] sha=1f3a5c7e9b02>
      %axis = const<i64[1] [1]>
      %fc1: f32[batch,512] = MatMul<transpose_b=True>(%x, %w)
      %parts, %parts#1: f32[batch,256], f32[batch,256] = Split<num_splits=2>(%fc1, %axis)
      %y: f32[batch,256] = Result(%parts#1)
    }

Attributes at their defaults are left out. Constants of up to 16 elements are written out, longer ones are named by the
hash of their bytes, or by their one value (`fill=0.0`). Regions follow the inputs, indented. A type that cannot be
inferred is `?`; operations of other frameworks are `onnx.Gemm<opset=20, transB=1>(...)`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from typing import Any, cast

import numpy as np

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Expr, Var
from aot.ir.graph import Graph, Node
from aot.ir.op import Foreign
from aot.ir.registry import attributes
from aot.ir.types import Array, TensorType, dim_text, dtype_of
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, InternalError

MAX_INLINE_ELEMENTS = 16  # elements of a constant at most that is written out
PLAIN_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./:-]*[A-Za-z0-9_/-])?")
INDENT = "  "


def print_graph(graph: Graph) -> str:
    """Return the text of a graph and of its regions, with a line feed at the end."""
    for node in graph.nodes.values():
        _types_text(node)  # bodies get their parameters' types from the nodes around them
    return "\n".join(_graph_lines(graph, f"graph {name_text(graph.name)}", "", _symbols(graph))) + "\n"


def constants_by_sha(graph: Graph) -> dict[str, Array]:
    """Return the constants that the text names by their hash, for the parser."""
    constants: dict[str, Array] = {}
    for node in graph.nodes.values():
        if node.data is not None:
            constants[sha(node.data)] = node.data
        for region in node.regions.values():
            constants |= constants_by_sha(region)
    return constants


def sha(data: Array) -> str:
    """Return the hash that stands for a constant's bytes: 12 hexadecimal digits."""
    written = "\0".join(map(str, data.flat)) if data.dtype == object else ""
    encoded = written.encode("utf-8", "surrogateescape") or data.tobytes()
    return hashlib.sha256(encoded).hexdigest()[:12]


def name_text(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name)


def _graph_lines(graph: Graph, head: str, indent: str, symbols: Sequence[Var] = ()) -> Iterator[str]:
    names = _names(graph)
    parameters = ", ".join(f"{names[p.id]}: {_types_text(p)}" for p in graph.parameters)
    yield f"{indent}{head}({parameters}) {{"
    inner = indent + INDENT
    if symbols:
        yield f"{inner}symbols {', '.join(map(_symbol_text, symbols))}"
    results = set(map(id, graph.results))
    for node in [*(n for n in graph.order() if id(n) not in results), *graph.results]:
        if node.type != "Parameter":
            yield from _node_lines(node, names, inner)
    yield f"{indent}}}"


def _node_lines(node: Node, names: dict[int, str], indent: str) -> Iterator[str]:
    if node.data is not None:
        dtype = getattr(node.op, "element_type", None) or dtype_of(node.data)
        yield f"{indent}{names[node.id]} = {constant_text(node.data, dtype)}"
        return
    outputs = [f"{names[node.id]}{f'#{i}' if i else ''}" for i in node.out_ports()]
    inputs = ", ".join("none" if s is None else _port_text(names[s.node.id], s.idx) for s in node.sources())
    line = f"{indent}{', '.join(outputs)}: {_types_text(node)} = " if outputs else indent
    line += f"{_op_text(node)}({inputs})"
    if not node.regions:
        yield line
        return
    yield f"{line} {{"
    for name, region in node.regions.items():
        yield from _graph_lines(region, name, indent + INDENT)
    yield f"{indent}}}"


def _port_text(name: str, idx: int) -> str:
    return f"{name}#{idx}" if idx else name


def _names(graph: Graph) -> dict[int, str]:
    """Return `%name` for each node id; names that are not unique get a suffix."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for node in graph.nodes.values():
        name = node.name
        while name in taken:
            name += "_"
        taken.add(name)
        names[node.id] = f"%{name_text(name)}"
    return names


def _types_text(node: Node) -> str:
    try:
        return ", ".join(str(o.type) for o in node.operands())
    except AotError:
        return ", ".join("?" for _ in node.out_ports())


def _op_text(node: Node) -> str:
    op = node.op
    if isinstance(op, Foreign):
        pairs = [f"{name_text(k)}={value_text(v)}" for k, v in op.attrs]
        name = f"{op.dialect}.{op.kind}"
    else:
        pairs = [f"{f.name}={value_text(getattr(op, f.name))}" for f in attributes(op) if not _is_default(op, f)]
        name = type(op).__name__
    return f"{name}<{', '.join(pairs)}>" if pairs else name


def _is_default(value: object, field: Field[Any]) -> bool:
    if field.default is MISSING:
        return False
    own = getattr(value, field.name)
    return type(own) is type(field.default) and own == field.default


def value_text(value: Any) -> str:
    """Return an attribute's value as text; enums and element types are bare words, all else is written as in Python."""
    if isinstance(value, StrEnum):
        text = str(value.value)
        return text if re.fullmatch(r"[A-Za-z_]\w*", text) else json.dumps(text)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bool | int | float) or value is None:
        return repr(value)
    if isinstance(value, (tuple, list)):
        texts = [value_text(v) for v in cast("Sequence[object]", value)]
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
    if isinstance(value, Expr):
        return dim_text(value)
    if isinstance(value, TensorType):
        return str(value)
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return constant_text(array, dtype_of(array))
    if is_dataclass(value) and not isinstance(value, type):
        own = [f"{f.name}={value_text(getattr(value, f.name))}" for f in fields(value) if not _is_default(value, f)]
        return f"{type(value).__name__}({', '.join(own)})"
    raise InternalError(f"an attribute of type {type(value).__name__} has no text: {value!r}")


def constant_text(data: Array, dtype: DType) -> str:
    flat = data.reshape(-1)
    kind = TensorType(dtype, data.shape)
    if data.size <= MAX_INLINE_ELEMENTS:
        written = ", ".join(element_text(v, dtype) for v in flat)
        return f"const<{kind} {written if not data.shape else f'[{written}]'}>"
    if dtype is not DType.STRING and flat.tobytes() == flat[:1].tobytes() * data.size:
        return f"const<{kind} fill={element_text(flat[0], dtype)}>"
    return f"const<{kind} sha={sha(data)}>"


def element_text(value: Any, dtype: DType) -> str:
    """Return the shortest text that gives the same element back."""
    if dtype is DType.STRING:
        return json.dumps(str(value))
    if dtype is DType.BOOL:
        return str(bool(value))
    if dtype.is_integer or dtype is DType.NF4:
        return str(int(value))
    if dtype in (DType.F32, DType.F16):
        text = str(np.float32(value) if dtype is DType.F32 else np.float16(value))
        return text if any(c in text for c in ".en") else f"{text}.0"
    return repr(float(value))


def _symbols(graph: Graph) -> list[Var]:
    """Return the symbols of parameters and attributes, in order of appearance, regions included."""
    symbols: dict[Var, None] = {}
    for node in graph.nodes.values():
        if not isinstance(node.op, Foreign):
            values = [getattr(node.op, field.name) for field in attributes(node.op)]
            for dim in _dims(tuple(values) if node.given is None else node.given.type.dims):
                symbols |= dict.fromkeys(sorted(variables(dim), key=lambda v: v.name))
        for region in node.regions.values():
            symbols |= dict.fromkeys(_symbols(region))
    return list(symbols)


def _dims(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for v in cast("tuple[object, ...]", value):
            yield from _dims(v)


def _symbol_text(var: Var) -> str:
    if var.extent is not None and not isinstance(var.extent, int):
        return f"{var.name} in {var.low}..{dim_text(var.extent - 1)}"
    return f"{var.name} in {var.low}..{'' if var.extent is None else var.extent - 1}"
