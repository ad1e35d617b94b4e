"""Graph -> steps: for each node its definitions over values that lie in memory, with no order, layout or memory yet.

    step fc1+relu: relu1[i, j] = max(add[k in 784](x[i, k] * fc1_w[k, j]), 0)    for i in 1, j in 512
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np

from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import ComputeOp, Input, LoopOp, ViewOp
from aot.ir.types import Array, Dim
from aot.lowering.agreement import rules
from aot.lowering.sizes import PLAIN, Sizes
from aot.lowering.state import Variables, flag_of, read, write
from codegen.define import Definition, Group, identity
from codegen.expressions import loads, rewrite, variables
from codegen.loops import Buffer, Const, Expr, Load, Prim, Reduce, Size, Space, Stmt, Var, dense, prim
from codegen.program import Region, Rule
from codegen.schedule import Schedule
from codegen.traverse import Work, local, move_loads, reads, rewrite_work, writes
from runtime.abi import DType
from runtime.errors import AotError, InternalError, UnsupportedError

OWN = "'"
LASTING = (Region.OUTPUT, Region.STATE)  # what is there after an inference
AXES = {1: "j", 2: "ij", 3: "bij", 4: "nchw", 5: "ncdhw"}


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that lies in memory. `buffer` has its logical dimensions; the layout gives strides and `elements`."""

    buffer: Buffer
    region: Region
    index: int = 0
    data: Array | None = None
    elements: Size = 0

    @property
    def name(self) -> str:
        return self.buffer.name


@dataclass(frozen=True, slots=True)
class Repeat:
    """All works `count` times; `shifts`: elements by which a value moves each time."""

    count: int
    shifts: dict[str, int]


@dataclass(slots=True)
class Step:
    """Works that run one after another, and the layers they come from. `schedule`: of the last work, if it has one."""

    works: tuple[Work, ...]
    layers: tuple[str, ...]
    kind: str
    schedule: Schedule | None = None
    repeat: Repeat | None = None

    def reads(self) -> tuple[Load, ...]:
        return tuple(dict.fromkeys(x for w in self.works for x in reads(w)))

    def writes(self) -> tuple[Buffer, ...]:
        return tuple(dict.fromkeys(b for w in self.works for b in writes(w)))

    @property
    def definition(self) -> Definition | None:
        """The one definition, if that is all there is."""
        return self.works[0] if len(self.works) == 1 and isinstance(self.works[0], Definition) else None


@dataclass(slots=True)
class Steps:
    """All steps in an order that runs, and the values by name."""

    name: str
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    steps: list[Step] = field(default_factory=list[Step])
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    symbols: tuple[Var, ...] = ()
    sizes: Sizes = field(default_factory=Sizes)
    rules: list[Rule] = field(default_factory=list[Rule])
    state_bytes: int = 0

    def constants(self) -> frozenset[str]:
        """Names of values known at compile time."""
        return frozenset(n for n, v in self.values.items() if v.region is Region.CONSTANT)


def define(graph: Graph) -> Steps:
    """Definitions of all that the results need."""
    return _Definer(graph).run()


class _Definer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps = Steps(graph.name)
        self.buffers: dict[OutPort, Value] = {}
        self.variables = Variables()

    def run(self) -> Steps:
        order = self.graph.order()
        for node in order:
            if node.op.type == "Parameter":
                self._value(node.out_port(0), Region.INPUT, self.graph.parameters.index(node))
        sizes = [n for p in self.graph.parameters for n in p.out_port(0).shape if not isinstance(n, int)]
        self.steps.symbols = tuple(sorted(variables(*sizes), key=lambda v: v.name))
        self.steps.inputs = [self.buffers[p.out_port(0)].name for p in self.graph.parameters]
        for node in order:
            try:
                self._node(node)
            except AotError as error:
                error.add_note(f"while lowering layer {node.name!r}: {node}")
                raise
        self.steps.outputs = [self._result(i, node) for i, node in enumerate(self.graph.results)]
        self.steps.steps += [Step((self._assign(node),), node.origin.layers, "Assign") for node in self.graph.sinks]
        self.steps.state_bytes = self.variables.bytes
        self._drop_unread()
        return self.steps

    def _node(self, node: Node) -> None:
        op = node.op
        if op.type in ("Parameter", "Constant", "Result") or self._known(node):
            return
        if op.type == "Assign":  # written at the end; its output is its input
            self._input(node.source(0))
            self.buffers[node.out_port(0)] = self.buffers[node.source(0)]
            return
        self.steps.rules += rules(node)
        outs = [self._value(p, Region.ARENA).buffer for p in node.out_ports().values()]
        match op:
            case ComputeOp():
                works: tuple[Work, ...] = (self._compute(node, op, outs[0]),)
            case ViewOp():
                works = self._view(node, op, outs)
            case LoopOp():
                works = self._nest(node, op, outs)
            case _ if op.type == "ReadValue":
                works = (self._read_value(node, outs[0]),)
            case _:
                raise UnsupportedError(f"{node.type}: this operation cannot be compiled yet")
        layers = node.origin.layers or (node.name,)
        works = tuple(w for w in works if not _empty(w))
        if isinstance(op, ViewOp):  # each piece on its own, so that it can merge into what makes it
            self.steps.steps += [Step((work,), layers, node.type) for work in works]
        elif works:
            self.steps.steps.append(Step(works, layers, node.type))

    @staticmethod
    def _known(node: Node) -> bool:
        return all(p.value is not None and p.value.dtype != object for p in node.out_ports().values())

    def _inputs(self, node: Node) -> list[Input | None]:
        return [None if p.source is None else self._input(p.source) for p in node.in_ports().values()]

    def _input(self, port: OutPort) -> Input:
        if port not in self.buffers:
            self._value(port, Region.CONSTANT, data=_known_array(port))
        sizes = self.steps.sizes
        return Input(self.buffers[port].buffer, sizes.type(port.type), sizes.value(port.value))

    def _value(self, port: OutPort, region: Region, index: int = 0, data: Array | None = None) -> Value:
        name = self._name(port)
        buffer = dense(name, *self.steps.sizes.shape(port.shape), dtype=port.type.dtype)
        if region is Region.INPUT:
            buffer = foreign(buffer)
        value = Value(buffer, region, index, data)
        self.buffers[port] = self.steps.values[name] = value
        return value

    def _name(self, port: OutPort) -> str:
        stem = re.sub(r"\W+", "_", port.node.name).strip("_")[-32:] or "value"
        stem = stem if not stem[0].isdigit() else f"_{stem}"
        return self._unique(stem)

    def _unique(self, stem: str) -> str:
        name, n = stem, 0
        while name in self.steps.values:
            n += 1
            name = f"{stem}.{n}"
        return name

    def _compute(self, node: Node, op: ComputeOp, out: Buffer) -> Definition:
        axes, index = indices(out.shape)
        # The operation names its reduction axes as it likes, so its own are told apart by names that nothing else has.
        own: dict[Expr, Var] = {a: replace(a, name=f"{a.name}{OWN}") for a in axes}
        element = op.compute(self.steps.sizes.type(node.out_port(0).type), *self._inputs(node))
        value = rewrite(element(*(rewrite(i, own) for i in index)), self._size)
        d = tidy(Definition(out, tuple(own.values()), value, index), self.steps.values)
        return replace(d, axes=axes, value=rewrite(d.value, {hidden: a for a, hidden in own.items()}))

    def _size(self, e: Expr) -> Expr | None:
        """A name for what is computed from sizes alone."""
        if not isinstance(e, Prim) or e.dtype is not DType.I64 or e.fn in PLAIN:
            return None
        read = variables(e)
        known = all(v in self.steps.sizes.meaning or v in self.steps.symbols for v in read)
        return self.steps.sizes.name(e) if read and known and not loads(e) else None

    def _kept(self, node: Node, what: str) -> tuple[Buffer, Buffer]:
        """The state and the flag of a variable, under names of their own for reading and writing."""
        variable = self.variables.of(node)
        name = self._unique(f"{self._name(node.out_port(0))}.{what}")
        state = dense(name, *variable.type.static_shape, dtype=variable.type.dtype)
        flag = flag_of(f"{name}.flag")
        self.steps.values[state.name] = Value(state, Region.STATE, variable.data)
        self.steps.values[flag.name] = Value(flag, Region.STATE, variable.flag)
        return state, flag

    def _read_value(self, node: Node, out: Buffer) -> Definition:
        axes, at = indices(out.shape)
        initial = self._inputs(node)
        return tidy(read(out, *self._kept(node, "read"), initial[0] if initial else None, axes, at), self.steps.values)

    def _assign(self, node: Node) -> tuple[Stmt, ...]:
        source = self._input(node.source(0)).buffer
        return write(*self._kept(node, "written"), source, *indices(source.shape))

    def _view(self, node: Node, op: ViewOp, outs: list[Buffer]) -> tuple[Work, ...]:
        inputs = self._inputs(node)
        operands = [None if i is None else i.operand() for i in inputs]
        types = tuple(self.steps.sizes.type(p.type) for p in node.out_ports().values())
        works: list[Work] = []
        for piece in op.pieces(types, *operands):
            if any(n == 0 for n in piece.extent):
                continue
            source = inputs[piece.source]
            assert source is not None
            axes, index = indices(piece.extent)
            target = tuple(s + i for s, i in zip(piece.start, index, strict=True))
            made = Definition(outs[piece.output], axes, source(*piece.index(*index)), target)
            works.append(tidy(made, self.steps.values))
        return tuple(works)

    def _nest(self, node: Node, op: LoopOp, outs: list[Buffer]) -> tuple[Work, ...]:
        """A hand-written nest; buffers that it keeps between its works get names of their own."""
        works = tuple(map(_apart, op.nest(tuple(outs), *self._inputs(node))))
        found = {b for w in works for b in (*writes(w), *(x.buffer for x in reads(w))) if b.space is Space.ARENA}
        fresh: dict[str, Buffer] = {}
        for b in sorted(found, key=lambda b: b.name):
            made = replace(b, name=self._unique(f"{outs[0].name}.{b.name}"), space=Space.ARG)
            fresh[b.name] = made
            self.steps.values[made.name] = Value(made, Region.ARENA)
        return tuple(rewrite_work(w, move_loads(fresh), lambda b: fresh.get(b.name, b)) for w in works)

    def _result(self, index: int, node: Node) -> str:
        """A copy, which fusion merges into what makes the value wherever it can."""
        source = self._input(node.source(0))
        name = f"output{index}"
        out = foreign(dense(name, *source.shape, dtype=source.dtype))
        self.steps.values[name] = Value(out, Region.OUTPUT, index)
        axes, at = indices(out.shape)
        copy = tidy(Definition(out, axes, source(*at), at), self.steps.values)
        if not _empty(copy):
            self.steps.steps.append(Step((copy,), node.source(0).node.origin.layers or (node.name,), "Result"))
        return name

    def _drop_unread(self) -> None:
        """Steps nobody needs: shape arithmetic, and inputs that only inference read."""
        needed: set[str] = set()
        kept: list[Step] = []
        for step in reversed(self.steps.steps):
            outs = step.writes()
            if any(b.name in needed or self.steps.values[b.name].region in LASTING for b in outs):
                kept.append(step)
                needed |= {x.buffer.name for x in step.reads()}
        self.steps.steps = kept[::-1]
        used = needed | {b.name for s in kept for b in s.writes()} | set(self.steps.inputs)
        self.steps.values = {n: v for n, v in self.steps.values.items() if n in used}


def _apart(work: Work) -> Work:
    """Buffers inside of statements get names that no value in memory has."""
    if isinstance(work, Definition | Group):
        return work
    inner = {b.name: replace(b, name=f"{b.name}{OWN}") for b in local(work)}
    return rewrite_work(work, move_loads(inner), lambda b: inner.get(b.name, b))


def _empty(work: Work) -> bool:
    """Does a definition have no points?"""
    return isinstance(work, Definition) and any(a.extent == 0 for a in work.axes)


def _known_array(port: OutPort) -> Array:
    if port.value is None or port.value.dtype == object:
        raise InternalError(f"{port}: no value in memory and none known")
    return port.value


def foreign(buffer: Buffer) -> Buffer:
    """Memory of the caller: aligned as its elements are, no more."""
    return replace(buffer, align=stored_bytes(buffer.dtype))


def stored_bytes(dtype: DType) -> int:
    """Bytes of one element in memory: packed types lie one element a byte."""
    return dtype.compute.bytes if dtype.bits < 8 else dtype.bytes


def indices(shape: tuple[Dim, ...]) -> tuple[tuple[Var, ...], tuple[Expr, ...]]:
    """Axes for all dimensions that are not 1, and the index they make: 0 where a dimension is 1."""
    names = AXES.get(len(shape)) or [f"d{i}" for i in range(len(shape))]
    index = tuple(Const(0) if n == 1 else Var(name, n) for name, n in zip(names, shape, strict=True))
    return tuple(i for i in index if isinstance(i, Var)), index


def tidy(d: Definition, values: dict[str, Value]) -> Definition:
    """Reduction axes of one point vanish, others have names of their own; constants of one element become numbers."""
    reduction, taken = d.reduction, {a.name.removesuffix(OWN) for a in d.axes}
    value = d.value
    if reduction is not None:
        change: dict[Expr, Expr] = {}
        axes: list[Var] = []
        for a in reduction.axes:
            fresh = replace(a, name=f"{a.name}r") if a.name in taken else a
            change[a] = Const(0) if a.extent == 1 else fresh
            axes += [] if a.extent == 1 else [fresh]
        body = rewrite(reduction.body, change)
        init = rewrite(reduction.init, change) if reduction.init is not None else None
        value = rewrite(value, {reduction: _reduced(reduction.fn, tuple(axes), body, init)})
    return replace(d, value=rewrite(value, lambda e: _number(e, values)))


def _reduced(fn: str, axes: tuple[Var, ...], body: Expr, init: Expr | None) -> Expr:
    if any(a.extent == 0 for a in axes):
        return identity(fn, body.dtype) if init is None else init
    if axes:
        return Reduce(fn, axes, body, init)
    return body if init is None else prim(fn, init, body)


def _number(e: Expr, values: dict[str, Value]) -> Expr | None:
    if not isinstance(e, Load) or e.buffer.name not in values:
        return None
    data = values[e.buffer.name].data
    if data is None or data.size != 1:
        return None
    number = np.asarray(data).reshape(-1)[0]
    return Const(float(number) if e.dtype.is_float else int(number), e.dtype)
