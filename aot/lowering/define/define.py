"""Graph -> steps: the definitions of each node over values in memory, with no loop order, layout or addresses yet.

step fc1+relu: relu1[i, j] = max(add[k in 784](x[i, k] * fc1_w[k, j]), 0)    for i in 1, j in 512
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import gcd

import numpy as np

from aot.codegen.ir.access import volume
from aot.codegen.ir.definition import LOCAL, Definition
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Size, Space, Var, dense, prim
from aot.codegen.ir.program import MemoryRegion, SizeConstraint
from aot.codegen.ir.traverse import Work, move_loads, reads, rewrite_work, writes
from aot.ir.dims import can_be_negative
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import ComputeOp, LoopOp, Op, RegionOp, Stateful, ViewOp
from aot.ir.operand import Input
from aot.ir.types import Array, Shape, TensorType, dim_text
from aot.ir.values.deferred import Deferred
from aot.lowering.define.drop_unread import drop_unread
from aot.lowering.define.extents import fitting
from aot.lowering.define.growing_variables import Caches
from aot.lowering.define.guarded import guarded
from aot.lowering.define.size_rules import rules
from aot.lowering.define.state import BYTES, State, Variables, store
from aot.lowering.define.tidy import apart, foreign, is_empty, tidy
from aot.lowering.ir.obligations import Obligation, Proof
from aot.lowering.ir.proof import Prover, least_in_loops
from aot.lowering.ir.reach import after
from aot.lowering.ir.steps import Step, Steps, Value, indices
from aot.lowering.ir.symbolic_sizes import PLAIN
from aot.opset.control.control_flow import known_truth
from aot.opset.control.growing_variables import BYTES as CACHE_BYTES
from aot.opset.control.growing_variables import MOVED, Append, CacheRoom, CacheSizes
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, InternalError, UnsupportedError

Regions = Callable[["Definer", Node], None]


def define(graph: Graph, regions: Regions) -> Steps:
    """Lower a graph to the definitions that its results need. `regions` adds the steps of a node with sub-graphs."""
    return Definer(graph, Steps(graph.name), regions).run()


class Definer:
    """Adds the steps of a graph, or of a body, to `steps`."""

    def __init__(self, graph: Graph, steps: Steps, regions: Regions) -> None:
        self.graph, self.steps, self.regions = graph, steps, regions
        self.state = State(Variables(), steps.sizes, self._part)
        self.caches: Caches | None = None
        self.inner = False  # True for a body
        self.buffers: dict[OutPort, Value] = {}
        self.prover = Prover(steps)

    def run(self) -> Steps:
        sizes = [n for p in self.graph.parameters for n in p.out_port(0).shape if not isinstance(n, int)]
        self.steps.symbols = tuple(sorted(variables(*sizes), key=lambda v: v.name))
        self.steps.sizes.taken = frozenset(v.name for v in self.steps.symbols)
        for i, node in enumerate(self.graph.parameters):
            self.value(node.out_port(0), MemoryRegion.INPUT, i)
        self.steps.inputs = [self.buffers[p.out_port(0)].name for p in self.graph.parameters]
        self.nodes()
        self.steps.outputs = [self._result(i, node) for i, node in enumerate(self.graph.results)]
        self._assign()
        drop_unread(self.steps)
        return self.steps

    def inside(self, body: Graph) -> Definer:
        """Return a definer for a body; its block shares the values of this one."""
        block = replace(self.steps, steps=[], inputs=[], outputs=[])
        definer = Definer(body, block, self.regions)
        definer.prover = Prover(block, self.prover)
        definer.inner = True
        return definer

    def share(self, port: OutPort) -> Value:
        """Return the value of a port, kept in memory so that all blocks of control flow can read it."""
        value = self.steps.values[self.buffers[port].name]
        if value.region is MemoryRegion.ARENA:
            value = replace(value, region=MemoryRegion.SHARED, elements=volume(value.buffer.shape))
            self.steps.values[value.name] = value
        return value

    def nodes(self) -> None:
        """Add the steps of all nodes."""
        for node in self.graph.nodes.values():
            self.steps.sizes.late |= {s: None for p in node.out_ports().values() for s in _symbols(p)}
        for node in self.graph.parameters:
            self._bind(node)
        for node in self.graph.order():
            try:
                self.node(node)
            except AotError as error:
                error.add_note(f"while lowering layer {node.name!r}: {node}")
                raise

    def node(self, node: Node) -> None:
        op = node.op
        if op.type in ("Parameter", "Constant", "Result") or self._known(node):
            return
        if op.type == "Assign":  # written at the end; its output is its input
            self.input(node.source(0))
            self.buffers[node.out_port(0)] = self.buffers[node.source(0)]
            return
        if isinstance(op, RegionOp):
            self._check(node)
            self.regions(self, node)
            self._bind(node)
            return
        self._check(node)
        outs = self._outs(node)
        match op:
            case CacheSizes() | CacheRoom() | Append():
                works = self._cached(node, op, outs[0])
            case ComputeOp():
                works: tuple[Work, ...] = (self._compute(node, op, outs[0]),)
            case ViewOp():
                works = self._view(node, op, outs)
            case LoopOp():
                works = self._nest(node, op, outs)
            case Stateful():
                works = (self._read_value(node, outs[0]),)
            case _:
                raise UnsupportedError(f"{op.user_type}: this operation cannot be compiled yet", advice=op.ways)
        layers = node.origin.layers or (node.name,)
        works = tuple(w for w in works if not is_empty(w))
        if not all(p.type.is_static for p in (*node.sources(), *node.out_ports().values()) if p is not None):
            self._demand(node, fitting(works, f"{node.type} {layers[0]!r}", self.steps.sizes, self.steps.symbols))
        works = self._proven(node, works)
        if isinstance(op, ViewOp):  # a step for each piece, so that it can merge into its producer
            self.steps.steps += [Step((work,), layers, node.type) for work in works]
        elif works:  # a step for the last definition, so that it can merge with its consumers
            last = len(works) - isinstance(works[-1], Definition)
            parts = (works[:last], works[last:])
            self.steps.steps += [Step(part, layers, node.type) for part in parts if part]
        self._bind(node)

    def _proven(self, node: Node, works: tuple[Work, ...]) -> tuple[Work, ...]:
        """Return works with all accesses inside of their buffers.

        Where no proof is found, a rule refuses the sizes before anything runs, or, if memory decides an index, it is
        clamped or tested.
        """
        layer = f"{node.op.user_type} {(node.origin.layers or (node.name,))[0]!r}"
        for o in self.prover.names(works):
            if o.proof is Proof.UNKNOWN:
                text = f"{layer}: a number of elements is {o.name.low} at least, got {dim_text(o.meaning)}"
                self._demand(node, [replace(o.rule, text=text)])
        tested: list[Obligation] = []
        for o in self.prover.unproven(works):
            least = [self.steps.sizes.written_out(least_in_loops(r, o.loops)) for r in o.residue]
            if not least or any(loads(n) or not all(map(self.steps.is_known, variables(n))) for n in least):
                tested.append(o)
                continue
            extent = dim_text(self.steps.sizes.written_out(o.extent))
            text = f"{layer}: indices of dimension {o.dimension} are inside of it, got {extent} elements"
            self._demand(node, [SizeConstraint(prim("min", n, 0), 0, text) for n in least if can_be_negative(n)])
        return tuple(guarded(w, tested) for w in works) if tested else works

    def _outs(self, node: Node) -> list[Buffer]:
        """Add the values of a node's outputs."""
        if not isinstance(node.op, Append):
            return [self.value(p, MemoryRegion.ARENA).buffer for p in node.out_ports().values()]
        port = node.out_port(0)
        value = self._cache().value(node, self.name(port), self.steps.sizes)
        self.buffers[port] = self.steps.values[value.name] = value
        return [value.buffer]

    def _cache(self) -> Caches:
        if self.caches is None:
            raise InternalError("Append: CacheSizes comes first")
        return self.caches

    def _cached(self, node: Node, op: CacheSizes | CacheRoom | Append, out: Buffer) -> tuple[Work, ...]:
        """Return the works of an operation on variables that grow in place."""
        inputs = self._inputs(node)
        first = inputs[0]
        assert first is not None
        if not isinstance(op, Append):
            self.prover.kept.add(out.name)
        match op:
            case CacheSizes():
                self.caches = Caches(op, batched=not isinstance(first.operand().dims("CacheSizes")[0], int))
                rows = inputs[1] if len(inputs) > 1 else None
                return (self.caches.sizes(node, out, first, rows, self._part),)
            case CacheRoom():
                return (self._cache().room(node, out, first, self._part),)
            case Append():
                moves = len(inputs) > 4 and not self._others_are_late(node)
                if len(inputs) > 4 and not moves:
                    rule = (
                        "rows do not move where sizes depend on data: an inference that begins again moves them twice"
                    )
                    self._demand(node, [SizeConstraint(_symbols(node.source(2))[MOVED], 0, rule)])
                return self._shared(op, self._cache().append(node, out, inputs, moves), [out])

    def _others_are_late(self, node: Node) -> bool:
        """True if nodes other than the cache have late sizes, so that an inference may be restarted after them."""
        own = {s for k in (2, 3) for s in _symbols(node.source(k))}
        return any(s not in own for s in self.steps.sizes.late)

    def _check(self, node: Node) -> None:
        """Add the rules on a node's types. A body may never run: its rules are facts only of sizes that it computes."""
        constraints = rules(node)
        for rule in constraints:
            late = self.steps.sizes.late_of(rule.one, rule.other)
            if not self.inner or any(v.name.removeprefix("v").startswith(self.graph.scope) for v in late):
                self.steps.sizes.learn(rule.one, rule.other)
        self._demand(node, constraints)

    def _demand(self, node: Node, wanted: list[SizeConstraint]) -> None:
        """Add rules to the shape function; rules on late sizes, and of bodies that may not run, become Check steps."""
        constraints = {True: list[SizeConstraint](), False: list[SizeConstraint]()}
        for rule in wanted:
            constraints[self.inner or any(map(self.steps.sizes.is_late, (rule.one, rule.other)))].append(rule)
        self.steps.rules += constraints[False]
        for rule in constraints[True]:
            self.prover.check(rule)
        for rule in constraints[False]:
            self.steps.sizes.equate(rule.one, rule.other)
        layers = node.origin.layers or (node.name,)  # a step for each rule: its dependents need not wait for others
        self.steps.steps += [Step((), layers, "Check", checks=(rule,)) for rule in constraints[True]]

    def _bind(self, node: Node) -> None:
        """Read the symbols that stand for elements of the node's outputs from memory."""
        for port in node.out_ports().values():
            if symbols := _symbols(port):
                value = self.share(port)
                at = (tuple(map(Const, i)) for i in np.ndindex(port.type.static_shape))
                binds = {s: Load(value.buffer, i) for s, i in zip(symbols, at, strict=True)}
                self.steps.steps.append(Step((), node.origin.layers or (node.name,), "Bind", binds=binds))

    @staticmethod
    def _known(node: Node) -> bool:
        return all(p.value is not None and p.value.dtype != object for p in node.out_ports().values())

    def _inputs(self, node: Node) -> list[Input | None]:
        return [None if p.source is None else self.input(p.source) for p in node.in_ports().values()]

    def input(self, port: OutPort) -> Input:
        if port not in self.buffers:
            self.value(port, MemoryRegion.CONSTANT, data=_known_array(port))
        sizes = self.steps.sizes
        return Input(self.buffers[port].buffer, sizes.type(port.type), sizes.value(port.symbolic_value))

    def value(self, port: OutPort, region: MemoryRegion, index: int = 0, data: Array | Deferred | None = None) -> Value:
        if port.type.dtype is DType.NF4:
            raise UnsupportedError(f"{port.node.type}: elements of nf4 are constants for Convert, got {port.type}")
        name = self.name(port)
        buffer = dense(name, *self.steps.sizes.shape(port.shape), dtype=port.type.dtype)
        if region is MemoryRegion.INPUT:
            buffer = foreign(buffer)
        value = Value(buffer, region, index, data)
        self.buffers[port] = self.steps.values[name] = value
        return value

    def name(self, port: OutPort) -> str:
        stem = re.sub(r"\W+", "_", port.node.name).strip("_")[-32:] or "value"
        stem = stem if not stem[0].isdigit() else f"_{stem}"
        return self.unique(stem)

    def unique(self, stem: str) -> str:
        name, n = stem, 0
        while name in self.steps.values:
            n += 1
            name = f"{stem}.{n}"
        return name

    def _compute(self, node: Node, op: ComputeOp, out: Buffer) -> Definition:
        axes, index = indices(out.shape)
        # Operations choose the names of their reduction axes, so output axes have names here that no others have.
        own: dict[Expr, Var] = {a: replace(a, name=f"{a.name}{LOCAL}") for a in axes}
        dtype = self.steps.sizes.type(node.out_port(0).type)
        element = op.compute(dtype, *(x and self._equated(x, dtype) for x in self._inputs(node)))
        value = rewrite(rewrite(element(*(rewrite(i, own) for i in index)), self._size), self._unclamped)
        d = tidy(Definition(out, tuple(own.values()), value, index), self.steps.values)
        return replace(d, axes=axes, value=rewrite(d.value, {hidden: a for a, hidden in own.items()}))

    def _equated(self, x: Input, output: TensorType) -> Input:
        """Replace sizes of an input by sizes of the result that a checked rule makes equal to them."""
        if x.type.is_static:
            return x
        alike = self.steps.sizes.alike
        known = {e: m for m in reversed(output.shape) if isinstance(m, Expr) for e in alike(m)[1:]}
        written = self.steps.sizes.written_out
        shape = (n if isinstance(n, int) or n in output.shape else known.get(written(n), n) for n in x.type.shape)
        return replace(x, type=TensorType(x.type.dtype, tuple(shape)))

    def _unclamped(self, e: Expr) -> Expr | None:
        """Drop an upper bound that an index cannot exceed at any size."""
        if not isinstance(e, Prim) or e.fn != "min" or e.dtype is not DType.I64:
            return None
        sizes, symbols = self.steps.sizes, self.steps.symbols
        known = frozenset((*symbols, *sizes.meaning))
        for a, b in (e.args, e.args[::-1]):
            if loads(b) or not variables(b) <= known or isinstance(a, Const):
                continue
            if after(a, sizes.of(b + 1), sizes, symbols) == 0:
                return rewrite(a, self._unclamped)
        return None

    def _size(self, e: Expr) -> Expr | None:
        """Return a name for an expression of sizes alone."""
        if not isinstance(e, Prim) or e.dtype is not DType.I64 or e.fn in PLAIN:
            return None
        read = variables(e)
        named = read and not loads(e) and all(map(self.steps.is_known, read))
        return self.steps.sizes.name(e) if named else None

    def _part(self, node: Node, at: Size, shape: Shape, dtype: DType) -> Buffer:
        """Add a buffer for the part of the state at `at`, under a unique name."""
        buffer = dense(self.unique(f"{self.name(node.out_port(0))}.state"), *shape, dtype=dtype)
        if isinstance(at, int):
            buffer = replace(buffer, align=gcd(buffer.align, at))
        self.steps.values[buffer.name] = Value(buffer, MemoryRegion.STATE, at=at)
        return buffer

    def _read_value(self, node: Node, out: Buffer) -> Definition:
        inputs = self._inputs(node)
        return tidy(self.state.read(node, out, inputs[0] if inputs else None), self.steps.values)

    def _assign(self) -> None:
        """Add the steps that make room for variables and set them, after all other steps."""
        sinks = self.graph.sinks
        if self.caches is not None:
            self._assign_appended(self.caches)
            return
        for node in sinks:
            self.state.variables.of(node)
        offsets, end = self.state.ends(sinks)
        self.steps.state_bytes = self.state.variables.bytes
        self.steps.variables = tuple(self.state.variables.known.values())
        if offsets:
            cell = dense(self.unique(BYTES.name), 1, dtype=DType.I64)
            self.steps.values[cell.name] = Value(cell, MemoryRegion.SHARED, elements=1)
            self.steps.sizes.late[BYTES] = None
            self.steps.steps.append(Step((store(cell, end - self.state.variables.bytes),), (), "Assign"))
            self.steps.steps.append(Step((), (), "Bind", binds={BYTES: Load(cell, (Const(0),))}))
            self.steps.state_bytes = BYTES + self.state.variables.bytes
        for node in sinks:
            source, condition = (self.input(p) for p in (node.source(0), node.source(len(node.in_ports()) - 1)))
            known = len(node.in_ports()) == 1 or known_truth(node.input(1))
            when = None if known else prim("ne", condition(*[0] * condition.rank), 0)
            work = self.state.write(node, offsets, source.buffer, when)
            self.steps.steps.append(Step((work,), node.origin.layers, "Assign"))

    def _assign_appended(self, caches: Caches) -> None:
        """Add the steps that set the sizes of variables which grow in place, after all other steps."""
        for node in self.graph.sinks:
            work = caches.write(node, self.input(node.source(0)).buffer, self._part)
            self.steps.steps.append(Step((work,), node.origin.layers, "Assign"))
        appended = (node.source(0).node for node in self.graph.sinks)
        self.steps.variables = tuple(map(caches.variable_of, appended))
        sizes = next(n for n in self.graph.nodes.values() if isinstance(n.op, CacheSizes))
        self.steps.state_bytes = _symbols(sizes.out_port(0))[CACHE_BYTES] + caches.data

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
            definition = Definition(outs[piece.output], axes, source(*piece.index(*index)), target)
            works.append(tidy(definition, self.steps.values))
        return tuple(works)

    def _nest(self, node: Node, op: LoopOp, outs: list[Buffer]) -> tuple[Work, ...]:
        """Return the hand-written nest of an operation."""
        return self._shared(op, op.nest(tuple(outs), *self._inputs(node)), outs)

    def _shared(self, op: Op, nest: tuple[Work, ...], outs: list[Buffer]) -> tuple[Work, ...]:
        """Return the works of an operation; buffers shared by them get unique names."""
        works = tuple(map(apart, nest))
        buffers = {b for w in works for b in (*writes(w), *(x.buffer for x in reads(w))) if b.space is Space.ARENA}
        fresh: dict[str, Buffer] = {}
        for b in sorted(buffers, key=lambda b: b.name):
            if b.name in fresh:
                raise InternalError(f"{op.type}: two buffers are called {b.name!r}")
            buffer = replace(b, name=self.unique(f"{outs[0].name}.{b.name}"), space=Space.ARG)
            fresh[b.name] = buffer
            self.steps.values[buffer.name] = Value(buffer, MemoryRegion.ARENA)
        return tuple(rewrite_work(w, move_loads(fresh), lambda b: fresh.get(b.name, b)) for w in works)

    def _result(self, index: int, node: Node) -> str:
        """Add a copy to the output, which fusion merges into the producer if it can; return the output's name."""
        source = self.input(node.source(0))
        name = f"output{index}"
        out = foreign(dense(name, *source.shape, dtype=source.dtype))
        self.steps.values[name] = Value(out, MemoryRegion.OUTPUT, index)
        axes, at = indices(out.shape)
        copy = tidy(Definition(out, axes, source(*at), at), self.steps.values)
        if not is_empty(copy):
            self.steps.steps.append(Step((copy,), node.source(0).node.origin.layers or (node.name,), "Result"))
        return name


def _symbols(port: OutPort) -> list[Var]:
    """Return symbols that stand for the elements of the port's value."""
    own = port.own_symbols
    return [] if own is None else [s for s in own.flat if isinstance(s, Var)]


def _known_array(port: OutPort) -> Array | Deferred:
    constant = port.constant_data
    if constant is None or (not isinstance(constant, Deferred) and constant.dtype == object):
        raise InternalError(f"{port}: no value in memory and none known")
    return constant
