"""The dialect of PyTorch: a node's conversion, its view of the node, and the node's name in errors."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.dialect import Dialect, Facts
from aot.frontends.conversion.node_context import Conversion
from aot.frontends.pt2.registry import CONVERSIONS, AtenNode, conversion_of
from aot.frontends.unsupported import Problem


class _Aten(Dialect):
    """All outputs of a node have names in the archive, and the export keeps the line that made it."""

    def conversion(self, kind: str, attrs: Facts) -> Conversion | None:
        del attrs
        return conversion_of(kind)

    def context(self, attrs: Facts, *parts: Any) -> AtenNode:
        """Return the context of a node, with those outputs read that have destinations."""
        del attrs
        fields = list(parts)
        fields[3] = tuple([bool(p.destinations) for p in parts[-2].outputs()])
        return AtenNode(*fields)

    def problem(self, node: str, kind: str, attrs: Facts, reason: str) -> Problem:
        trace = attrs.get("trace", "")
        return Problem(node, kind, "", 0, f"{reason}; from {trace}" if trace else reason)


ATEN = _Aten("aten", "PyTorch", CONVERSIONS, AtenNode)
