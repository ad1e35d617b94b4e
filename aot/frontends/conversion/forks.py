"""Data-dependent If: nodes that read a value whose rank depends on the branch are converted into both branches.

    r = If(c) {squeeze(x)} {x};  z = sum(softmax(r))    ->    z = If(c) {sum(softmax(squeeze(x)))} {sum(softmax(x))}

Conversions count axes by ranks, so a conversion never sees a value with two ranks. A fork is an If that is being built;
its values are pairs, one value for each branch. A node that reads an open pair is converted in both branches and gives
pairs; a pair that has one rank becomes an output of the If as soon as a node outside reads it. The other inputs of a
node that is converted in the branches become inputs of the If; those that depend on the If itself are converted again
in each branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.calls import Packed
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

Value: TypeAlias = "OutPort | Forked | Failed | Packed | tuple[Value, ...] | None"  # a tuple is a sequence of tensors


class Failed:
    """Stands for the outputs of a node that could not be converted."""


FAILED = Failed()


class Work(Protocol):
    """Converter of nodes into a graph."""

    graph: Graph
    made: dict[OutPort, Made]

    def evaluate(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        """Return the outputs of a foreign node. Raises ModelError, UnsupportedError."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A node and the values it was converted for."""

    node: Node
    inputs: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """Origin of a value: an output of a call, or a pair that became an output of its If."""

    forks: frozenset[Fork]  # forks that the value depends on
    call: Call | None = None
    index: int = 0
    pair: Forked | None = None


@dataclass(slots=True, eq=False)
class Forked:
    """A pair: a value for each branch of a fork, in the graphs of the branches."""

    fork: Fork
    sides: tuple[Value, Value]
    call: Call
    index: int
    names: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """True if the value must stay in the branches: its rank differs, or it is a known shape that differs."""
        live = [v for v, side in zip(self.sides, self.fork.sides, strict=True) if side.error is None]
        if any(isinstance(v, Forked) and v.is_open for v in live):
            return True
        match live:
            case [OutPort() | Forked() as a, OutPort() | Forked() as b]:
                return _differs(type_of(a), type_of(b), _value(a), _value(b))
            case [Packed() as a, Packed() as b] if len(a.ports) == len(b.ports):
                pairs = zip(a.ports, b.ports, strict=True)
                return any(_differs(p.type, q.type, p.value, q.value) for p, q in pairs)
            case _:
                return len(live) > 1


def type_of(value: OutPort | Forked) -> TensorType:
    """Return the type of a value; of a pair, the type in the first branch that can run."""
    while isinstance(value, Forked):
        live = next(v for v, side in zip(value.sides, value.fork.sides, strict=True) if side.error is None)
        value = _tensor(live)
    return value.type


def _port(value: Value) -> OutPort:
    if not isinstance(value, OutPort):
        raise UnsupportedError(
            "a sequence or an optional as an output of a sub-graph that runs at run time is not supported"
        )
    return value


def _tensor(value: Value) -> OutPort | Forked:
    if not isinstance(value, OutPort | Forked):
        raise UnsupportedError("a sequence or an optional that depends on a condition cannot be read as a tensor")
    return value


def _value(value: OutPort | Forked) -> Array | None:
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
class Side:
    """A branch: its converter, and its copies of the values outside."""

    work: Work
    inputs: list[InputMap]
    error: ModelError | None = None  # the reason why the branch cannot run
    imported: dict[OutPort, OutPort] = field(default_factory=dict[OutPort, OutPort])
    again: dict[Call, list[Value]] = field(default_factory=dict[Call, "list[Value]"])


_MISSING = Failed()


class Fork:
    """An If under construction. Its node has no output before a pair is joined."""

    def __init__(self, work: Work, node: Node, sides: tuple[Side, Side], size: Dim | None, call: Call) -> None:
        """`size`: the If's condition is that this size is 1; None for any other condition."""
        self.work, self.node, self.sides, self.size = work, node, sides, size
        self.forks = frozenset[Fork]().union(*(forks_of(work, v) for v in call.inputs))
        self.joined: dict[Forked, OutPort] = {}
        self.packed: dict[Forked, Packed] = {}
        self.results: tuple[list[int], list[int]] = ([], [])
        self._update()

    # ---- values

    def pairs(self, then: Sequence[Value], other: Sequence[Value], call: Call) -> list[Value]:
        """Return a pair for each output; a value that is absent or a sequence in both branches is not paired."""
        return [self._pair(a, b, call, i) for i, (a, b) in enumerate(zip(then, other, strict=True))]

    def _pair(self, a: Value, b: Value, call: Call, index: int) -> Value:
        live = [v for v, side in zip((a, b), self.sides, strict=True) if side.error is None]
        if all(v is None for v in live):
            return None
        if FAILED in live:
            return FAILED
        return Forked(self, (a, b), call, index)

    def evaluate(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        """Return the outputs of a node that reads an open pair. ModelError if it fits neither branch."""
        call = Call(node, tuple(inputs))
        results = [self._evaluated(k, call) for k in (0, 1)]
        errors = [side.error for side in self.sides]
        if all(errors):
            raise errors[0] or InternalError("a fork without a branch")
        self._update()
        absent: list[Value] = [None] * len(node.out_ports())
        then, other = (absent if values is None else values for values in results)
        return self.pairs(then, other, call)

    def _evaluated(self, k: int, call: Call) -> list[Value] | None:
        side = self.sides[k]
        if side.error is not None:
            return None
        try:
            outputs = side.again[call] = side.work.evaluate(call.node, [self.inside(k, v) for v in call.inputs])
        except ModelError as error:
            side.error = error
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
            call = self._call(k, todo[-1])
            missing = [v for v in _flat(call.inputs) if self._inside(k, v) is _MISSING]
            if missing:
                todo += missing
            else:
                side = self.sides[k]
                side.again[call] = side.work.evaluate(call.node, [self._inside(k, v) for v in call.inputs])
        return branch_value

    def _inside(self, k: int, value: Value) -> Value:
        """Return `inside`'s value; _MISSING if the call that computes it must be converted in the branch first."""
        match value:
            case tuple():
                parts = tuple(self._inside(k, v) for v in value)
                return _MISSING if _MISSING in parts else parts
            case Packed():
                found = [self._inside(k, port) for port in value.ports]
                return _MISSING if _MISSING in found else value.with_ports([_port(p) for p in found])
            case Forked() if value.fork is self:
                return value.sides[k]
            case Forked() if not value.is_open:
                return self._inside(k, value.fork.join(value))
            case Forked():
                return self._again(k, value.call, value.index)
            case OutPort():
                origin = self.work.made.get(value)
                if origin is None or not any(f is self or self in f.forks for f in origin.forks):
                    return self._imported(k, value)
                if origin.pair is not None and origin.pair.fork is self:
                    return origin.pair.sides[k]
                source = origin.pair or origin
                return self._again(k, source.call, source.index)
            case _:
                return value

    def _again(self, k: int, call: Call | None, index: int) -> Value:
        """Return the output of a call that was converted again in branch `k`."""
        outputs = None if call is None else self.sides[k].again.get(call)
        return _MISSING if outputs is None else outputs[index]

    def _call(self, k: int, value: Value) -> Call:
        """Return the call that computes a value which is missing in branch `k`."""
        while not isinstance(value, Forked):
            if isinstance(value, tuple):
                value = next(v for v in _flat(value) if self._inside(k, v) is _MISSING)
                continue
            assert isinstance(value, OutPort)
            origin = self.work.made[value]
            if origin.call is not None:
                return origin.call
            value = _tensor(origin.pair)
        return value.call

    def _imported(self, k: int, port: OutPort) -> OutPort:
        side = self.sides[k]
        if port not in side.imported:
            side.imported[port] = self._import(side, port)
        return side.imported[port]

    def _import(self, side: Side, port: OutPort) -> OutPort:
        """Bring a tensor into a branch: a constant as a copy, any other value as a new input."""
        graph, value = side.work.graph, port.value
        if value is not None and value.dtype != object:
            return graph.add(Constant(port.type.dtype), name=f"{port.node.name}.known", data=value).out_port(0)
        sources = self.node.sources()
        if port not in sources:
            self.node.add_input_port().connect(port)
            sources.append(port)
        parameter = graph.add(Parameter(port.type.dtype, port.type.dims), name=port.node.name)
        parameter.give(port.node.operands()[port.idx])
        side.inputs.append(InputMap(sources.index(port), len(graph.parameters) - 1))
        self.forks |= forks_of(self.work, port)
        return parameter.out_port(0)

    # ---- branches that cannot run

    def rule_out(self, k: int, why: str) -> None:
        """Mark branch `k` as one that cannot run, unless the other one is already marked."""
        if all(side.error is None for side in self.sides):
            self.sides[k].error = ShapeError(why)
            self._update()

    # ---- outputs of the If

    def join(self, pair: Forked) -> OutPort:
        """Turn a pair into an output of the If and return it. UnsupportedError if its ranks differ."""
        if pair not in self.joined:
            sides = zip(pair.sides, self.sides, strict=True)
            ports = [_port(joined(v)) if side.error is None else None for v, side in sides]
            self.joined[pair] = self._join(pair, ports)
        return self.joined[pair]

    def join_packed(self, pair: Forked) -> Packed:
        """Join a pair of values that are made of tensors, each of which becomes an output of the If.

        UnsupportedError if they have no form in common.
        """
        if pair not in self.packed:
            each = self._alike(pair)
            live = [v for v, side in zip(each, self.sides, strict=True) if side.error is None and v is not None]
            if len({len(v.ports) for v in live}) > 1:
                raise UnsupportedError("If: both branches give a list of one form, got two forms")
            ports = [v.ports if v is not None else (None,) * len(live[0].ports) for v in each]
            pairs = [Forked(self, (a, b), pair.call, pair.index) for a, b in zip(*ports, strict=True)]
            self.packed[pair] = live[0].with_ports([self.join(p) for p in pairs])
        return self.packed[pair]

    def _alike(self, pair: Forked) -> list[Packed | None]:
        """Return the values of a pair in one form; None in a branch that cannot run."""
        each: list[Packed | None] = []
        for value, side in zip(pair.sides, self.sides, strict=True):
            inner = joined(value) if side.error is None else None
            if side.error is None and not isinstance(inner, Packed):
                raise UnsupportedError("If: both branches give a list, or a tensor, got one of each")
            each.append(inner)
        for k in (0, 1, 0):  # the first one may be given the form that the second one gets by it
            mine, other = each[k], each[1 - k]
            if mine is not None and other is not None:
                each[k] = mine.like(other, Builder(self.sides[k].work.graph), lambda dim, k=k: self._size(k, dim))
        return each

    def _size(self, k: int, dim: Dim) -> OutPort | None:
        """Return a size in branch `k` as an i64 vector: that of a tensor that goes in; None if none has it."""
        build = Builder(self.sides[k].work.graph)
        for port in self.node.sources():
            for axis, own in enumerate(() if port is None else port.shape):
                if port is not None and own == dim:
                    shape = build.ShapeOf(self._imported(k, port))
                    return build.Gather(shape, build.const([axis], DType.I64), build.const(0, DType.I64))
        return None

    def _join(self, pair: Forked, ports: Sequence[OutPort | None]) -> OutPort:
        live = [p for p in ports if p is not None]
        if len(live) == 2 and live[0].type.rank != live[1].type.rank:
            layer = self.node.origin.layers[0] if self.node.origin.layers else self.node.name
            raise one_rank_needed(layer, live[0].type, live[1].type, self.node.source(0), self.size)
        if len(live) == 2 and has_few_integers(live[0].type) and _is_same_constant(live[0].value, live[1].value):
            dtype = live[0].type.dtype
            return self.work.graph.add(Constant(dtype), origin=self.node.origin, data=live[0].value).out_port(0)
        for side, results, port in zip(self.sides, self.results, ports, strict=True):
            if port is not None:
                side.work.graph.add(Result(), port, name=port.node.name)
            results.append(len(side.work.graph.results) - 1)
        output = self.node.add_output_port()
        output.add_tensor_names(pair.names)
        self._update()
        self.work.made[output] = Made(frozenset((self,)) | self.forks, pair=pair)
        return output

    def _update(self) -> None:
        """Update the If's operation: its port maps, and the branch that must run."""
        maps: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        for name, side, results in zip(BRANCHES, self.sides, self.results, strict=True):
            outputs = tuple(OutputMap(k, r) for k, r in enumerate(results))
            if side.error is not None:  # a branch that cannot run is not compiled
                self.node.regions[name] = Graph(side.work.graph.name, side.work.graph.file, scope=side.work.graph.scope)
                maps.append(((), ()))
            else:
                maps.append((tuple(side.inputs), outputs))
        only = [name for name, side in zip(BRANCHES, self.sides, strict=True) if side.error is None]
        op = If(*maps[0], *maps[1], only[0] if len(only) == 1 else "")
        if op != self.node.op:
            self.node.op = op


def _flat(values: Iterable[Value]) -> Iterator[Value]:
    for v in values:
        if isinstance(v, tuple):
            yield from _flat(v)
        elif isinstance(v, Packed):
            yield from v.ports
        else:
            yield v


def tensors_in(value: Value) -> list[OutPort]:
    """Return the tensors of a value: itself or those of a sequence; none of a pair."""
    return [v for v in _flat((value,)) if isinstance(v, OutPort)]


def open_ranks(values: Iterable[Value]) -> bool:
    """True if the ranks of a pair differ, or a branch that can run has no tensor."""
    for pair in (v for v in values if isinstance(v, Forked)):
        live = [v for v, side in zip(pair.sides, pair.fork.sides, strict=True) if side.error is None]
        ports = [v for v in live if isinstance(v, OutPort)]
        if len(ports) < len(live) or len({p.type.rank for p in ports}) > 1:
            return True
    return False


def open_fork(values: Iterable[Value]) -> Fork | None:
    """Return the innermost fork of the open pairs among values: the one created last."""
    forks = [v.fork for v in _flat(values) if isinstance(v, Forked) and v.is_open]
    return max(forks, key=lambda f: f.node.id, default=None)


def joined(value: Value) -> Any:
    """Return a value with pairs replaced by outputs of their Ifs. UnsupportedError if the ranks of a pair differ."""
    if isinstance(value, tuple):
        return tuple(map(joined, value))
    if not isinstance(value, Forked):
        return value
    live = [v for v, side in zip(value.sides, value.fork.sides, strict=True) if side.error is None]
    sizes = {len(v) for v in live if isinstance(v, tuple)}
    if len(sizes) == 1 and all(isinstance(v, tuple) for v in live):  # sequences of one length
        absent = (None,) * sizes.pop()
        sides = (v if isinstance(v, tuple) else absent for v in value.sides)
        return tuple(joined(Forked(value.fork, pair, value.call, value.index)) for pair in zip(*sides, strict=True))
    return value.fork.join_packed(value) if any(isinstance(v, Packed) for v in live) else value.fork.join(value)


def forks_of(work: Work, value: Value) -> frozenset[Fork]:
    """Return the forks that a value of `work` depends on."""
    forks = frozenset[Fork]()
    for v in _flat((value,)):
        if isinstance(v, Forked):
            forks |= {v.fork} | v.fork.forks
        elif isinstance(v, OutPort) and v in work.made:
            forks |= work.made[v].forks
    return forks
