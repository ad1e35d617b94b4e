"""The table of conversions of ONNX's operations.

    @onnx("Celu")
    def celu(node: OnnxNode, x: OutPort) -> OutPort: ...

Inputs and outputs of conversions: `aot/frontends/conversion/node_context.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import (
    SHORT_FLOATS,
    Bodies,
    Conversion,
    NodeContext,
    Outputs,
    StaticSequence,
    Value,
)
from aot.frontends.conversion.table import Table
from aot.frontends.onnx.element_types import element_type
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

__all__ = [
    "CONVERSIONS",
    "INTERFACE",
    "SHORT_FLOATS",
    "Bodies",
    "Conversion",
    "OnnxNode",
    "Outputs",
    "StaticSequence",
    "Value",
    "conversion_of",
    "extension",
    "named",
    "onnx",
]

INTERFACE = "interface"  # domain of the nodes that make sequences and optionals of the tensors that are inputs

C = TypeVar("C", bound=Callable[..., Any])

FAMILIES = ("arrays", "control", "image", "math", "microsoft", "neural", "tabular")  # folders of conversions
CONVERSIONS = Table("onnx", __name__, FAMILIES)  # conversions by `Kind` or `DOMAIN.Kind`


def onnx(*kinds: str, domain: str = "") -> Callable[[C], C]:
    """Register the conversion of operations of a domain."""
    return CONVERSIONS.register(*(named(domain, kind) for kind in kinds))


extension = CONVERSIONS.register  # of extensions' conversions


def named(domain: str, kind: str) -> str:
    """Return the name of an operation, prefixed by its domain unless that is ONNX's own."""
    return f"{domain}.{kind}" if domain else kind


def conversion_of(domain: str, kind: str) -> Conversion | None:
    """Return the conversion of an operation, of the extensions that take part or built in; None if there is none."""
    return CONVERSIONS.of(named(domain, kind))


@dataclass(frozen=True, slots=True)
class OnnxNode(NodeContext):
    """A node of ONNX being converted. `opset` is the version of its domain."""

    opset: int = 0

    def dtype(self, name: str, default: DType | None = None) -> DType:
        """Return the element type that an attribute numbers; 0 stands for the default, where there is one."""
        code = self.integer(name, None if default is None else 0)
        if default is not None and not code:
            return default
        try:
            return element_type(code)
        except UnsupportedError as error:
            raise UnsupportedError(f"{self.kind}: {name}: {error}") from None

    def float_type(self, name: str, default: DType) -> DType:
        """Return element type, as `dtype`; UnsupportedError if it is no type of floats."""
        dtype = self.dtype(name, default)
        self.refuse(not dtype.is_float, f"{name} must be a type of floats, got {dtype.value}")
        return dtype

    def aligned(self, b: OutPort, rank: int) -> OutPort:
        """Reshape `b` as before opset 7: attribute `axis` aligns its first axis with an axis of a tensor of `rank`."""
        if self.opset >= 7 or not self.flag("broadcast") or not self.has("axis") or not b.type.rank:
            return b
        return self.reshape(b, (*b.shape, *[1] * (rank - self.axis(self.integer("axis"), rank) - b.type.rank)))
