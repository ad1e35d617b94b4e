"""The dialect of ONNX: a node's conversion, its view of the node, and the node's name in errors."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.dialect import Dialect, Facts
from aot.frontends.conversion.node_context import Conversion
from aot.frontends.onnx.registry import CONVERSIONS, OnnxNode, conversion_of
from aot.frontends.unsupported import Problem


class _Onnx(Dialect):
    """Operations have a domain, and mean what the version of its set says."""

    def conversion(self, kind: str, attrs: Facts) -> Conversion | None:
        return conversion_of(attrs["domain"], kind)

    def context(self, attrs: Facts, *parts: Any) -> OnnxNode:
        return OnnxNode(*parts, opset=attrs["opset"])

    def problem(self, node: str, kind: str, attrs: Facts, reason: str) -> Problem:
        return Problem(node, kind, attrs["domain"], attrs["opset"], reason)


ONNX = _Onnx("onnx", "ONNX", CONVERSIONS, OnnxNode)
