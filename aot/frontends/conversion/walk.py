"""Turns foreign operations into operations of the opset, producers first, by the conversions of their dialects.

    foreign ports --(environment)--> ports of new nodes, sequences of ports, nothing

Types and small values of converted inputs are known when a node is converted: If and Loop are resolved on the way.
All nodes that cannot be converted are listed in one error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.dialect import Dialect, Dialects, connected_inputs, foreign, rule_of_inputs
from aot.frontends.conversion.node_context import CompositeTensor, Conversion, NodeContext, Outputs, PresentValue, Value
from aot.frontends.conversion.rank_branches import (
    FAILED,
    Branch,
    Branching,
    BranchValues,
    ConvertedNode,
    ValueOrigin,
    branchings_of,
    innermost_branching,
    joined,
    ranks_differ,
    tensors_in,
)
from aot.frontends.conversion.ruled_out import rule_out_branches
from aot.frontends.unsupported import Problem, unconverted
from aot.ir.build import Builder
from aot.ir.copies import copy_node
from aot.ir.graph import Graph, InPort, Node, OutPort
from aot.ir.op import Foreign
from aot.ir.types import Dim
from aot.opset.control.control_flow import BRANCHES, If
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, BudgetError, ModelError, UnsupportedError

MAX_BRANCHINGS = 256
DECLARED = "declared"  # key in a Result's rt_info: the output's type in the file, until the Result is converted
# What Python raises in a conversion, all of which are written for nodes that keep the rules of their framework
BROKEN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, StopIteration)


@dataclass(frozen=True, slots=True)
class ToOpset:
    """The front pass that turns foreign operations of a dialect into operations of the opset.

    `seed`: of random numbers; operations that draw them are refused without one. `others`: dialects whose
    nodes an extension may have put among these; they are converted along with them.
    """

    dialect: Dialect
    seed: int | None = None
    others: tuple[Dialect, ...] = ()
    phase: str = "front"
    required: bool = True
    run_not_recursively: bool = True

    @property
    def name(self) -> str:
        return f"{self.dialect.name}_to_opset"

    def __call__(self, graph: Graph) -> bool:
        """Convert in place. Raises UnconvertedError, or ModelError if a node breaks a rule of its framework."""
        dialects = {dialect.name: dialect for dialect in (self.dialect, *self.others)}
        present = _present(graph, dialects)
        if self.dialect.name not in present:
            return False
        for name in sorted(present):
            dialects[name].check(graph)
        return convert(graph, dialects, self.seed)


def convert(graph: Graph, dialects: Dialects, seed: int | None) -> bool:
    """Convert all nodes of some dialects in place, and those in bodies of the opset; return False if there are none.

    Raises UnconvertedError, or ModelError if a node breaks a rule of its framework.
    """
    ranks = [_declared_rank(result) for result in graph.results]
    nodes = [n for n in graph.order() if foreign(n, dialects) is not None]
    if not nodes:
        return bool(sum(_convert_bodies(node, dialects, seed) for node in graph.nodes.values()))  # all of them
    converter = _Converter(graph, dialects, seed)
    values = converter.results(graph, {})
    problems = list(dict.fromkeys(converter.problems))
    if problems:
        raise unconverted(graph.file or graph.name, problems)
    rule_out_branches(list(zip(values, ranks, strict=True)), converter.branchings)
    for node, pair in zip(list(graph.results), values, strict=True):
        value = joined(pair)
        if not _connect(graph, node, value):
            label = value.label if isinstance(value, CompositeTensor) else CompositeTensor.label
            what = "none" if value is None else label
            raise unconverted(graph.file or graph.name, [_output_problem(node, what)])
    for node in reversed(nodes):
        for port in node.outputs():
            port.disconnect()
        graph.remove(node)
    return True


def _tensors(graph: Graph, value: Value) -> Mapping[str, OutPort]:
    """Return the tensors of an output, by what follows its name; a sequence of equal types has one axis more."""
    if isinstance(value, CompositeTensor):
        return value.tensors()
    if not isinstance(value, tuple):
        return {} if value is None else {"": value}
    if len({p.type for p in value}) != 1:
        return {}
    build = Builder(graph)
    rows = [build.Unsqueeze(p, build.const([0], DType.I64)) for p in value]
    return {"": rows[0] if len(rows) == 1 else build.Concat(*rows, axis=0)}


def _connect(graph: Graph, result: Node, value: Value) -> bool:
    """Connect an output, and add outputs for further tensors after it; return False if the value has no tensors."""
    ports = _tensors(graph, value)
    for end, port in ports.items():
        if not end:
            result.in_port(0).connect(port)
            continue
        name = f"{next(iter(result.out_port(0).names), result.name)}{end}"
        node = graph.add(Result(), port, name=name, origin=result.origin)
        node.out_port(0).names = (name,)
        graph.results.remove(node)
        graph.results.insert(graph.results.index(result) + 1, node)
    return bool(ports)


def _convert_bodies(node: Node, dialects: Dialects, seed: int | None) -> bool:
    """Convert the foreign nodes in the bodies of a node of the opset, which an extension has made."""
    changed = bool(sum(convert(body, dialects, seed) for body in node.regions.values()))
    if changed:
        node.forget_types()
    return changed


def _present(graph: Graph, dialects: Dialects) -> set[str]:
    """Return the names of the dialects that have nodes in a graph or in bodies of the opset."""
    present: set[str] = set()
    for node in graph.nodes.values():
        op = node.op
        if isinstance(op, Foreign):
            present.add(op.dialect)
        elif node.regions:
            present = present.union(*(_present(body, dialects) for body in node.regions.values()))
    return present & dialects.keys()


def _declared_rank(result: Node) -> int | None:
    """Return the rank that the file gives an output, which the node then forgets."""
    declared = result.rt_info.pop(DECLARED, None)
    return None if declared is None else int(declared["rank"])


def _output_problem(node: Node, what: str) -> Problem:
    return Problem(node.name, "Output", "", 0, f"outputs must be tensors, got {what}")


Environment = dict[OutPort, Any]


@dataclass(slots=True)
class _Converter:
    """Converts nodes into `graph`, which need not be the graph they are in."""

    graph: Graph
    dialects: Dialects
    seed: int | None
    problems: list[Problem] = field(default_factory=list[Problem])
    # of values that depend on data-dependent branches
    origins: dict[OutPort, ValueOrigin] = field(default_factory=dict[OutPort, ValueOrigin])
    branchings: list[Branching] = field(default_factory=list[Branching])  # of this graph and of those inside

    def results(self, source: Graph, env: Environment) -> list[Any]:
        """Return the values of a graph's results; FAILED for those that could not be made."""
        needed = _needed(source)
        for node in source.order():
            if node.id in needed:
                self._visit(source, node, env)
        return [env[node.source(0)] for node in source.results]

    def _visit(self, source: Graph, node: Node, env: Environment) -> None:
        if isinstance(node.op, Result):
            return
        if foreign(node, self.dialects) is not None:
            self._convert(node, env)
        elif any(s is not None and env[s] is FAILED for s in node.sources()):
            env |= dict.fromkeys(node.outputs(), FAILED)
        elif source is self.graph:
            self._keep(node, env)
        elif node.type != "Parameter":  # `env` has those of regions
            self._copy(node, env)

    def _keep(self, node: Node, env: Environment) -> None:
        """Connect a node of the opset, which an extension has put between foreign ones, to their converted outputs."""
        for port, value in self._converted(node, env):
            if port.source is not value:
                port.connect(value)
        _convert_bodies(node, self.dialects, self.seed)
        for port in node.outputs():
            env[port] = port

    def _copy(self, node: Node, env: Environment) -> None:
        """Copy a node of the opset from a region."""
        copies: dict[OutPort, OutPort] = {}
        for port, value in self._converted(node, env):
            assert port.source is not None
            copies[port.source] = value
        _convert_bodies(copy_node(node, self.graph, copies), self.dialects, self.seed)
        env |= {port: copies[port] for port in node.out_ports().values()}

    def _converted(self, node: Node, env: Environment) -> list[tuple[InPort, OutPort]]:
        """Return the connected inputs of a node of the opset, each with the tensor that it reads now."""
        connections: list[tuple[InPort, OutPort]] = []
        for port in node.inputs():
            value = None if port.source is None else joined(env[port.source])
            if isinstance(value, OutPort):
                connections.append((port, value))
            elif port.source is not None and value is not FAILED:
                self.problems.append(Problem(node.name, node.type, "", 0, f"input {port.idx} must be a tensor"))
        return connections

    def _convert(self, node: Node, env: Environment) -> None:
        inputs = [None if s is None else env[s] for s in node.sources()]
        for port, value in zip(node.outputs(), self.evaluate(node, inputs), strict=True):
            env[port] = value
            if node.graph is not self.graph:
                continue
            if isinstance(value, BranchValues):
                value.names = port.names
            elif isinstance(value, OutPort) and not isinstance(value.node.op, Parameter):
                value.add_tensor_names(port.names)  # an input keeps its own name alone

    def evaluate(self, node: Node, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs of a node for converted inputs; FAILED if it cannot be converted, which is listed.

        Raises ModelError if the inputs break a rule of the framework.
        """
        op = node.op
        assert isinstance(op, Foreign)
        attrs = dict(op.attrs)
        failed = [FAILED] * len(node.outputs())
        dialect = self.dialects[op.dialect]
        function = dialect.conversion(op.kind, attrs)
        reason = attrs.get("unsupported") or ("" if function is not None else "there is no conversion for it")
        if reason:
            self._refuse(node, op, attrs, reason)
        if reason or function is None or FAILED in inputs:
            return failed
        before = len(self.problems)
        try:
            branching = innermost_branching(inputs) if self.branchings else None
            if branching is not None:
                return branching.evaluate(node, inputs)
            return self._closed(node, attrs, function, inputs)
        except UnsupportedError as error:
            if len(self.problems) == before:  # else it lies in a body, and is listed
                self._refuse(node, op, attrs, str(error))
            return failed
        except AotError as error:
            error.add_note(f"in {dialect.framework} node {node.name!r} ({op.kind}) of {node.graph.file}")
            raise

    def _closed(self, node: Node, attrs: dict[str, Any], function: Conversion, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs of a node without an open pair among its inputs."""
        values = list(self._called(node, attrs, function, [joined(v) for v in inputs]))
        if not self.branchings and not self.origins:
            return values
        branchings = frozenset[Branching]().union(*(branchings_of(self, v) for v in inputs))
        if branchings:
            producer = ConvertedNode(node, tuple(inputs))
            for i, value in enumerate(values):
                if isinstance(value, OutPort):
                    self.origins.setdefault(value, ValueOrigin(branchings, producer, i))
        return values

    def _refuse(self, node: Node, op: Foreign, attrs: dict[str, Any], reason: str) -> None:
        self.problems.append(self.dialects[op.dialect].problem(node.name, op.kind, attrs, reason))

    def _called(self, node: Node, attrs: dict[str, Any], function: Conversion, inputs: list[Value]) -> Sequence[Value]:
        """Return the node's outputs, all of them inferred."""
        op = node.op
        assert isinstance(op, Foreign)
        captures: tuple[tuple[str, int, int], ...] = attrs.get("captures", ())
        captured: dict[str, tuple[tuple[int, Value], ...]] = {
            name: tuple((position, inputs[i]) for region, position, i in captures if region == name)
            for name in node.regions
        }
        read = tuple([bool(p.names or p.destinations) for p in node.outputs()])
        build = Builder(self.graph, node.origin)
        fields = (op.kind, attrs, build, read, node.regions, captured, self, self.seed, node, inputs)
        context = self.dialects[op.dialect].context(attrs, *fields)
        operands = connected_inputs(inputs, attrs)
        if rule := rule_of_inputs(function, context, operands):
            raise ModelError(f"{op.kind}: {rule}")
        try:
            converted = function(context, *operands)
        except BROKEN as error:
            raise ModelError(f"{op.kind}: its inputs and attributes do not fit each other: {error}") from error
        parts = converted.values if isinstance(converted, Outputs) else converted
        values: list[Any] = list(parts) if isinstance(parts, Sequence) else [parts]
        values += [None] * (len(read) - len(values))
        for value, is_read in zip(values, read, strict=False):
            for port in tensors_in(value):
                port.node.operands()  # an error of inference belongs to this node
            if value is None and is_read:
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

    def region(self, region: Graph, inputs: Sequence[PresentValue], known: Sequence[bool]) -> tuple[Graph, list[Value]]:
        inner = self._inner(region)
        return inner.graph, [joined(v) for v in inner.region_results(region, inputs, known)]

    def _inner(self, region: Graph) -> _Converter:
        graph = Graph(name=region.name, file=region.file, scope=f"{region.name}.")
        return _Converter(graph, self.dialects, self.seed, self.problems, branchings=self.branchings)

    def region_results(self, region: Graph, inputs: Sequence[PresentValue], known: Sequence[bool]) -> list[Value]:
        """Return the results of a region in this graph, which gets parameters like `inputs`."""
        env: Environment = {}
        for node, value, fixed in zip(region.parameters, inputs, known, strict=True):
            if isinstance(value, OutPort):
                env[node.out_port(0)] = self._parameter(value, node.name, fixed)
            elif isinstance(value, tuple):
                env[node.out_port(0)] = tuple(self._parameter(p, node.name, fixed) for p in value)
            else:
                env[node.out_port(0)] = value.with_ports([self._parameter(p, node.name, fixed) for p in value.ports])
        return _whole(self.results(region, env))

    def _parameter(self, port: OutPort, name: str, fixed: bool) -> OutPort:
        """Add a parameter of the type of a tensor around; a constant in its place if the value is known and stays."""
        parameter = self.graph.add(Parameter(port.type.dtype, port.type.dims), name=name).out_port(0)
        value = port.value
        if fixed and value is not None and value.dtype != object:
            parameter = Builder(self.graph).const(value, port.type.dtype, f"{name}.known")
        return parameter

    def branch_outputs(
        self,
        node: NodeContext,
        conditional: Node,
        regions: Sequence[tuple[Graph, Sequence[PresentValue]]],
        size: Dim | None = None,
    ) -> list[Any]:
        """Return the outputs of an If without outputs yet: a pair for each output with two ranks."""
        op = conditional.op
        assert isinstance(op, If)
        branches: list[Branch] = []
        results: list[list[Value]] = []
        for name, (region, ports) in zip(BRANCHES, regions, strict=True):
            inner = self._inner(region)
            conditional.regions[name] = inner.graph
            branches.append(Branch(inner, list(op.maps(name)[0])))
            try:
                results.append(inner.region_results(region, ports, [True] * len(ports)))
            except ModelError as error:
                branches[-1].error = error
                results.append([None] * len(region.results))
        errors = [branch.error for branch in branches if branch.error is not None]
        if len(errors) == len(branches):
            raise errors[0]
        node.refuse(len(results[0]) != len(results[1]), "its branches have different numbers of outputs")
        producer = ConvertedNode(node.node, tuple(node.inputs))
        branching = Branching(self, conditional, (branches[0], branches[1]), size, producer)
        pairs = branching.pairs(results[0], results[1], producer)
        if not ranks_differ(pairs):
            return [joined(p) for p in pairs]
        self.branchings.append(branching)
        if len(self.branchings) > MAX_BRANCHINGS:
            rule = f"at most {MAX_BRANCHINGS} conditions decide ranks, counted in each branch that reads them, got more"
            raise BudgetError(f"{node.kind}: {rule}: fix the sizes that decide (--dim, --shape)")
        return pairs


def _whole(values: list[Any]) -> list[Value]:
    if FAILED in values:
        raise UnsupportedError("a node in its sub-graph is not supported")
    return values


def _ids(nodes: Iterable[Node]) -> set[int]:
    return {n.id for n in nodes}


def _needed(graph: Graph) -> set[int]:
    """Return the nodes that results and variables depend on, and all parameters."""
    ids = _ids(graph.parameters)
    stack = [*graph.results, *graph.sinks]
    while stack:
        node = stack.pop()
        if node.id not in ids or node.op.type == "Parameter":
            ids.add(node.id)
            stack += [s.node for s in node.sources() if s is not None and s.node.id not in ids]
    return ids
