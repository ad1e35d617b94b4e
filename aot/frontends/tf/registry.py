"""The table of conversions of TensorFlow's operations.

    @tf("Relu6")
    def relu6(node: TfNode, features: OutPort) -> OutPort:
        return node.build.Clamp(features, min=0, max=6)

`aot/frontends/conversion/node_context.py` says what a conversion gets and returns. Inputs are the data inputs in the
order of the operation's definition, lists spread out; control inputs are left out. Files leave attributes out that have
their default: those of TensorFlow's operations are in `defaults.txt`. A default in a conversion is for operations
without the attribute. Attributes of types are names: `node.dtype("T", DType.F32)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from aot.frontends.tf.defaults import defaults_of
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

__all__ = [
    "CONVERSIONS",
    "SHORT_FLOATS",
    "Bodies",
    "Conversion",
    "Outputs",
    "StaticSequence",
    "TfNode",
    "Value",
    "extension",
    "tf",
]

C = TypeVar("C", bound=Callable[..., Any])

FAMILIES = ("arrays", "control", "image", "math", "neural", "text", "unsupported")  # folders of conversions
CONVERSIONS = Table("tensorflow", __name__, FAMILIES)
_TAKES_COMPLEX = "takes_complex"  # mark of a function


def tf(*kinds: str, takes_complex: bool = False) -> Callable[[C], C]:
    """Register the conversion of operations. `takes_complex`: inputs may be complex numbers; else they are refused."""

    def register(function: C) -> C:
        if takes_complex:
            mark_complex(function)
        CONVERSIONS.enter(kinds, function)
        return function

    return register


def mark_complex(function: object) -> None:
    """Let the inputs of a conversion be complex numbers."""
    setattr(function, _TAKES_COMPLEX, True)


def takes_complex_numbers(function: object) -> bool:
    """True if the inputs of a conversion may be complex numbers."""
    return getattr(function, _TAKES_COMPLEX, False)


extension = CONVERSIONS.register  # of extensions' conversions


@dataclass(frozen=True, slots=True)
class TfNode(NodeContext):
    """A node of TensorFlow being converted."""

    def _get(self, name: str, kinds: type | tuple[type, ...], default: Any) -> Any:
        return NodeContext._get(self, name, kinds, defaults_of(self.kind).get(name, default))

    def dtype(self, name: str, default: DType | None = None) -> DType:
        """Return the element type that an attribute names; UnsupportedError for complex types, resources, variants."""
        return self._element_type(name, self.text(name, None if default is None else default.value))

    def dtypes(self, name: str) -> tuple[DType, ...]:
        """Return the element types of an attribute that lists them."""
        return tuple(self._element_type(name, text) for text in self.texts(name, ()))

    def _element_type(self, name: str, text: str) -> DType:
        try:
            return DType(text)
        except ValueError:
            raise UnsupportedError(f"{self.kind}: {name}: element type {text} is not supported") from None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape in an attribute, with -1 for unknown sizes; None if the rank is not known."""
        known = {**defaults_of(self.kind), **self.attrs}
        return None if known.get(name) is None else self.integers(name)

    def without_nan(self, x: OutPort, other: float) -> OutPort:
        """Return `x` with a number in place of NaN; integers as they are."""
        return self.build.Select(self.build.IsNaN(x), self.like(other, x), x) if x.type.dtype.is_float else x

    def axes(self, values: Sequence[int], rank: int) -> list[int]:
        """Axes counted from the front."""
        return [self.axis(a, rank) for a in values]
