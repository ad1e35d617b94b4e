"""The front pass that turns foreign operations of dialect `onnx` into operations of the opset, producers first.

    foreign ports --(environment)--> ports of new nodes, sequences of ports, nothing

Types and small values of converted inputs are known when a node is converted: If and Loop are resolved on the way.
All nodes that cannot be converted are listed in one error.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from aot.frontends.onnx.forks import (
    FAILED,
    Fork,
    Forked,
    Made,
    Side,
    forks_of,
    has_open_ranks,
    joined,
    open_fork,
    tensors_in,
)
from aot.frontends.onnx.forks import Call as CallOf
from aot.frontends.onnx.registry import Call, Conversion, Outputs, Value, conversion_of
from aot.frontends.onnx.ruled_out import settle
from aot.frontends.unsupported import Problem, unconverted
from aot.ir.build import Builder
from aot.ir.copies import copy_node
from aot.ir.graph import Graph, InPort, Node, OutPort
from aot.ir.op import Foreign
from aot.ir.types import Dim
from aot.opset.control.control_flow import BRANCHES, If
from aot.opset.control.infrastructure import Constant, Parameter, Result
from runtime.errors import AotError, BudgetError, ModelError, UnsupportedError

WINGS = ("arrays", "image", "math", "microsoft", "neural", "tabular")  # folders of conversions
for _wing in WINGS:
    for _module in iter_modules([str(Path(__file__).parent / _wing)]):
        import_module(f"{__package__}.{_wing}.{_module.name}")
import_module(f"{__package__}.control_flow")
MAX_FORKS = 256
DECLARED_TYPE = "declared"  # attribute of a Result until it is converted: the output's type in the file
# exceptions that Python raises in conversions, which assume nodes that keep the rules of ONNX
CONVERSION_ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class OnnxToOpset:
    """Converts foreign operations to operations of the opset. Random numbers need a seed."""

    seed: int | None = None
    name: str = "onnx_to_opset"
    phase: str = "front"
    required: bool = True
    run_not_recursively: bool = True

    def __call__(self, graph: Graph) -> bool:
        """Convert the graph in place. Raises UnconvertedError, or ModelError where a node breaks a rule of ONNX."""
        ranks = [_declared_rank(result) for result in graph.results]
        nodes = [n for n in graph.order() if _foreign(n) is not None]
        if not nodes:
            return False
        work = _Work(graph, self.seed)
        values = work.results(graph, {})
        problems = list(dict.fromkeys(work.problems))
        if problems:
            raise unconverted(graph.file or graph.name, problems)
        settle(list(zip(values, ranks, strict=True)), work.forks)
        for node, pair in zip(graph.results, values, strict=True):
            value = joined(pair)
            if not isinstance(value, OutPort):
                what = "a sequence" if value is not None else "absent"
                raise unconverted(graph.file or graph.name, [_output_problem(node, what)])
            node.in_port(0).connect(value)
        for node in reversed(nodes):
            for port in node.out_ports().values():
                port.disconnect()
            graph.remove(node)
        return True


def _declared_rank(result: Node) -> int | None:
    """Return the rank that the file declares for an output, and forget the declaration."""
    declared = result.rt_info.pop(DECLARED_TYPE, None)
    return None if declared is None else int(declared["rank"])


def _output_problem(node: Node, what: str) -> Problem:
    return Problem(node.name, "Output", "", 0, f"outputs must be tensors, got {what}")


def _foreign(node: Node) -> Foreign | None:
    return node.op if isinstance(node.op, Foreign) and node.op.dialect == "onnx" else None


Environment = dict[OutPort, Any]


@dataclass(slots=True)
class _Work:
    """Converts nodes into `graph`, which may be another graph than theirs."""

    graph: Graph
    seed: int | None
    problems: list[Problem] = field(default_factory=list[Problem])
    made: dict[OutPort, Made] = field(default_factory=dict[OutPort, Made])  # values that depend on forks
    forks: list[Fork] = field(default_factory=list[Fork])  # forks of this graph and of its bodies

    def results(self, source: Graph, env: Environment) -> list[Any]:
        """Return the values of a graph's results; FAILED for those that could not be converted."""
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
            self._keep(node, env)
        elif node.type != "Parameter":  # parameters of regions are in `env` already
            self._copy(node, env)

    def _keep(self, node: Node, env: Environment) -> None:
        """Let a node of the opset, inserted by an extension, read the converted values of its inputs."""
        for port, value in self._converted(node, env):
            if port.source is not value:
                port.connect(value)
        env |= {port: port for port in node.out_ports().values()}

    def _copy(self, node: Node, env: Environment) -> None:
        """Copy a node of the opset from a region."""
        held: dict[OutPort, OutPort] = {}
        for port, value in self._converted(node, env):
            assert port.source is not None
            held[port.source] = value
        copy_node(node, self.graph, held)
        env |= {port: held[port] for port in node.out_ports().values()}

    def _converted(self, node: Node, env: Environment) -> list[tuple[InPort, OutPort]]:
        """Return the connected inputs of a node of the opset, each with the converted tensor."""
        pairs: list[tuple[InPort, OutPort]] = []
        for port in node.in_ports().values():
            value = None if port.source is None else joined(env[port.source])
            if isinstance(value, OutPort):
                pairs.append((port, value))
            elif port.source is not None and value is not FAILED:
                self.problems.append(Problem(node.name, node.type, "", 0, f"input {port.idx} must be a tensor"))
        return pairs

    def _convert(self, node: Node, env: Environment) -> None:
        inputs = [None if s is None else env[s] for s in node.sources()]
        for port, value in zip(node.out_ports().values(), self.evaluate(node, inputs), strict=True):
            env[port] = value
            if node.graph is not self.graph:
                continue
            if isinstance(value, Forked):
                value.names = port.names
            elif isinstance(value, OutPort) and not isinstance(value.node.op, Parameter):
                value.add_tensor_names(port.names)  # an input of the network keeps only its own name

    def evaluate(self, node: Node, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs of a node for converted inputs; FAILED if it cannot be converted, which is recorded.

        Raises ModelError if the inputs break a rule of ONNX.
        """
        op = node.op
        assert isinstance(op, Foreign)
        attrs = dict(op.attrs)
        failed = [FAILED] * len(node.out_ports())
        function = conversion_of(attrs["domain"], op.kind)
        reason = attrs.get("unsupported") or ("" if function is not None else "there is no conversion for it")
        if reason:
            self._refuse(node, op, attrs, reason)
        if reason or FAILED in inputs:
            return failed
        before = len(self.problems)
        try:
            fork = open_fork(inputs)
            return self._closed(node, attrs, inputs) if fork is None else fork.evaluate(node, inputs)
        except UnsupportedError as error:
            if len(self.problems) == before:  # else the problem lies in a body, and is recorded
                self._refuse(node, op, attrs, str(error))
            return failed
        except AotError as error:
            error.add_note(f"in ONNX node {node.name!r} ({op.kind}) of {node.graph.file}")
            raise

    def _closed(self, node: Node, attrs: dict[str, Any], inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs of a node without open pairs among its inputs."""
        values = list(self._called(node, attrs, [joined(v) for v in inputs]))
        forks = frozenset[Fork]().union(*(forks_of(self, v) for v in inputs))
        if forks:
            call = CallOf(node, tuple(inputs))
            for i, value in enumerate(values):
                if isinstance(value, OutPort):
                    self.made.setdefault(value, Made(forks, call, i))
        return values

    def _refuse(self, node: Node, op: Foreign, attrs: dict[str, Any], reason: str) -> None:
        self.problems.append(Problem(node.name, op.kind, attrs["domain"], attrs["opset"], reason))

    def _called(self, node: Node, attrs: dict[str, Any], inputs: list[Value]) -> Sequence[Value]:
        """Return the node's outputs, all of them inferred."""
        op = node.op
        assert isinstance(op, Foreign)
        function = conversion_of(attrs["domain"], op.kind)
        assert function is not None  # `_convert` has checked it
        count = attrs.get("inputs", len(inputs))
        captures: tuple[tuple[str, int, int], ...] = attrs.get("captures", ())
        captured: dict[str, tuple[tuple[int, Value], ...]] = {
            name: tuple((position, inputs[i]) for region, position, i in captures if region == name)
            for name in node.regions
        }
        read = tuple(bool(p.names or p.destinations) for p in node.out_ports().values())
        build = Builder(self.graph, node.origin)
        call = Call(op.kind, attrs["opset"], attrs, build, read, node.regions, captured, self, self.seed, node, inputs)
        arguments = inputs[:count]
        while arguments and arguments[-1] is None:
            arguments.pop()
        _check_inputs(op.kind, function, call, arguments)
        try:
            outputs = function(call, *arguments)
        except CONVERSION_ERRORS as error:
            raise ModelError(f"{op.kind}: its inputs and attributes do not fit each other: {error}") from error
        parts = outputs.values if isinstance(outputs, Outputs) else outputs
        values: list[Any] = [parts] if parts is None or isinstance(parts, OutPort | Forked) else list(parts)
        values += [None] * (len(read) - len(values))
        for value, wanted in zip(values, read, strict=False):
            for port in tensors_in(value):
                port.node.operands()  # an error of inference belongs to this node
            if value is None and wanted:
                raise UnsupportedError(f"{op.kind}: output {values.index(value)} is not supported")
        return values[: len(read)]

    def inline(self, region: Graph, inputs: Sequence[Value]) -> list[Value]:
        env: Environment = {p.out_port(0): v for p, v in zip(region.parameters, inputs, strict=True)}
        last = next(reversed(self.graph.nodes))
        try:
            return _whole(self.results(region, env))
        except AotError:  # a branch that does not fit the shapes may never run: remove its nodes
            for node in reversed([n for n in self.graph.nodes.values() if n.id > last]):
                for port in node.out_ports().values():
                    port.disconnect()
                self.graph.remove(node)
            raise

    def separate(self, region: Graph, inputs: Sequence[OutPort], known: Sequence[bool]) -> Graph:
        inner = self._inner(region)
        values = inner.branch(region, inputs, known)
        for node, value in zip(region.results, values, strict=True):
            port = joined(value)
            if not isinstance(port, OutPort):
                raise UnsupportedError("a sequence or an optional leaves a sub-graph that runs at run time")
            inner.graph.add(Result(), port, name=node.name)
        return inner.graph

    def _inner(self, region: Graph) -> _Work:
        graph = Graph(name=region.name, file=region.file, scope=f"{region.name}.")
        return _Work(graph, self.seed, self.problems, forks=self.forks)

    def branch(self, region: Graph, inputs: Sequence[OutPort], known: Sequence[bool]) -> list[Value]:
        """Convert a region into the graph of this work, whose parameters are like `inputs`; return its results."""
        env: Environment = {}
        for node, port, fixed in zip(region.parameters, inputs, known, strict=True):
            parameter = self.graph.add(Parameter(port.type.dtype, port.type.dims), name=node.name).out_port(0)
            value = port.value
            if fixed and value is not None and value.dtype != object:
                parameter = self.graph.add(Constant(port.type.dtype), name=f"{node.name}.known", data=value).out_port(0)
            env[node.out_port(0)] = parameter
        return _whole(self.results(region, env))

    def fork(
        self, node: Call, if_node: Node, regions: Sequence[tuple[Graph, Sequence[OutPort]]], size: Dim | None = None
    ) -> list[Any]:
        """Return the outputs of an If whose node has no output yet: a pair for each if their ranks differ."""
        op = if_node.op
        assert isinstance(op, If)
        sides: list[Side] = []
        results: list[list[Value]] = []
        for name, (region, ports) in zip(BRANCHES, regions, strict=True):
            inner = self._inner(region)
            if_node.regions[name] = inner.graph
            sides.append(Side(inner, list(op.maps(name)[0])))
            try:
                results.append(inner.branch(region, ports, [True] * len(ports)))
            except ModelError as error:
                sides[-1].error = error
                results.append([None] * len(region.results))
        if all(side.error for side in sides):
            raise sides[0].error or sides[1].error  # type: ignore[misc]
        node.refuse(len(results[0]) != len(results[1]), "its branches have different numbers of outputs")
        call = CallOf(node.node, tuple(node.inputs))
        fork = Fork(self, if_node, (sides[0], sides[1]), size, call)
        pairs = fork.pairs(results[0], results[1], call)
        if not has_open_ranks(pairs):
            return [joined(p) for p in pairs]
        self.forks.append(fork)
        if len(self.forks) > MAX_FORKS:
            rule = f"at most {MAX_FORKS} conditions decide ranks, counted in each branch that reads them, got more"
            raise BudgetError(f"{node.kind}: {rule}: fix the sizes that decide (--dim, --shape)")
        return pairs


def _check_inputs(kind: str, function: Conversion, call: Call, inputs: Sequence[Value]) -> None:
    """Raise ModelError for too few or too many inputs, or for the absence of a required one."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(call, *inputs)
    except TypeError as error:
        raise ModelError(f"{kind}: {len(inputs)} inputs do not fit it ({error})") from error
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
    """Return the ids of the nodes that results depend on, and of all parameters."""
    ids = _ids(graph.parameters)
    stack = list(graph.results)
    while stack:
        node = stack.pop()
        if node.id not in ids or node.op.type == "Parameter":
            ids.add(node.id)
            stack += [s.node for s in node.sources() if s is not None and s.node.id not in ids]
    return ids
