"""The operation of a node of Model Optimizer's graph."""

from __future__ import annotations

from typing import Any

from aot.frontends.openvino.attributes import Symbols, build, partial_shape
from aot.ir.op import Foreign, RegionOp
from aot.ir.op import Op as Definition
from aot.mo.bridge.node_records import record_of
from aot.mo.bridge.values import dims_of, dtype_from, plain, with_attributes
from aot.mo.extracted.nodes import names_of, written
from aot.mo.ops.layer_attributes import attribute, definition, file_attributes, layer_texts
from aot.mo.utils.error import Error
from aot.opset.control.infrastructure import Constant, Parameter, Result

IDENTITY = ("op", "type", "version")  # attributes that say which operation a node is
WAYS = "give it a form under @op, an `infer` that computes its value, or a transformation that replaces it"


def operation_of(node: Any, otherwise: tuple[str | None, str | None] = (None, None)) -> Definition:
    """Return the operation of a node, with its attributes; Error if no operation set and no extension has it.

    `otherwise`: type and version of a node that does not say them, from the class whose `infer` is called for it.
    """
    op = operation_or_none(node) or _built(node, *otherwise)
    if op is None:
        shown = node.soft_get("type", node.soft_get("op")), node.soft_get("version", "no version")
        name = node.soft_get("name", node.id)
        raise Error("{} ({}): no operation set has it: {}; got version {}", shown[0], name, WAYS, shown[1])
    return op


def is_new(node: Any) -> bool:
    """True if an extension has made a node, or has made it one of another operation."""
    record = record_of(node)
    return record is None or any(key in record.changed(node.attrs()) for key in IDENTITY)


def operation_or_none(node: Any, by_type: bool = False) -> Definition | None:
    """Return the operation of a node; None if no operation set and no extension has it.

    `by_type`: a node of a file is of its type in the operation set, for it has inputs that the file's operation lacks.
    """
    record = record_of(node)
    if by_type and record is not None and isinstance(record.node.op, Foreign) and (op := _built(node)) is not None:
        return op
    if record is None or is_new(node):
        known = None if record is None or record.hidden is None else record.hidden.type_of(node)
        return _built(node, known)
    if record.hidden is not None:
        return _of_other_names(record.node.op, node, record.hidden.other_values(node))
    return _changed(record.node.op, record.changed(node.attrs()), node)


def _changed(op: Definition, changed: dict[str, Any], node: Any) -> Definition:
    name = node.soft_get("name", node.id)
    if isinstance(op, Foreign):
        return _changed_in_file(op, changed)
    if isinstance(op, RegionOp):
        return op  # its port maps are read with its bodies
    if isinstance(op, Parameter) and changed:
        dtype = dtype_from(node.soft_get("data_type", None)) if "data_type" in changed else op.element_type
        shape = dims_of(node.soft_get("shape", None), name, op.shape) if "shape" in changed else op.shape
        return Parameter(dtype, shape)
    if isinstance(op, Constant):
        return op if "value" not in changed else Constant(dtype_from(node.soft_get("value").dtype))
    return with_attributes(op, changed, name) if changed else op


def _of_other_names(op: Definition, node: Any, own: dict[str, Any]) -> Definition:
    """Return an operation with the attributes of a node that has Model Optimizer's names for them.

    `own`: those that the node has with another value, which no extension has changed.
    """
    names = (name for name, _ in file_attributes(op.type, op.opset))
    attributes = {name.replace("-", "_"): value for name in names if (value := attribute(node, name)) is not None}
    unset = {} if node.has_valid("auto_pad") else {"auto_pad": "explicit"}
    return with_attributes(op, {**unset, **attributes, **own}, node.soft_get("name", node.id))


def _changed_in_file(op: Foreign, changed: dict[str, Any]) -> Foreign:
    """Return a foreign operation with changed attributes, which may have Model Optimizer's names; None: the default."""
    known = dict(op.attrs)
    op_names = names_of(op)
    new = {k: plain(v) for k, v in changed.items() if k in known and k not in op_names} | written(op, changed)
    if not new:
        return op
    attrs = {k: v for k, v in {**known, **new}.items() if v is not None}
    return Foreign(op.dialect, op.kind, tuple(attrs.items()), op.types)


def _built(node: Any, type_: str | None = None, version: str | None = None) -> Definition | None:
    type_, version = type_ or node.soft_get("type", None), version or node.soft_get("version", None)
    name = node.soft_get("name", node.id)
    if type_ in ("Const", "Constant"):
        return Constant(dtype_from(node.soft_get("value").dtype))
    if type_ == "Parameter":
        return Parameter(dtype_from(node.soft_get("data_type", None)), dims_of(node.soft_get("shape", None), name))
    if type_ == "Result" or node.soft_get("op") == "Result":
        return Result()
    cls = definition(type_, version)
    if cls is None:
        return None
    if issubclass(cls, RegionOp):
        return cls()
    symbols = Symbols()
    return build(cls, layer_texts(node, type_, version), lambda text: partial_shape(text, name, symbols))
