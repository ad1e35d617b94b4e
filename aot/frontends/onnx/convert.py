"""The front pass that turns foreign operations of dialect `onnx` into operations of the opset, producers first.

    foreign ports --(environment)--> ports of new nodes, sequences of ports, nothing

Types and small values of converted inputs are known when a node is converted: If and Loop are resolved on the way.
All nodes that cannot be converted are listed in one error.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aot.frontends.onnx import (
    attention,
    control_flow,
    convolution,
    elementwise,
    folding,
    fourier,
    gather,
    generators,
    losses,
    machine_learning,
    matmul,
    microsoft,
    microsoft_attention,
    microsoft_blocks,
    microsoft_group_query,
    microsoft_quantization,
    movement,
    normalization,
    pooling,
    quantization,
    random_numbers,
    recurrent,
    reduction,
    resize,
    sampling,
    scatter,
    shape,
    softmax,
)
from aot.frontends.onnx.registry import Call, Conversion, Outputs, Value, conversion_of
from aot.frontends.unsupported import Problem, unconverted
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import Foreign
from aot.opset.infrastructure import Constant, Parameter, Result
from runtime.errors import AotError, ModelError, UnsupportedError

FAMILIES = (
    attention, control_flow, convolution, elementwise, folding, fourier, gather, generators, losses,
    machine_learning, matmul, microsoft, microsoft_attention, microsoft_blocks, microsoft_group_query,
    microsoft_quantization, movement, normalization, pooling, quantization, random_numbers, recurrent, reduction,
    resize, sampling, scatter, shape, softmax,
)  # fmt: skip
# What Python raises in a conversion, all of which are written for nodes that keep the rules of ONNX
BROKEN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class OnnxToOpset:
    """Foreign operations become operations of the opset. Random numbers need a seed."""

    seed: int | None = None
    name: str = "onnx_to_opset"
    phase: str = "front"
    required: bool = True
    run_not_recursively: bool = True

    def __call__(self, graph: Graph) -> bool:
        """Converts in place. Raises UnconvertedError, or ModelError where a node breaks a rule of ONNX."""
        nodes = [n for n in graph.order() if _foreign(n) is not None]
        if not nodes:
            return False
        work = _Work(graph, self.seed)
        values = work.results(graph, {})
        problems = list(dict.fromkeys(work.problems))
        if problems:
            raise unconverted(graph.file or graph.name, problems)
        for node, value in zip(graph.results, values, strict=True):
            if not isinstance(value, OutPort):
                what = "a sequence" if value is not None else "absent"
                raise unconverted(graph.file or graph.name, [_output_problem(node, what)])
            node.in_port(0).connect(value)
        for node in reversed(nodes):
            for port in node.out_ports().values():
                port.disconnect()
            graph.remove(node)
        return True


def _output_problem(node: Node, what: str) -> Problem:
    return Problem(node.name, "Output", "", 0, f"outputs must be tensors, got {what}")


def _foreign(node: Node) -> Foreign | None:
    return node.op if isinstance(node.op, Foreign) and node.op.dialect == "onnx" else None


class _Failed:
    """Stands for the outputs of a node that could not be converted."""


FAILED = _Failed()
Environment = dict[OutPort, Any]


@dataclass(slots=True)
class _Work:
    """Converts nodes into `graph`, which need not be the graph they are in."""

    graph: Graph
    seed: int | None
    problems: list[Problem] = field(default_factory=list[Problem])

    def results(self, source: Graph, env: Environment) -> list[Any]:
        """The values of a graph's results; FAILED for those that could not be made."""
        needed = _needed(source)
        for node in source.order():
            if node.id in needed:
                self._visit(source, node, env)
        return [env[node.source(0)] for node in source.results]

    def _visit(self, source: Graph, node: Node, env: Environment) -> None:
        if isinstance(node.op, Result):
            return
        if _foreign(node) is not None:
            self._convert(node, env)
        elif source is self.graph:
            env[node.out_port(0)] = node.out_port(0)
        elif node.data is not None:
            copy = self.graph.add(node.op, name=node.name, origin=node.origin, data=node.data)
            env[node.out_port(0)] = copy.out_port(0)

    def _convert(self, node: Node, env: Environment) -> None:
        op = node.op
        assert isinstance(op, Foreign)
        attrs = dict(op.attrs)
        inputs = [None if s is None else env[s] for s in node.sources()]
        values: Sequence[Any] = [FAILED] * len(node.out_ports())
        function = conversion_of(attrs["domain"], op.kind)
        reason = attrs.get("unsupported") or ("" if function is not None else "there is no conversion for it")
        if reason:
            self._refuse(node, op, attrs, reason)
        elif FAILED not in inputs:
            before = len(self.problems)
            try:
                values = self._called(node, attrs, inputs)
            except UnsupportedError as error:
                if len(self.problems) == before:  # else it lies in a body, and is listed
                    self._refuse(node, op, attrs, str(error))
            except AotError as error:
                error.add_note(f"in ONNX node {node.name!r} ({op.kind}) of {node.graph.file}")
                raise
        for port, value in zip(node.out_ports().values(), values, strict=True):
            env[port] = value
            named = node.graph is self.graph and isinstance(value, OutPort)
            if named and not isinstance(value.node.op, Parameter):  # an input keeps its own name alone
                value.add_tensor_names(port.names)

    def _refuse(self, node: Node, op: Foreign, attrs: dict[str, Any], reason: str) -> None:
        self.problems.append(Problem(node.name, op.kind, attrs["domain"], attrs["opset"], reason))

    def _called(self, node: Node, attrs: dict[str, Any], inputs: list[Value]) -> Sequence[Value]:
        """The node's outputs, all of them inferred."""
        op = node.op
        assert isinstance(op, Foreign)
        function = conversion_of(attrs["domain"], op.kind)
        assert function is not None  # `_convert` has asked
        count = attrs.get("inputs", len(inputs))
        captures: tuple[tuple[str, int, int], ...] = attrs.get("captures", ())
        captured: dict[str, tuple[tuple[int, Value], ...]] = {
            name: tuple((position, inputs[i]) for region, position, i in captures if region == name)
            for name in node.regions
        }
        read = tuple(bool(p.names or p.destinations) for p in node.out_ports().values())
        build = Builder(self.graph, node.origin)
        call = Call(op.kind, attrs["opset"], attrs, build, read, node.regions, captured, self, self.seed)
        given = inputs[:count]
        while given and given[-1] is None:
            given.pop()
        _check_inputs(op.kind, function, call, given)
        try:
            found = function(call, *given)
        except BROKEN as error:
            raise ModelError(f"{op.kind}: its inputs and attributes do not fit each other: {error}") from error
        parts = found.values if isinstance(found, Outputs) else found
        values: list[Value] = [parts] if parts is None or isinstance(parts, OutPort) else list(parts)
        values += [None] * (len(read) - len(values))
        for value, wanted in zip(values, read, strict=False):
            for port in value if isinstance(value, tuple) else () if value is None else (value,):
                port.node.operands()  # what cannot be inferred belongs to this node
            if value is None and wanted:
                raise UnsupportedError(f"{op.kind}: output {values.index(value)} is not supported")
        return values[: len(read)]

    def inline(self, region: Graph, inputs: Sequence[Value]) -> list[Value]:
        env: Environment = {p.out_port(0): v for p, v in zip(region.parameters, inputs, strict=True)}
        last = next(reversed(self.graph.nodes))
        try:
            return _whole(self.results(region, env))
        except AotError:  # a branch that does not fit the shapes may never run: nothing of it stays
            for node in reversed([n for n in self.graph.nodes.values() if n.id > last]):
                for port in node.out_ports().values():
                    port.disconnect()
                self.graph.remove(node)
            raise

    def separate(self, region: Graph, inputs: Sequence[OutPort], known: Sequence[bool]) -> Graph:
        inner = _Work(Graph(name=region.name, file=region.file, scope=f"{region.name}."), self.seed, self.problems)
        env: Environment = {}
        for node, port, fixed in zip(region.parameters, inputs, known, strict=True):
            made = inner.graph.add(Parameter(port.type.dtype, port.type.dims), name=node.name).out_port(0)
            value = port.value
            if fixed and value is not None and value.dtype != object:
                made = inner.graph.add(Constant(port.type.dtype), name=f"{node.name}.known", data=value).out_port(0)
            env[node.out_port(0)] = made
        for node, value in zip(region.results, _whole(inner.results(region, env)), strict=True):
            if not isinstance(value, OutPort):
                raise UnsupportedError("a sequence or an optional leaves a sub-graph that runs at run time")
            inner.graph.add(Result(), value, name=node.name)
        return inner.graph


def _check_inputs(kind: str, function: Conversion, call: Call, given: Sequence[Value]) -> None:
    """ModelError for too few or too many inputs, or one left out that the operation needs."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(call, *given)
    except TypeError as error:
        raise ModelError(f"{kind}: {len(given)} inputs do not fit it ({error})") from error
    for name, value in bound.arguments.items():
        annotation = str(signature.parameters[name].annotation)
        if value is None and "None" not in annotation and "Value" not in annotation:
            raise ModelError(f"{kind}: input {name} must be given, got none")


def _whole(values: list[Any]) -> list[Value]:
    if FAILED in values:
        raise UnsupportedError("a node in its sub-graph is not supported")
    return values


def _ids(nodes: Iterable[Node]) -> set[int]:
    return {n.id for n in nodes}


def _needed(graph: Graph) -> set[int]:
    """The nodes that results depend on, and all parameters."""
    found = _ids(graph.parameters)
    stack = list(graph.results)
    while stack:
        node = stack.pop()
        if node.id not in found or node.op.type == "Parameter":
            found.add(node.id)
            stack += [s.node for s in node.sources() if s is not None and s.node.id not in found]
    return found
