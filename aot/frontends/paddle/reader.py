"""Reads networks of PaddlePaddle, whose operations become foreign nodes.

program, weights -> Program in one form -> Graph of paddle.*
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.scopes import SizeNames
from aot.frontends.paddle.files import OLDER, WEIGHTS, pair
from aot.frontends.paddle.older import read_older
from aot.frontends.paddle.pir import read_program
from aot.frontends.paddle.program import Given, Input, Key, Keys, Operation, Program
from aot.frontends.paddle.weights import read_weights
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.runtime.errors import CorruptError, UsageError


def read(path: Path, other: Path | None = None) -> Graph:
    """Return the network of a file of either kind, or in a folder, in dialect `paddle`; `other`: the weights.

    CorruptError for a file that is damaged; UsageError for a network whose weights are missing.
    """
    model, weights = pair(path, other)
    program = (read_older if model.suffix == OLDER else read_program)(model)
    names = list(program.weights.values())
    if names and weights is None:
        raise UsageError(f"{model.name}: the weights are in a file beside it, {model.stem}{WEIGHTS}, got none")
    tensors = read_weights(weights, names) if names and weights is not None else {}
    return _Reader(model.name, program, tensors).run(model.stem)


@dataclass(slots=True)
class _Reader:
    file: str
    program: Program
    tensors: dict[str, Array]
    names: SizeNames = field(default_factory=SizeNames)
    graph: Graph = field(default_factory=Graph)

    def run(self, name: str) -> Graph:
        """Return the graph of the network."""
        self.graph.name, self.graph.file = name, self.file
        values: dict[Key, OutPort] = {}
        for key, given in self.program.inputs.items():
            values[key] = self._parameter(given)
        for op in self.program.block.operations:
            self._operation(op, values)
        if not self.program.outputs:
            raise CorruptError(f"{self.file}: a network has outputs, got none")
        for label, key in self.program.outputs:
            port = self._value(key, values, label)
            made = self.graph.add(Result(), port, name=label, origin=Origin((label,), self.file))
            made.out_port(0).names = (label,)
        return self.graph

    def _parameter(self, given: Input) -> OutPort:
        sizes = given.shape
        if any(n < -1 for n in sizes):
            raise CorruptError(f"{self.file}: input {given.name!r}: sizes are -1 or 0 and more, got {list(sizes)}")
        shape = tuple(n if n >= 0 else self.names.symbol(f"{given.name}.d{i}") for i, n in enumerate(sizes))
        origin = Origin((given.name,), self.file)
        port = self.graph.add(Parameter(given.dtype, shape), name=given.name, origin=origin).out_port(0)
        port.names = (given.name,)
        return port

    def _operation(self, op: Operation, values: dict[Key, OutPort]) -> None:
        """Add the node of an operation."""
        sources = [self._source(op, i, key, values) for i, key in enumerate(op.inputs)]
        attrs: dict[str, Any] = dict(op.attrs)
        if op.blocks:
            attrs["unsupported"] = "control flow that depends on data is not supported"
        made = self._node(op.kind, op.name, sources, len(op.outputs), attrs)
        for key, port in zip(op.outputs, made, strict=True):
            if isinstance(key, tuple):
                values.update(zip(key, self._node("builtin.split", op.name, [port], len(key), {}), strict=True))
            else:
                values[key] = port

    def _source(self, op: Operation, i: int, key: Keys | Given | None, values: dict[Key, OutPort]) -> OutPort | None:
        """Return an input of an operation."""
        if key is None:
            return None
        if isinstance(key, Given):
            return self._constant(key.data, f"{op.name}.{i}")
        if isinstance(key, tuple):
            parts = [self._value(k, values, op.name) for k in key]
            return self._node("builtin.combine", f"{op.name}.{i}", parts, 1, {})[0]
        return self._value(key, values, op.name)

    def _value(self, key: Key, values: dict[Key, OutPort], reader: str) -> OutPort:
        if key not in values:
            name = self.program.weights.get(key)
            if name is None:
                raise CorruptError(f"{self.file}: {reader!r}: an operation before it gives value {key!r}, got none")
            values[key] = self._constant(self.tensors[name], name)
        return values[key]

    def _node(
        self, kind: str, name: str, sources: Sequence[OutPort | None], outputs: int, attrs: dict[str, Any]
    ) -> list[OutPort]:
        op, origin = Foreign("paddle", kind, tuple(attrs.items())), Origin((name,), self.file)
        made = self.graph.add(op, *sources, name=name, origin=origin, outputs=outputs)
        return list(made.out_ports().values())

    def _constant(self, data: Array, name: str) -> OutPort:
        origin = Origin((name,), self.file)
        return self.graph.add(Constant(dtype_of(data)), name=name, origin=origin, data=data).out_port(0)
