"""Graph -> steps: the definitions of each node over values in memory, with no loop order, layout or addresses yet.

step fc1+relu: relu1[i, j] = max(add[k in 784](x[i, k] * fc1_w[k, j]), 0)    for i in 1, j in 512
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from aot.codegen.ir.definition import LOCAL, Definition
from aot.codegen.ir.expressions import functions_in, loads, rewrite, variables
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Var, dense
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work
from aot.ir.graph import Graph, Node
from aot.ir.op import ComputeOp, LoopOp, RegionOp, Stateful, ViewOp
from aot.ir.operand import Input
from aot.ir.types import TensorType
from aot.lowering.define.drop_unread import drop_unread
from aot.lowering.define.equal_layers import EqualLayers, Form
from aot.lowering.define.port_values import PortValues, symbols_of
from aot.lowering.define.size_checks import SizeChecks
from aot.lowering.define.tidy import foreign, is_empty, tidy
from aot.lowering.define.variable_steps import VariableSteps
from aot.lowering.ir.proof import Prover
from aot.lowering.ir.reach import after
from aot.lowering.ir.steps import Step, Steps, Value, indices
from aot.lowering.ir.symbolic_sizes import PLAIN
from aot.opset.control.growing_variables import Append, CacheRoom, CacheSizes
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, UnsupportedError

Regions = Callable[["Definer", Node], None]


def define(graph: Graph, regions: Regions) -> Steps:
    """Lower a graph to the definitions that its results need. `regions` adds the steps of a node with sub-graphs."""
    return Definer(graph, Steps(graph.name), regions).run()


class Definer:
    """Adds the steps of a graph, or of a body, to `steps`."""

    def __init__(self, graph: Graph, steps: Steps, regions: Regions, around: Prover | None = None) -> None:
        """`around`: of the steps around a body."""
        self.graph, self.steps, self.regions = graph, steps, regions
        self.ports = PortValues(steps)
        self.checks = SizeChecks(steps, Prover(steps, around), None if around is None else graph.scope)
        self.variables = VariableSteps(steps, self.ports, self.checks)
        # Expressions over hidden axes, and those of the outputs: indices of equal layers are one object each.
        self._shown: dict[tuple[Var, ...], dict[Expr, Expr]] = {}
        self._equal = EqualLayers(steps.values)

    def run(self) -> Steps:
        sizes = [n for p in self.graph.parameters for n in p.out_port(0).shape if not isinstance(n, int)]
        self.steps.symbols = tuple(sorted(variables(*sizes), key=lambda v: v.name))
        self.steps.sizes.taken = frozenset(v.name for v in self.steps.symbols)
        for i, node in enumerate(self.graph.parameters):
            self.ports.add(node.out_port(0), MemoryRegion.INPUT, i)
        self.steps.inputs = [self.ports.values[p.out_port(0)].name for p in self.graph.parameters]
        self.nodes()
        self.steps.outputs = [self._result(i, node) for i, node in enumerate(self.graph.results)]
        self.variables.assign(self.graph)
        drop_unread(self.steps)
        return self.steps

    def inside(self, body: Graph) -> Definer:
        """Return a definer for a body; its block shares the values of this one."""
        block = replace(self.steps, steps=[], inputs=[], outputs=[])
        return Definer(body, block, self.regions, self.checks.prover)

    def nodes(self) -> None:
        """Add the steps of all nodes."""
        for node in self.graph.nodes.values():
            self.steps.sizes.late |= {s: None for p in node.outputs() for s in symbols_of(p)}
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
            self.ports.input(node.source(0))
            self.ports.values[node.out_port(0)] = self.ports.values[node.source(0)]
            return
        if isinstance(op, RegionOp):
            self.checks.check(node)
            self.regions(self, node)
            self._bind(node)
            return
        self.checks.check(node)
        outs = self._outs(node)
        match op:
            case CacheSizes() | CacheRoom() | Append():
                works = self.variables.grow(node, op, outs[0])
            case ComputeOp():
                inputs = self.ports.inputs(node)
                shared = op.pure and not self.steps.has_symbols
                form = self._equal.form_of(op, inputs, outs[0]) if shared else None
                if form is not None and (known := self._equal.definition(form, inputs, outs[0])) is not None:
                    self._append(node, (known,))
                    return
                works: tuple[Work, ...] = (self._compute(node, op, inputs, outs[0], form),)
            case ViewOp():
                works = self._view(node, op, outs)
            case LoopOp():
                works = self._nest(node, op, outs)
            case Stateful():
                works = (self.variables.read(node, outs[0]),)
            case _:
                raise UnsupportedError(f"{op.user_type}: this operation cannot be compiled yet", advice=op.ways)
        works = tuple(w for w in works if not is_empty(w))
        self._append(node, self.checks.inside(node, works))

    def _append(self, node: Node, works: tuple[Work, ...]) -> None:
        """Add the steps of a node."""
        layers = _layers(node)
        if isinstance(node.op, ViewOp):  # a step for each piece, so that it can merge into its producer
            self.steps.steps += [Step((work,), layers, node.type) for work in works]
        elif works:  # a step for the last definition, so that it can merge with its consumers
            last = len(works) - isinstance(works[-1], Definition)
            parts = (works[:last], works[last:])
            self.steps.steps += [Step(part, layers, node.type) for part in parts if part]
        self._bind(node)

    def _outs(self, node: Node) -> list[Buffer]:
        """Add the values of a node's outputs."""
        if isinstance(node.op, Append):
            return [self.variables.view(node)]
        return [self.ports.add(p, MemoryRegion.ARENA).buffer for p in node.outputs()]

    def _bind(self, node: Node) -> None:
        """Read the symbols that stand for elements of the node's outputs from memory."""
        for port in node.outputs():
            if symbols := symbols_of(port):
                value = self.ports.share(port)
                at = (tuple(map(Const, i)) for i in np.ndindex(port.type.static_shape))
                binds = {s: Load(value.buffer, i) for s, i in zip(symbols, at, strict=True)}
                self.steps.steps.append(Step((), _layers(node), "Bind", binds=binds))

    @staticmethod
    def _known(node: Node) -> bool:
        return all(o.value is not None and o.value.dtype != object for o in node.operands())

    def _compute(
        self, node: Node, op: ComputeOp, inputs: list[Input | None], out: Buffer, form: Form | None
    ) -> Definition:
        """Make the definition of a node. `form`: of its equal layers, None if there are none."""
        axes, index = indices(out.shape)
        # Operations choose the names of their reduction axes, so output axes have names here that no others have.
        hidden = _hidden(axes)
        own: dict[Expr, Var] = dict(zip(axes, hidden, strict=True))
        dtype = self.steps.sizes.type(node.out_port(0).type)
        watched = self._equal.watched(form, inputs)
        element = op.compute(dtype, *(x and self._equated(x, dtype) for x in watched))
        value = element(*(own.get(i, i) for i in index))
        value = rewrite(value, self._size) if self.steps.has_symbols else value
        if "min" in functions_in(value):
            value = rewrite(value, self._unclamped)
        d = tidy(Definition(out, hidden, value, index), self.steps.values)
        known = self._shown.setdefault(axes, {})
        definition = Definition(out, axes, rewrite(d.value, dict(zip(hidden, axes, strict=True)), known), index)
        self._equal.add(form, watched, definition)
        return definition

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

    def _view(self, node: Node, op: ViewOp, outs: list[Buffer]) -> tuple[Work, ...]:
        inputs = self.ports.inputs(node)
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
        return self.ports.own(op, op.nest(tuple(outs), *self.ports.inputs(node)), outs)

    def _result(self, index: int, node: Node) -> str:
        """Add a copy to the output, which fusion merges into the producer if it can; return the output's name."""
        source = self.ports.input(node.source(0))
        name = f"output{index}"
        out = foreign(dense(name, *source.shape, dtype=source.dtype))
        self.steps.values[name] = Value(out, MemoryRegion.OUTPUT, index)
        axes, at = indices(out.shape)
        copy = tidy(Definition(out, axes, source(*at), at), self.steps.values)
        if not is_empty(copy):
            self.steps.steps.append(Step((copy,), node.source(0).node.origin.layers or (node.name,), "Result"))
        return name


def _layers(node: Node) -> tuple[str, ...]:
    return node.origin.layers or (node.name,)


@lru_cache(maxsize=1 << 10)  # many values have the same shape
def _hidden(axes: tuple[Var, ...]) -> tuple[Var, ...]:
    """Return the axes under names that no others have."""
    return tuple(replace(a, name=f"{a.name}{LOCAL}") for a in axes)
