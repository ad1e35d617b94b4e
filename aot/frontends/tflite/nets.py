"""The sub-graphs of a file: tensors, operators, inputs and outputs, read when they are walked first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.tflite.blocks import with_blocks
from aot.frontends.tflite.schema import Table, enumeration, names_of
from aot.frontends.tflite.tensors import Stored, contents, read_tensor
from aot.ir.types import Array
from aot.runtime.errors import CorruptError

ABSENT = -1  # the number of a tensor that is left out
_CUSTOM = "CUSTOM"
_NEWER = 3  # field of OperatorCode; the class of the package gives 0 for numbers below 127 that stand there alone


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator: `kind` is its name in the schema, or that of a custom operation after `CUSTOM.`."""

    kind: str
    attrs: dict[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...] = ()  # tensors whose scales the operator computes with


@dataclass(frozen=True, slots=True)
class Net:
    """A sub-graph; numbers of inputs and outputs are those of `tensors`."""

    name: str
    tensors: list[Stored]
    operators: list[Operator]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(slots=True)
class Nets:
    """The sub-graphs of a model by their numbers. `data`: the file."""

    model: Table
    data: Any
    file: str
    graphs: list[Table] = field(init=False)
    buffers: list[Table] = field(init=False)
    codes: list[str] = field(init=False)
    read: dict[int, Net] = field(default_factory=dict[int, Net])

    def __post_init__(self) -> None:
        self.graphs, self.buffers = self.model.tables("Subgraphs"), self.model.tables("Buffers")
        names = names_of(enumeration("BuiltinOperator"))
        self.codes = [_kind(code, names) for code in self.model.tables("OperatorCodes")]

    def __getitem__(self, number: int) -> Net:
        if not 0 <= number < len(self.graphs):
            raise CorruptError(f"{self.file}: a sub-graph must be one of {len(self.graphs)}, got number {number}")
        if number not in self.read:
            self.read[number] = self._net(self.graphs[number])
        return self.read[number]

    def buffer(self, number: int) -> Array | None:
        """Return the bytes of a buffer of the model, for metadata."""
        if not 0 <= number < len(self.buffers):
            raise CorruptError(f"{self.file}: a buffer must be one of {len(self.buffers)}, got number {number}")
        return contents(self.buffers[number], self.data, f"{self.file}: buffer {number}")

    def _net(self, graph: Table) -> Net:
        tables = graph.tables("Tensors")
        plain_tensors = [read_tensor(t, self.buffers, self.data) for t in tables]
        tensors = [with_blocks(s, t, plain_tensors) for s, t in zip(plain_tensors, tables, strict=True)]
        net = Net(
            graph.text("Name"),
            tensors,
            [self._operator(op, len(tensors)) for op in graph.tables("Operators")],
            graph.numbers("Inputs"),
            graph.numbers("Outputs"),
        )
        self._check((*net.inputs, *net.outputs), len(tensors), 0, "input or output of a sub-graph")
        return net

    def _operator(self, op: Table, count: int) -> Operator:
        number = int(op.number("OpcodeIndex"))
        if number >= len(self.codes):
            raise CorruptError(f"{self.file}: an operator's code must be one of {len(self.codes)}, got number {number}")
        kind: str = self.codes[number]
        attrs: dict[str, Any] = {}
        for field_ in ("BuiltinOptions", "BuiltinOptions2"):
            options = op.union(field_, op.number(f"{field_}Type"), enumeration(field_))
            if options is not None:
                attrs |= options[1].fields()
        if kind.startswith(_CUSTOM):
            attrs["options"] = op.array("CustomOptions").tobytes()
        inputs, outputs, within = (op.numbers(field_) for field_ in ("Inputs", "Outputs", "Intermediates"))
        self._check(inputs, count, ABSENT, f"input of {kind}")
        self._check(outputs, count, 0, f"output of {kind}")
        self._check(within, count, 0, f"intermediate tensor of {kind}")
        return Operator(kind, attrs, inputs, outputs, within)

    def _check(self, numbers: Sequence[int], count: int, least: int, what: str) -> None:
        for n in numbers:
            if not least <= n < count:
                raise CorruptError(f"{self.file}: {what} must be one of {count} tensors, got number {n}")


def _kind(code: Table, names: dict[int, str]) -> str:
    """Return the operation of a code: the larger of two numbers, since the older number ends at 127."""
    number = max(code.stored(_NEWER), code.number("DeprecatedBuiltinCode"))
    name = names.get(number, f"builtin {number}")
    return f"{_CUSTOM}.{code.text('CustomCode')}" if name == _CUSTOM else name
