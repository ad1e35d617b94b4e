"""The dialect of ONNX: a node's conversion, its view of the node, and the node's name in errors."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.calls import Conversion
from aot.frontends.conversion.dialect import Dialect, Facts
from aot.frontends.onnx.registry import Call, conversion_of
from aot.frontends.unsupported import Problem


def _conversion(kind: str, attrs: Facts) -> Conversion | None:
    return conversion_of(attrs["domain"], kind)


def _call(attrs: Facts, *parts: Any) -> Call:
    return Call(*parts, opset=attrs["opset"])


def _problem(node: str, kind: str, attrs: Facts, reason: str) -> Problem:
    return Problem(node, kind, attrs["domain"], attrs["opset"], reason)


ONNX = Dialect("onnx", "ONNX", _conversion, _call, _problem)
