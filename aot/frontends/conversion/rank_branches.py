"""Data-dependent If with branches of different ranks: nodes that read the result are converted into both branches.

    r = If(c) {squeeze(x)} {x};  z = sum(softmax(r))    ->    z = If(c) {sum(softmax(squeeze(x)))} {sum(softmax(x))}

Conversions count axes by ranks, so a conversion never sees a value with two ranks. A `Branching` is an If that is being
built; its outputs are pairs, one value for each branch. A node that reads an open pair is converted in both branches,
and its outputs are pairs; a pair that has one rank becomes an output of the If as soon as a node outside reads it. The
other inputs of a node that is converted in the branches become inputs of the If; those that depend on the If itself are
converted again in each branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import CompositeTensor
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.inference import has_few_integers
from aot.ir.one_rank import one_rank_needed
from aot.ir.types import Array, Dim, TensorType
from aot.opset.control.control_flow import BRANCHES, If
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.control.port_maps import InputMap, OutputMap
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError, ModelError, ShapeError, UnsupportedError

# A tuple is a sequence of tensors
Value: TypeAlias = "OutPort | BranchValues | Failed | CompositeTensor | tuple[Value, ...] | None"


class Failed:
    """Stands for the outputs of a node that could not be converted."""


FAILED = Failed()


class Converter(Protocol):
    """Converter of nodes into a graph."""

    graph: Graph
    origins: dict[OutPort, ValueOrigin]

    def evaluate(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        """Return the outputs of a foreign node. Raises ModelError, UnsupportedError."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ConvertedNode:
    """A node and the values it was converted for."""

    node: Node
    inputs: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Origin of a value: an output of a converted node, or a pair that became an output of its If."""

    branchings: frozenset[Branching]  # those that the value depends on
    producer: ConvertedNode | None = None
    index: int = 0
    pair: BranchValues | None = None


@dataclass(slots=True, eq=False)
class BranchValues:
    """A pair of values: one in the graph of each branch."""

    branching: Branching
    values: tuple[Value, Value]
    producer: ConvertedNode
    index: int
    names: tuple[str, ...] = ()

    @property
    def live(self) -> list[Value]:
        """Values in the branches that can run."""
        return [v for v, branch in zip(self.values, self.branching.branches, strict=True) if branch.error is None]

    @property
    def is_open(self) -> bool:
        """True if the value must stay in the branches: its rank differs, or it is a known shape that differs."""
        live = self.live
        if any(isinstance(v, BranchValues) and v.is_open for v in live):
            return True
        match live:
            case [OutPort() | BranchValues() as a, OutPort() | BranchValues() as b]:
                return _differs(type_of(a), type_of(b), _value(a), _value(b))
            case [CompositeTensor() as a, CompositeTensor() as b] if len(a.ports) == len(b.ports):
                pairs = zip(a.ports, b.ports, strict=True)
                return any(_differs(p.type, q.type, p.value, q.value) for p, q in pairs)
            case _:
                return len(live) > 1


def type_of(value: OutPort | BranchValues) -> TensorType:
    """Return the type of a value; of a pair, the type in the first branch that can run."""
    while isinstance(value, BranchValues):
        value = _tensor(value.live[0])
    return value.type


def _port(value: Value) -> OutPort:
    if not isinstance(value, OutPort):
        raise UnsupportedError(
            "a sequence or an optional as an output of a sub-graph that runs at run time is not supported"
        )
    return value


def _tensor(value: Value) -> OutPort | BranchValues:
    if not isinstance(value, OutPort | BranchValues):
        raise UnsupportedError("a sequence or an optional that depends on a condition cannot be read as a tensor")
    return value


def _value(value: OutPort | BranchValues) -> Array | None:
    return value.value if isinstance(value, OutPort) else None


def _differs(a: TensorType, b: TensorType, one: Array | None, other: Array | None) -> bool:
    """True if ranks, element types or known values differ; shapes are computed from known values."""
    if a.rank != b.rank or a.dtype is not b.dtype:
        return True
    if not has_few_integers(a) and not has_few_integers(b):
        return False
    if one is None and other is None:
        return a.shape != b.shape
    return not _is_same_constant(one, other)


def _is_same_constant(one: Array | None, other: Array | None) -> bool:
    """True if both values are known and equal."""
    if one is None or other is None or object in (one.dtype, other.dtype):
        return False
    return one.shape == other.shape and bool((one == other).all())


@dataclass(slots=True, eq=False)
class Branch:
    """A branch: its converter, and its copies of the values outside."""

    converter: Converter
    inputs: list[InputMap]
    error: ModelError | None = None  # the reason why the branch cannot run
    imported: dict[OutPort, OutPort] = field(default_factory=dict[OutPort, OutPort])
    reconverted: dict[ConvertedNode, list[Value]] = field(default_factory=dict[ConvertedNode, "list[Value]"])


_MISSING = Failed()


class Branching:
    """An If under construction. Its node has no output before a pair is joined."""

    def __init__(
        self,
        converter: Converter,
        node: Node,
        branches: tuple[Branch, Branch],
        size: Dim | None,
        producer: ConvertedNode,
    ) -> None:
        """`size`: the If's condition is that this size is 1; None for any other condition."""
        self.converter, self.node, self.branches, self.size = converter, node, branches, size
        self.branchings = frozenset[Branching]().union(*(branchings_of(converter, v) for v in producer.inputs))
        self.joined: dict[BranchValues, OutPort] = {}
        self.composites: dict[BranchValues, CompositeTensor] = {}
        self.results: tuple[list[int], list[int]] = ([], [])
        self._update()

    # ---- values

    def pairs(self, then: Sequence[Value], other: Sequence[Value], producer: ConvertedNode) -> list[Value]:
        """Return a pair for each output; a value that is absent or a sequence in both branches is not paired."""
        return [self._pair(a, b, producer, i) for i, (a, b) in enumerate(zip(then, other, strict=True))]

    def _pair(self, a: Value, b: Value, producer: ConvertedNode, index: int) -> Value:
        live = [v for v, branch in zip((a, b), self.branches, strict=True) if branch.error is None]
        if all(v is None for v in live):
            return None
        if FAILED in live:
            return FAILED
        return BranchValues(self, (a, b), producer, index)

    def evaluate(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        """Return the outputs of a node that reads an open pair. ModelError if it fits neither branch."""
        producer = ConvertedNode(node, tuple(inputs))
        branch_outputs = [self._evaluated(k, producer) for k in (0, 1)]
        errors = [branch.error for branch in self.branches]
        if all(errors):
            raise errors[0] or InternalError("an If without a branch")
        self._update()
        absent: list[Value] = [None] * len(node.out_ports())
        then, other = (absent if values is None else values for values in branch_outputs)
        return self.pairs(then, other, producer)

    def _evaluated(self, k: int, producer: ConvertedNode) -> list[Value] | None:
        branch = self.branches[k]
        if branch.error is not None:
            return None
        try:
            outputs = branch.reconverted[producer] = branch.converter.evaluate(
                producer.node, [self.inside(k, v) for v in producer.inputs]
            )
        except ModelError as error:
            branch.error = error
            return None
        return outputs

    # ---- values that enter the branches

    def inside(self, k: int, value: Value) -> Value:
        """Return the value in branch `k` for a value of the graph around the If."""
        todo: list[Value] = [value]
        while (branch_value := self._inside(k, todo[-1])) is _MISSING or len(todo) > 1:
            if branch_value is not _MISSING:
                todo.pop()
                continue
            producer = self._missing_producer(k, todo[-1])
            missing = [v for v in _flat(producer.inputs) if self._inside(k, v) is _MISSING]
            if missing:
                todo += missing
            else:
                branch = self.branches[k]
                branch.reconverted[producer] = branch.converter.evaluate(
                    producer.node, [self._inside(k, v) for v in producer.inputs]
                )
        return branch_value

    def _inside(self, k: int, value: Value) -> Value:
        """Return `inside`'s value; _MISSING if its producer must be converted in the branch first."""
        match value:
            case tuple():
                parts = tuple(self._inside(k, v) for v in value)
                return _MISSING if _MISSING in parts else parts
            case CompositeTensor():
                ports = [self._inside(k, port) for port in value.ports]
                return _MISSING if _MISSING in ports else value.with_ports([_port(p) for p in ports])
            case BranchValues() if value.branching is self:
                return value.values[k]
            case BranchValues() if not value.is_open:
                return self._inside(k, value.branching.join(value))
            case BranchValues():
                return self._reconverted(k, value.producer, value.index)
            case OutPort():
                origin = self.converter.origins.get(value)
                if origin is None or not any(f is self or self in f.branchings for f in origin.branchings):
                    return self._imported(k, value)
                if origin.pair is not None and origin.pair.branching is self:
                    return origin.pair.values[k]
                source = origin.pair or origin
                return self._reconverted(k, source.producer, source.index)
            case _:
                return value

    def _reconverted(self, k: int, producer: ConvertedNode | None, index: int) -> Value:
        """Return output `index` of a node that was converted again in branch `k`."""
        outputs = None if producer is None else self.branches[k].reconverted.get(producer)
        return _MISSING if outputs is None else outputs[index]

    def _missing_producer(self, k: int, value: Value) -> ConvertedNode:
        """Return the producer of a value that is missing in branch `k`."""
        while not isinstance(value, BranchValues):
            if isinstance(value, tuple):
                value = next(v for v in _flat(value) if self._inside(k, v) is _MISSING)
                continue
            assert isinstance(value, OutPort)
            origin = self.converter.origins[value]
            if origin.producer is not None:
                return origin.producer
            value = _tensor(origin.pair)
        return value.producer

    def _imported(self, k: int, port: OutPort) -> OutPort:
        branch = self.branches[k]
        if port not in branch.imported:
            branch.imported[port] = self._import(branch, port)
        return branch.imported[port]

    def _import(self, branch: Branch, port: OutPort) -> OutPort:
        """Bring a tensor into a branch: a constant as a copy, any other value as a new input."""
        graph, value = branch.converter.graph, port.value
        if value is not None and value.dtype != object:
            return graph.add(Constant(port.type.dtype), name=f"{port.node.name}.known", data=value).out_port(0)
        sources = self.node.sources()
        if port not in sources:
            self.node.add_input_port().connect(port)
            sources.append(port)
        parameter = graph.add(Parameter(port.type.dtype, port.type.dims), name=port.node.name)
        parameter.set_given_operand(port.node.operands()[port.idx])
        branch.inputs.append(InputMap(sources.index(port), len(graph.parameters) - 1))
        self.branchings |= branchings_of(self.converter, port)
        return parameter.out_port(0)

    # ---- branches that cannot run

    def rule_out(self, k: int, why: str) -> None:
        """Mark branch `k` as one that cannot run, unless the other branch is marked already."""
        if all(branch.error is None for branch in self.branches):
            self.branches[k].error = ShapeError(why)
            self._update()

    # ---- outputs of the If

    def join(self, pair: BranchValues) -> OutPort:
        """Turn a pair into an output of the If and return it. UnsupportedError if its ranks differ."""
        if pair not in self.joined:
            branches = zip(pair.values, self.branches, strict=True)
            ports = [_port(joined(v)) if branch.error is None else None for v, branch in branches]
            self.joined[pair] = self._join(pair, ports)
        return self.joined[pair]

    def join_composite(self, pair: BranchValues) -> CompositeTensor:
        """Join a pair of composite values; each of their tensors becomes an output of the If.

        UnsupportedError if they have no form in common.
        """
        if pair not in self.composites:
            each = self._in_one_form(pair)
            live = [v for v, branch in zip(each, self.branches, strict=True) if branch.error is None and v is not None]
            if len({len(v.ports) for v in live}) > 1:
                raise UnsupportedError("If: both branches give a list of one form, got two forms")
            ports = [v.ports if v is not None else (None,) * len(live[0].ports) for v in each]
            pairs = [BranchValues(self, (a, b), pair.producer, pair.index) for a, b in zip(*ports, strict=True)]
            self.composites[pair] = live[0].with_ports([self.join(p) for p in pairs])
        return self.composites[pair]

    def _in_one_form(self, pair: BranchValues) -> list[CompositeTensor | None]:
        """Return the values of a pair in one form; None in a branch that cannot run."""
        each: list[CompositeTensor | None] = []
        for value, branch in zip(pair.values, self.branches, strict=True):
            inner = joined(value) if branch.error is None else None
            if branch.error is None and not isinstance(inner, CompositeTensor):
                raise UnsupportedError("If: both branches give a list, or a tensor, got one of each")
            each.append(inner)
        for k in (0, 1, 0):  # the first one may be given the form that the second one gets by it
            mine, other = each[k], each[1 - k]
            if mine is not None and other is not None:
                build = Builder(self.branches[k].converter.graph)
                each[k] = mine.like(other, build, lambda dim, k=k: self._size(k, dim))
        return each

    def _size(self, k: int, dim: Dim) -> OutPort | None:
        """Return a size in branch `k` as an i64 vector, taken from an input tensor; None if no input has it."""
        build = Builder(self.branches[k].converter.graph)
        for port in self.node.sources():
            for axis, own in enumerate(() if port is None else port.shape):
                if port is not None and own == dim:
                    shape = build.ShapeOf(self._imported(k, port))
                    return build.Gather(shape, build.const([axis], DType.I64), build.const(0, DType.I64))
        return None

    def _join(self, pair: BranchValues, ports: Sequence[OutPort | None]) -> OutPort:
        live = [p for p in ports if p is not None]
        if len(live) == 2 and live[0].type.rank != live[1].type.rank:
            layer = self.node.origin.layers[0] if self.node.origin.layers else self.node.name
            raise one_rank_needed(layer, live[0].type, live[1].type, self.node.source(0), self.size)
        if len(live) == 2 and has_few_integers(live[0].type) and _is_same_constant(live[0].value, live[1].value):
            dtype = live[0].type.dtype
            return self.converter.graph.add(Constant(dtype), origin=self.node.origin, data=live[0].value).out_port(0)
        for branch, results, port in zip(self.branches, self.results, ports, strict=True):
            if port is not None:
                branch.converter.graph.add(Result(), port, name=port.node.name)
            results.append(len(branch.converter.graph.results) - 1)
        output = self.node.add_output_port()
        output.add_tensor_names(pair.names)
        self._update()
        self.converter.origins[output] = ValueOrigin(frozenset((self,)) | self.branchings, pair=pair)
        return output

    def _update(self) -> None:
        """Update the If's operation: its port maps, and the branch that must run."""
        maps: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        for name, branch, results in zip(BRANCHES, self.branches, self.results, strict=True):
            outputs = tuple(OutputMap(k, r) for k, r in enumerate(results))
            if branch.error is not None:  # a branch that cannot run is not compiled
                graph = branch.converter.graph
                self.node.regions[name] = Graph(graph.name, graph.file, scope=graph.scope)
                maps.append(((), ()))
            else:
                maps.append((tuple(branch.inputs), outputs))
        only = [name for name, branch in zip(BRANCHES, self.branches, strict=True) if branch.error is None]
        op = If(*maps[0], *maps[1], only[0] if len(only) == 1 else "")
        if op != self.node.op:
            self.node.op = op


def _flat(values: Iterable[Value]) -> Iterator[Value]:
    for v in values:
        if isinstance(v, tuple):
            yield from _flat(v)
        elif isinstance(v, CompositeTensor):
            yield from v.ports
        else:
            yield v


def tensors_in(value: Value) -> list[OutPort]:
    """Return the tensors of a value: itself or those of a sequence; none of a pair."""
    return [value] if isinstance(value, OutPort) else [v for v in _flat((value,)) if isinstance(v, OutPort)]


def ranks_differ(values: Iterable[Value]) -> bool:
    """True if the ranks of a pair differ, or a branch that can run has no tensor."""
    for pair in (v for v in values if isinstance(v, BranchValues)):
        ports = [v for v in pair.live if isinstance(v, OutPort)]
        if len(ports) < len(pair.live) or len({p.type.rank for p in ports}) > 1:
            return True
    return False


def innermost_branching(values: Iterable[Value]) -> Branching | None:
    """Return the innermost If of the open pairs among values: the one created last."""
    branchings = [v.branching for v in _flat(values) if isinstance(v, BranchValues) and v.is_open]
    return max(branchings, key=lambda f: f.node.id, default=None)


def joined(value: Value) -> Any:
    """Return a value with pairs replaced by outputs of their Ifs. UnsupportedError if the ranks of a pair differ."""
    if isinstance(value, tuple):
        return tuple(map(joined, value))
    if not isinstance(value, BranchValues):
        return value
    live, branching = value.live, value.branching
    sizes = {len(v) for v in live if isinstance(v, tuple)}
    if len(sizes) == 1 and all(isinstance(v, tuple) for v in live):  # sequences of one length
        absent = (None,) * sizes.pop()
        pairs = zip(*(v if isinstance(v, tuple) else absent for v in value.values), strict=True)
        return tuple(joined(BranchValues(branching, pair, value.producer, value.index)) for pair in pairs)
    is_composite = any(isinstance(v, CompositeTensor) for v in live)
    return branching.join_composite(value) if is_composite else branching.join(value)


def branchings_of(converter: Converter, value: Value) -> frozenset[Branching]:
    """Return the Ifs under construction that a value of `converter` depends on."""
    branchings = frozenset[Branching]()
    for v in _flat((value,)):
        if isinstance(v, BranchValues):
            branchings |= {v.branching} | v.branching.branchings
        elif isinstance(v, OutPort) and v in converter.origins:
            branchings |= converter.origins[v].branchings
    return branchings
