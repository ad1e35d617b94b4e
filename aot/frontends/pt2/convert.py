"""The dialect of PyTorch: a node's conversion, its view of the node, and the node's name in errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aot.frontends.conversion.calls import Conversion
from aot.frontends.conversion.dialect import Dialect, Facts
from aot.frontends.pt2.registry import Call, conversion_of
from aot.frontends.unsupported import Problem


def _conversion(kind: str, attrs: Facts) -> Conversion | None:
    del attrs
    return conversion_of(kind)


def _call(attrs: Facts, *parts: Any) -> Call:
    """Return the call of a node. All outputs have names in the archive; those with destinations are read."""
    del attrs
    made = Call(*parts)
    return replace(made, outputs=tuple(bool(p.destinations) for p in made.node.out_ports().values()))


def _problem(node: str, kind: str, attrs: Facts, reason: str) -> Problem:
    """Name the line of the user's program that made the node, which the export keeps."""
    trace = attrs.get("trace", "")
    return Problem(node, kind, "", 0, f"{reason}; from {trace}" if trace else reason)


ATEN = Dialect("aten", "PyTorch", _conversion, _call, _problem)
