"""Attributes of Model Optimizer's names on foreign nodes: their values, and changed ones in the terms of the file."""

from __future__ import annotations

from typing import Any

from aot.ir.op import Foreign
from aot.mo.extracted import caffe, onnx, tensorflow
from aot.mo.extracted.attribute import ABSENT, Attr, File

_TABLES = {"onnx": onnx.attrs_of, "tf": tensorflow.attrs_of, "caffe": caffe.attrs_of}
_NAMES = {"onnx": onnx.name_of, "caffe": caffe.name_of}


def _attrs(op: Foreign) -> tuple[Attr, ...]:
    table = _TABLES.get(op.dialect)
    return () if table is None else table(op.kind, file_of(op))


def file_of(op: Foreign, outputs: int = 1) -> File:
    attrs = dict(op.attrs)
    return File(attrs, int(attrs.get("opset") or 0), outputs)


def name_by_attributes(op: Foreign) -> str | None:
    """Return the attribute `op` of a node where it depends on the file's attributes; None elsewhere."""
    name = _NAMES.get(op.dialect)
    return None if name is None else name(op.kind, file_of(op))


def extracted(op: Foreign, outputs: int) -> dict[str, Any]:
    """Return the attributes of a foreign operation with that many outputs, by Model Optimizer's names.

    Attributes that a damaged file lacks are left out: the conversion of the operation refuses it.
    """
    file = file_of(op, outputs)
    found = {attr.name: _read(attr, file) for attr in _attrs(op)}
    return {name: value for name, value in found.items() if value is not ABSENT}


def _read(attr: Attr, file: File) -> Any:
    try:
        return attr.read(file)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
        return ABSENT


def names_of(op: Foreign) -> set[str]:
    """Return the names of the attributes of `extracted`."""
    return {attr.name for attr in _attrs(op)}


def written(op: Foreign, changed: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of the file for changed attributes of Model Optimizer's names; None: it has the default."""
    attrs = [attr for attr in _attrs(op) if attr.file and attr.name in changed]
    return {a.file: None if changed[a.name] is None else a.write(changed[a.name]) for a in attrs}
