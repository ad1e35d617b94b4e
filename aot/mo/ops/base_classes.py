"""Classes of the library: the base that the tables fill in, and classes with nodes that do more than the tables say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.mo.graph.graph import Node
from aot.mo.ops.layer_attributes import definition, file_attributes
from aot.mo.ops.op import Op
from aot.mo.partial_infer.by_definition import Known, infer_by_definition, infer_types_by_definition
from aot.mo.partial_infer.casting import cast_infer, elementwise_type_infer
from aot.mo.partial_infer.elementwise import (
    bias_add_infer,
    copy_shape_infer,
    copy_value,
    eltwise_infer,
    eltwise_reverse_infer,
)
from aot.mo.utils.arrays import is_a, reverse_bypass_infer


@dataclass(frozen=True)
class Row:
    """One class of the tables."""

    module: str
    name: str
    base: str
    op: str | None
    type: str | None
    version: str | None
    counts: tuple[int | None, int | None]  # of inputs and outputs; None: as many as are connected
    defaults: dict[str, Any]
    files: list[str] = field(default_factory=list[str])  # attributes of files where no set has the operation


class LibraryOp(Op):
    """A class of the tables. Its defaults are those of its bases and its own; an extension may derive from it."""

    row: Row
    needs: tuple[str, ...] = ()  # attributes that must be given

    def __init__(self, graph: Any, attrs: dict[str, Any] | None = None, more: dict[str, Any] | None = None) -> None:
        row, cls = self.row, type(self)
        own = "row" in vars(cls) or cls.op == row.op  # else an extension has derived another operation
        version = getattr(cls, "version", row.version)
        type_ = getattr(cls, "op_type", None) or (row.type if own else cls.op)
        defaults: dict[str, Any] = {"op": cls.op, "type": type_, **({} if version is None else {"version": version})}
        counts = zip(("in_ports_count", "out_ports_count"), row.counts, strict=True)
        defaults |= {key: count for key, count in counts if count is not None}
        methods = {name: getattr(self, name, None) for name in ("infer", "type_infer", "reverse_infer", "cf_infer")}
        defaults |= {name: method for name, method in methods.items() if method is not None}
        for base in reversed(cls.__mro__):
            base_row = vars(base).get("row")
            defaults |= {} if base_row is None else {k: _own(v) for k, v in base_row.defaults.items()}
        all_attrs = {**(attrs or {}), **(more or {})}
        for name in self.needs:
            assert all_attrs.get(name) is not None, f"{cls.__name__}: attribute {name} must be given, got none"
        super().__init__(graph, defaults, all_attrs)
        self.complete()

    def complete(self) -> None:
        """Set the attributes that follow from others."""

    def supported_attrs(self) -> list[Any]:
        return file_attributes(self.attrs.get("type"), self.attrs.get("version")) or list(self.row.files)


class _OfClass:
    """A function `infer(node)` of each class: the class's type and version count where the node has none."""

    def __init__(self, function: Callable[[Node, Known], None]) -> None:
        self._function = function
        self._made: dict[type[LibraryOp], Callable[[Node], None]] = {}

    def __get__(self, instance: LibraryOp | None, owner: type[LibraryOp]) -> Callable[[Node], None]:
        if owner not in self._made:
            row = getattr(owner, "row", None)
            otherwise = (None, None) if row is None else (row.type, row.version)
            self._made[owner] = lambda node: self._function(node, otherwise)
        return self._made[owner]


class DefinedOp(LibraryOp):
    """An operation of a set: its definition infers it."""

    infer = _OfClass(infer_by_definition)
    by_definition = infer  # for classes whose function has another name
    type_infer = _OfClass(infer_types_by_definition)


def _own(value: Any) -> Any:
    """Return a copy of a default that a node may change."""
    return value.copy() if is_a(value, (list, dict)) else value


def _activation_infer(node: Node, otherwise: Known) -> None:
    type_, version = (
        node.soft_get(key, None) or known for key, known in zip(("type", "version"), otherwise, strict=True)
    )
    if definition(type_, version) is not None:
        infer_by_definition(node, otherwise)
    else:
        eltwise_infer(node, node.soft_get("operation", None))


class Cast(DefinedOp):
    """A conversion of elements to `dst_type`."""

    infer = _OfClass(cast_infer)


class Activation(DefinedOp):
    """An operation with one input; `operation(x)` gives the value of one that no set has."""

    operation: Any = None
    infer = _OfClass(_activation_infer)

    def complete(self) -> None:
        self.attrs.setdefault("operation", self.operation)

    @staticmethod
    def reverse_infer(node: Node) -> None:
        reverse_bypass_infer(node, in_ports=[0])


class LeakyReLU(LibraryOp):
    """`negative_slope` times what is below zero."""

    @staticmethod
    def infer(node: Node) -> None:
        def value(x: Any) -> Any:
            return np.maximum(x, 0) + node.negative_slope * np.minimum(x, 0)

        eltwise_infer(node, value)


class Elementwise(DefinedOp):
    """An operation with two inputs that are broadcast; `operation(a, b)` gives the value of one that no set has."""

    operation: Any = None
    op_type: Any = None
    type_infer = _OfClass(elementwise_type_infer)
    reverse_infer = staticmethod(eltwise_reverse_infer)

    def complete(self) -> None:
        operation = self.attrs.get("operation", self.operation)
        if definition(self.attrs.get("type"), self.attrs.get("version")) is None:

            def infer(node: Any) -> None:
                eltwise_infer(node, operation)

            self.attrs["infer"] = infer


class BiasAdd(Elementwise):
    """Add of a vector to the channels."""

    def complete(self) -> None:
        def infer(node: Any) -> None:
            bias_add_infer(node, np.add)

        self.attrs["infer"] = infer


class Copy(LibraryOp):
    """An operation with its input as its output."""

    @staticmethod
    def infer(node: Node) -> None:
        copy_shape_infer(node, copy_value)


class SplitBase(DefinedOp):
    """`num_splits` parts of equal size."""

    needs = ("num_splits",)

    def complete(self) -> None:
        self.attrs.setdefault("out_ports_count", self.attrs["num_splits"])


class VariadicSplitBase(DefinedOp):
    """`out_ports_count` parts."""

    needs = ("out_ports_count",)


class AttributedVariadicSplit(VariadicSplitBase):
    """Parts of `size_splits` along `axis`; `split_lengths` are the same."""

    needs = ("axis",)

    def complete(self) -> None:
        sizes = self.attrs.get("size_splits", self.attrs.get("split_lengths"))
        assert sizes is not None, f"{type(self).__name__}: attribute size_splits must be given, got none"
        self.attrs.setdefault("out_ports_count", len(sizes))


class Pooling(DefinedOp):
    """Type and version follow `pool_method`, max or avg."""

    def complete(self) -> None:
        method = self.attrs.get("pool_method")
        if method is not None and self.attrs.get("type") is None:
            self.attrs["type"], self.attrs["version"], self.attrs["out_ports_count"] = POOLS[method]


POOLS = {"max": ("MaxPool", "opset8", 2), "avg": ("AvgPool", "opset1", 1)}


class OutputTyped(DefinedOp):
    """An operation that needs `output_type`."""

    needs = ("output_type",)


class EltwiseN(LibraryOp):
    """An elementwise operation with any number of inputs."""

    operation = ""

    def complete(self) -> None:
        name = self.operation or self.attrs.get("operation")
        assert name, f"{type(self).__name__}: attribute operation must be given, got none"
        self.attrs["operation"] = name

    @staticmethod
    def infer(node: Node) -> None:
        ways = {"sum": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "sub": np.subtract}
        eltwise_infer(node, ways.get(node["operation"]))


def _eltwise(name: str) -> type[EltwiseN]:
    return type(f"EltwiseN_{name}", (EltwiseN,), {"operation": name})


SHARED: dict[tuple[str, str], Any] = {
    ("Cast", "Cast"): Cast,
    ("activation_ops", "Activation"): Activation,
    ("activation_ops", "LeakyReLU"): LeakyReLU,
    ("elementwise", "Elementwise"): Elementwise,
    ("elementwise", "BiasAdd"): BiasAdd,
    ("identity", "Identity"): Copy,
    ("identity", "IdentityN"): Copy,
    ("stop_gradient", "StopGradientOp"): Copy,
    ("fake_output", "FakeOutput"): Copy,
    ("split", "SplitBase"): SplitBase,
    ("split", "AttributedVariadicSplit"): AttributedVariadicSplit,
    ("split", "VariadicSplitBase"): VariadicSplitBase,
    ("pooling", "Pooling"): Pooling,
    ("non_zero", "NonZero"): OutputTyped,
    ("size", "Size"): OutputTyped,
    ("eltwise_n", "EltwiseN"): EltwiseN,
    ("eltwise_n", "EltwiseNAdd"): _eltwise("sum"),
    ("eltwise_n", "EltwiseNMul"): _eltwise("mul"),
    ("eltwise_n", "EltwiseNMax"): _eltwise("max"),
    ("eltwise_n", "EltwiseNMin"): _eltwise("min"),
}
