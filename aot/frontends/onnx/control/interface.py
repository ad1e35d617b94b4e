"""Sequences and optionals as inputs: a tensor of all elements, and their lengths if these may differ.

seq(tensor(float[4, 3])) x   ->   x: f32[x.count, 4, 3]                          an optional has 0 or 1 elements
seq(tensor(float[n, 3])) x   ->   x: f32[x.d0, 3]    x.lengths: i64[x.count]     joined along their first axis
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import CompositeTensor
from aot.frontends.onnx.control.tensor_sequence import TensorSequence, count_of, element, joined_elements
from aot.frontends.onnx.registry import INTERFACE, OnnxNode, Outputs, Value, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True, eq=False)
class OptionalValue(CompositeTensor):
    """An optional with data-dependent presence: a sequence of at most one element, or one with elements if present."""

    label = "an optional"
    elements: TensorSequence
    is_sequence: bool

    @property
    def ports(self) -> tuple[OutPort, ...]:
        return self.elements.ports

    def with_ports(self, ports: Sequence[OutPort]) -> OptionalValue:
        return OptionalValue(self.elements.with_ports(ports), self.is_sequence)

    def tensors(self) -> Mapping[str, OutPort]:
        return self.elements.tensors()


@onnx("Sequence", domain=INTERFACE)
def sequence(node: OnnxNode, x: OutPort, lengths: OutPort | None = None) -> Outputs:
    return Outputs([_elements(node, x, lengths)])


@onnx("Optional", domain=INTERFACE)
def optional_input(node: OnnxNode, x: OutPort, lengths: OutPort | None = None, *, is_sequence: bool) -> Outputs:
    """A tensor is at most one element; a sequence is present if it has elements."""
    if not is_sequence:
        x = node.within(node.dims(x, [0]), 0, 1, "an optional has at most one element", x)
    return Outputs([OptionalValue(_elements(node, x, lengths), is_sequence)])


def _elements(node: OnnxNode, x: OutPort, lengths: OutPort | None) -> TensorSequence:
    return TensorSequence(x) if lengths is None else joined_elements(node, x, lengths)


@onnx("Optional")
def optional(node: OnnxNode, x: Value = None) -> Outputs:
    return Outputs([x])


@onnx("OptionalGetElement")
def optional_get_element(node: OnnxNode, x: Value) -> Outputs:
    if not isinstance(x, OptionalValue) or x.is_sequence:
        return Outputs([x.elements if isinstance(x, OptionalValue) else x])
    count = count_of(node.build, x.elements)
    first = node.within(count, 1, 1, "an optional must have an element", node.list([0]))
    return Outputs([element(node.build, x.elements, first)])


@onnx("OptionalHasElement")
def optional_has_element(node: OnnxNode, x: Value = None) -> OutPort:
    build = node.build
    if isinstance(x, OptionalValue):
        return build.Greater(build.Squeeze(count_of(build, x.elements), node.list([0])), 0)
    return build.const(x is not None, DType.BOOL)
