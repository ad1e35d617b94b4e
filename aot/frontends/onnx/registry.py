"""The table of conversions of ONNX's operations.

    @onnx("Celu")
    def celu(node: Call, x: OutPort) -> OutPort: ...

Inputs and outputs of conversions: `aot/frontends/conversion/calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.calls import SHORT, Bodies, Conversion, Outputs, Sequenced, Value
from aot.frontends.conversion.calls import Call as AnyCall
from aot.frontends.conversion.families import load_families
from aot.frontends.onnx.element_types import element_type
from aot.ir.graph import OutPort
from aot.ir.scope import current, scope_for
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

__all__ = [
    "CONVERSIONS",
    "SHORT",
    "Bodies",
    "Call",
    "Conversion",
    "Outputs",
    "Sequenced",
    "Value",
    "conversion_of",
    "extension",
    "load_conversions",
    "onnx",
]

C = TypeVar("C", bound=Callable[..., Any])

FAMILIES = ("arrays", "control", "image", "math", "microsoft", "neural", "tabular")  # folders of conversions
CONVERSIONS: dict[tuple[str, str], Conversion] = {}


def onnx(*kinds: str, domain: str = "") -> Callable[[C], C]:
    """Register the conversion of operations of a domain."""

    def register(function: C) -> C:
        scope = scope_for(function.__module__)
        table = CONVERSIONS if scope is None else scope.conversions
        for kind in kinds:
            table[domain, kind] = function
        return function

    return register


def extension(kind: str) -> Callable[[C], C]:
    """Register an extension's conversion of an operation: `Kind`, or `DOMAIN.Kind`."""
    domain, _, name = kind.rpartition(".")
    return onnx(name, domain=domain)


def load_conversions() -> None:
    """Import all conversions, which fill the table."""
    load_families(__package__, FAMILIES)


def conversion_of(domain: str, kind: str) -> Conversion | None:
    """Return the conversion of an operation, of the extensions that take part or built in; None if there is none."""
    load_conversions()
    return current().conversions.get((domain, kind)) or CONVERSIONS.get((domain, kind))


@dataclass(frozen=True, slots=True)
class Call(AnyCall):
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
        """Return element type, as `dtype`; UnsupportedError where it is no type of floats."""
        found = self.dtype(name, default)
        self.refuse(not found.is_float, f"{name} must be a type of floats, got {found.value}")
        return found

    def aligned(self, b: OutPort, rank: int) -> OutPort:
        """Before opset 7, attribute `axis` says with which axis of a tensor of `rank` the first axis of `b` goes."""
        if self.opset >= 7 or not self.flag("broadcast") or not self.has("axis") or not b.type.rank:
            return b
        return self.reshape(b, (*b.shape, *[1] * (rank - self.axis(self.integer("axis"), rank) - b.type.rank)))
