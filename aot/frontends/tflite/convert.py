"""The dialect of TensorFlow Lite: a node's conversion, its view of the node, and the node's name in errors."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.calls import Conversion
from aot.frontends.conversion.dialect import Dialect, Facts
from aot.frontends.tflite.registry import Call, conversion_of
from aot.frontends.unsupported import Problem


def _conversion(kind: str, attrs: Facts) -> Conversion | None:
    sides = (attrs.get("taken", ()), attrs.get("given", ())[:1])
    return conversion_of(kind, all(any(t is not None and t.quantization is not None for t in side) for side in sides))


def _call(attrs: Facts, *parts: Any) -> Call:
    del attrs
    return Call(*parts)


def _problem(node: str, kind: str, attrs: Facts, reason: str) -> Problem:
    del attrs
    return Problem(node, kind, "", 0, reason)


TFLITE = Dialect("tflite", "TensorFlow Lite", _conversion, _call, _problem)
