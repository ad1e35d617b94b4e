"""Model Optimizer's operation classes by module and name, made from two tables and from the operations' definitions.

    from openvino.tools.mo.ops.activation_ops import Sigmoid      library_class("activation_ops", "Sigmoid")

A class is made when it is asked for. The attributes that files hold, and inference, are those of the definition.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

import numpy as np

from aot.mo.ops import bodies, internal_table, opset_table
from aot.mo.ops.base_classes import SHARED, DefinedOp, LibraryOp, Row
from aot.mo.ops.const import Const
from aot.mo.ops.inference import functions
from aot.mo.ops.layer_attributes import definition
from aot.mo.ops.op import Op
from aot.mo.ops.parameter import Parameter
from aot.mo.ops.registered import REGISTERED
from aot.mo.ops.result import Result
from aot.mo.ops.strided_slice import StridedSlice
from aot.mo.partial_infer.by_definition import infer_by_definition
from aot.mo.partial_infer.elementwise import broadcastable, eltwise_infer
from aot.mo.partial_infer.slicing import arg_ops_infer


def _norm1(values: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(np.abs(values), axis=axis, keepdims=keepdims)


def _norm2(values: Any, axis: Any, keepdims: bool) -> Any:
    return np.sqrt(np.sum(np.square(values), axis=axis, keepdims=keepdims))


def _transposed(value: Any) -> Any:
    """Return a value with its last two dimensions exchanged."""
    return np.swapaxes(value, -1, -2) if np.ndim(value) > 1 else value


def _reduce_infer(node: Any) -> None:
    infer_by_definition(node, (node.op, "opset4"))


_WRITTEN: dict[tuple[str, str], Any] = {
    ("op", "Op"): Op,
    ("const", "Const"): Const,
    ("parameter", "Parameter"): Parameter,
    ("result", "Result"): Result,
}
VALUES: dict[tuple[str, str], Any] = {  # members of modules that are no classes
    ("activation_ops", "activation_ops"): "Sigmoid Tanh ReLU6 Exp Elu LogicalNot Floor Ceiling".split(),
    ("MatMul", "transpose"): _transposed,
    ("argmax", "arg_ops_infer"): arg_ops_infer,
    ("eltwise", "eltwise_infer"): eltwise_infer,
    ("fakequantize", "broadcastable"): broadcastable,
    ("ReduceOps", "reduce_infer"): _reduce_infer,
    ("ReduceOps", "reduce_map"): {
        "ReduceSum": np.sum,
        "ReduceProd": np.prod,
        "ReduceL1": _norm1,
        "ReduceL2": _norm2,
        "ReduceMax": np.max,
        "ReduceMin": np.min,
        "ReduceMean": np.mean,
        "ReduceAnd": np.all,
        "ReduceLogicalAnd": np.all,
        "ReduceLogicalOr": np.any,
    },
}
OWN: dict[tuple[str, str], Any] = {
    ("If", "If"): bodies.If,
    ("loop", "Loop"): bodies.Loop,
    ("strided_slice", "StridedSlice"): StridedSlice,
    ("tensor_iterator", "TensorIterator"): bodies.TensorIterator,
}
SECOND_NAMES = {  # further names of `infer` where the operation's definition infers
    ("proposal", "ProposalOp"): "proposal_infer",
    ("regionyolo", "RegionYoloOp"): "regionyolo_infer",
    ("reorgyolo", "ReorgYoloOp"): "reorgyolo_infer",
}
_TYPES = {"int64": np.int64, "int32": np.int32, "float32": np.float32}


@cache
def rows() -> dict[tuple[str, str], Row]:
    """Return the rows by module and class."""
    by_class: dict[tuple[str, str], Row] = {}
    for table in (opset_table.TABLE, internal_table.TABLE):
        module = ""
        for line in re.sub(r"\n {8}", " ", re.sub(r"\n {4}(?! )", "\n:", table)).strip("\n").split("\n"):
            name, _, text = line.partition(":")
            module = name or module
            if text:
                head, *words = text.split()
                names, _, base = head.removesuffix(")").partition("(")
                by_class |= {(module, name): _row(module, name, base, words) for name in names.split(",")}
    return by_class


def _row(module: str, name: str, base: str, words: list[str]) -> Row:
    op, type_, version, inputs, outputs, *rest = words
    pairs = dict(word.split("=", 1) for word in rest)
    files = pairs.pop("back", "")
    return Row(
        module,
        name,
        base,
        _named(op, name),
        _named(type_, name),
        f"opset{version}" if version.isdigit() else _named(version, name),
        (None if inputs == "-" else int(inputs), None if outputs == "-" else int(outputs)),
        {k: _TYPES[v] if v in _TYPES else ast.literal_eval(v) for k, v in pairs.items()},
        files.split(",") if files else [],
    )


def _named(word: str, name: str) -> str | None:
    return {"-": None, ".": name}.get(word, word)


def modules() -> tuple[str, ...]:
    """Return the names of the library's modules."""
    return tuple(dict.fromkeys(module for module, _ in [*_WRITTEN, *rows()]))


def classes_of(module: str) -> tuple[str, ...]:
    """Return the names of a module's classes."""
    return tuple(name for owner, name in [*_WRITTEN, *rows()] if owner == module)


def library_class(module: str, name: str) -> Any:
    """Return a class or another member of a module; None if it has none of that name."""
    return _WRITTEN.get((module, name)) or VALUES.get((module, name)) or _build_class(module, name)


@cache
def _build_class(module: str, name: str) -> Any:
    row = rows().get((module, name))
    if row is None:
        return None
    base = _base(row)
    own = SHARED.get((module, name)) or OWN.get((module, name))
    bases = [base] if own is None else [own] if issubclass(own, base) else [own, base]
    if definition(row.type, row.version) is not None and not any(issubclass(b, DefinedOp) for b in bases):
        bases.append(DefinedOp)  # the base has no type
    namespace: dict[str, Any] = {"op": row.op, "enabled": False, "row": row, "__module__": f"aot.mo.ops.{module}"}
    namespace |= functions(module, name)
    if (module, name) in SECOND_NAMES:
        namespace[SECOND_NAMES[module, name]] = vars(DefinedOp)["by_definition"]
    return type(name, tuple(bases), {**namespace, "__doc__": f"{row.type or name}, {row.version or 'internal'}."})


def _base(row: Row) -> Any:
    if row.base:
        home = next(m for m, n in rows() if n == row.base and (m == row.module or (row.module, row.base) not in rows()))
        return _build_class(home, row.base)
    return DefinedOp if definition(row.type, row.version) is not None else LibraryOp


@cache
def _by_op() -> dict[str, tuple[str, str]]:
    """Return module and class of each attribute `op`; of an opset's operation rather than an internal one."""
    written = {cls.op: key for key, cls in _WRITTEN.items() if cls.op}
    return {**{row.op: key for key, row in reversed(rows().items()) if row.op}, **written}


def _find(op: str) -> Any:
    key = _by_op().get(op)
    return None if key is None else library_class(*key)


REGISTERED.give_library(_find, lambda: list(_by_op()))
