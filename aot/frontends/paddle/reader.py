"""Reads networks of PaddlePaddle; their operations become foreign nodes.

program, weights -> Program in one form -> Graph of paddle.*
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.scopes import Scope, SizeNames, branch_inputs, loop_inputs
from aot.frontends.paddle.files import NAME, OLDER, WEIGHTS, require_program
from aot.frontends.paddle.older import read_older
from aot.frontends.paddle.pir import read_program
from aot.frontends.paddle.program import Block, ConstantInput, Input, Key, Keys, Operation, Program
from aot.frontends.paddle.weights import read_weights
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, CorruptError, UsageError

REGIONS = {"if": ("then_branch", "else_branch"), "while": ("body",)}  # names of blocks, as ONNX has them


def read(path: Path, other: Path | None = None) -> Graph:
    """Return the network of a file of either kind, or in a folder, in dialect `paddle`; `other`: the weights.

    CorruptError for a file that is damaged; UsageError for a network whose weights are missing.
    """
    model, weights = require_program(path, other)
    program = (read_older if model.suffix == OLDER else read_program)(model)
    names = list(program.weights.values())
    if names and weights is None:
        rule = f"the weights are in a file beside it, {model.stem}{WEIGHTS}"
        raise UsageError(f"{model.name}: {rule}, got none", advice=f"copy {model.stem}{WEIGHTS} to {model.parent}")
    tensors = read_weights(weights, names) if names and weights is not None else {}
    name = model.absolute().parent.name if model.stem == NAME else model.stem  # exporters call all files alike
    return _Reader(model.name, program, tensors).run(name)


@dataclass(slots=True)
class _Reader:
    file: str
    program: Program
    tensors: dict[str, Array]
    names: SizeNames = field(default_factory=SizeNames)

    def run(self, name: str) -> Graph:
        """Return the graph of the network."""
        scope = Scope(Graph(name=name, file=self.file))
        for key, value in self.program.inputs.items():
            scope.values[str(key)] = self._parameter(value, scope.graph)
        for op in self.program.block.operations:
            self._operation(op, scope)
        if not self.program.outputs:
            raise CorruptError(f"{self.file}: a network must have outputs, got none")
        for label, key in self.program.outputs:
            node = scope.graph.add(Result(), self._value(key, scope), name=label, origin=Origin((label,), self.file))
            node.out_port(0).names = (label,)
        return scope.graph

    def _parameter(self, declared: Input, graph: Graph) -> OutPort:
        sizes = declared.shape
        if any(n < -1 for n in sizes):
            raise CorruptError(
                f"{self.file}: input {declared.name!r}: sizes must be -1 or 0 and more, got {list(sizes)}"
            )
        shape = tuple(n if n >= 0 else self.names.symbol(f"{declared.name}.d{i}") for i, n in enumerate(sizes))
        origin = Origin((declared.name,), self.file)
        port = graph.add(Parameter(declared.dtype, shape), name=declared.name, origin=origin).out_port(0)
        port.names = (declared.name,)
        return port

    def _operation(self, op: Operation, scope: Scope) -> None:
        """Add the node of an operation."""
        try:
            sources = [self._source(op, i, key, scope) for i, key in enumerate(op.inputs)]
            attrs: dict[str, Any] = dict(op.attrs)
            regions: dict[str, Graph] = {}
            if op.blocks:
                sources, regions, attrs = self._regions(op, sources, scope, attrs)
        except AotError as error:
            error.add_note(f"in PaddlePaddle operation {op.name!r} ({op.kind}) of {self.file}")
            raise
        outputs = self._node(op.kind, op.name, sources, len(op.outputs), attrs, scope)
        if regions:
            outputs[0].node.regions = regions
        for key, port in zip(op.outputs, outputs, strict=True):
            if isinstance(key, tuple):
                parts = self._node("builtin.split", op.name, [port], len(key), {}, scope)
                scope.values.update(zip(map(str, key), parts, strict=True))
            else:
                scope.values[str(key)] = port

    def _regions(
        self, op: Operation, sources: list[OutPort | None], scope: Scope, attrs: dict[str, Any]
    ) -> tuple[list[OutPort | None], dict[str, Graph], dict[str, Any]]:
        """Return the inputs, the regions and the attributes of an operation with blocks."""
        labels = REGIONS.get(op.kind, ())
        connected = [port for port in sources if port is not None]
        if len(labels) != len(op.blocks) or len(connected) != len(sources) or not op.outputs:
            rule = f"an operation with {len(labels)} blocks, inputs and outputs"
            raise CorruptError(f"{self.file}: {op.kind} is {rule}, got {len(op.blocks)} blocks")
        inners = [
            self._region(block, label, scope, op.kind == "while")
            for block, label in zip(op.blocks, labels, strict=True)
        ]
        attrs = attrs | {"inputs": len(connected)}
        if op.kind == "while":
            ports, captures = loop_inputs(connected, (), inners[0])
        else:
            ports, captures = branch_inputs(connected[0], labels, inners)
        regions = {label: inner.graph for label, inner in zip(labels, inners, strict=True)}
        return [*ports], regions, attrs | {"captures": captures}

    def _region(self, block: Block, label: str, outer: Scope, is_loop: bool) -> Scope:
        """Return the graph of a block. Its parameters are the block's arguments and values of the outer graph.

        In front of those of a loop come the number of the step and the condition, as in ONNX's Loop.
        """
        inner = Scope(Graph(name=label, file=self.file), outer)
        arguments = [f"{label}.step", f"{label}.condition", *block.arguments] if is_loop else block.arguments
        for key in arguments:
            inner.values[str(key)] = inner.graph.add(Parameter(DType.F32, None), name=f"{label}.{key}").out_port(0)
        for op in block.operations:
            self._operation(op, inner)
        ports = [self._value(key, inner) for key in block.results]
        if is_loop:  # the condition may have an axis
            ports[:1] = self._node("builtin.scalar", f"{label}.going", ports[:1], 1, {}, inner)
        for i, port in enumerate(ports):
            inner.graph.add(Result(), port, name=f"{label}.{i}")
        return inner

    def _source(self, op: Operation, i: int, key: Keys | ConstantInput | None, scope: Scope) -> OutPort | None:
        """Return an input of an operation."""
        if isinstance(key, ConstantInput):
            return self._constant(key.data, f"{op.name}.{i}", scope)
        if key is None or key in self.program.absent:
            return None
        if isinstance(key, tuple):
            parts = [self._value(k, scope) for k in key]
            return self._node("builtin.combine", f"{op.name}.{i}", parts, 1, {}, scope)[0]
        return self._value(key, scope)

    def _value(self, key: Key, scope: Scope) -> OutPort:
        """Return a value at the place that is reached: an operation's, a weight, or one of the graph around."""
        name = self.program.weights.get(key)
        if name is not None and str(key) not in scope.values:
            scope.values[str(key)] = self._constant(self.tensors[name], name, scope)
        return scope.read(str(key), self._missing)

    def _missing(self, key: str, scope: Scope) -> OutPort:
        del scope
        raise CorruptError(f"{self.file}: an operation before it must give value {key}, got none")

    def _node(
        self,
        kind: str,
        name: str,
        sources: Sequence[OutPort | None],
        outputs: int,
        attrs: dict[str, Any],
        scope: Scope,
    ) -> list[OutPort]:
        op, origin = Foreign("paddle", kind, tuple(attrs.items())), Origin((name,), self.file)
        node = scope.graph.add(op, *sources, name=name, origin=origin, outputs=outputs)
        return list(node.out_ports().values())

    def _constant(self, data: Array, name: str, scope: Scope) -> OutPort:
        origin = Origin((name,), self.file)
        return scope.graph.add(Constant(dtype_of(data)), name=name, origin=origin, data=data).out_port(0)
