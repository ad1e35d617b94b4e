"""Steps that read and set the variables of a graph, of static and dynamic size, or growing in place."""

from __future__ import annotations

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Const, Load, dense, prim
from aot.codegen.ir.program import MemoryRegion, SizeConstraint
from aot.codegen.ir.traverse import Work
from aot.ir.graph import Graph, Node
from aot.lowering.define.growing_variables import Caches
from aot.lowering.define.port_values import PortValues, symbols_of
from aot.lowering.define.size_checks import SizeChecks
from aot.lowering.define.state import BYTES, State, Variables, store
from aot.lowering.define.tidy import tidy
from aot.lowering.ir.steps import Step, Steps, Value
from aot.opset.control.control_flow import known_truth
from aot.opset.control.growing_variables import BYTES as CACHE_BYTES
from aot.opset.control.growing_variables import MOVED, Append, CacheRoom, CacheSizes
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError


class VariableSteps:
    """Adds to `steps` what reads and sets variables."""

    def __init__(self, steps: Steps, ports: PortValues, checks: SizeChecks) -> None:
        self.steps, self.ports, self.checks = steps, ports, checks
        self.state = State(Variables(), steps.sizes, ports.part)
        self.caches: Caches | None = None

    def read(self, node: Node, out: Buffer) -> Definition:
        """Return the definition of a variable's value."""
        inputs = self.ports.inputs(node)
        return tidy(self.state.read(node, out, inputs[0] if inputs else None), self.steps.values)

    def view(self, node: Node) -> Buffer:
        """Add the value of an Append, a view of the state."""
        port = node.out_port(0)
        value = self._caches().value(node, self.ports.name(port), self.steps.sizes)
        self.ports.values[port] = self.steps.values[value.name] = value
        return value.buffer

    def grow(self, node: Node, op: CacheSizes | CacheRoom | Append, out: Buffer) -> tuple[Work, ...]:
        """Return the works of an operation on variables that grow in place."""
        inputs = self.ports.inputs(node)
        first = inputs[0]
        assert first is not None
        if not isinstance(op, Append):
            self.checks.prover.kept.add(out.name)
        match op:
            case CacheSizes():
                self.caches = Caches(op, batched=not isinstance(first.operand().dims("CacheSizes")[0], int))
                rows = inputs[1] if len(inputs) > 1 else None
                return (self.caches.sizes(node, out, first, rows, self.ports.part),)
            case CacheRoom():
                return (self._caches().room(node, out, first, self.ports.part),)
            case Append():
                moves = len(inputs) > 4 and not self._others_are_late(node)
                if len(inputs) > 4 and not moves:
                    rule = (
                        "rows do not move where sizes depend on data: an inference that begins again moves them twice"
                    )
                    self.checks.demand(node, [SizeConstraint(symbols_of(node.source(2))[MOVED], 0, rule)])
                return self.ports.own(op, self._caches().append(node, out, inputs, moves), [out])

    def _others_are_late(self, node: Node) -> bool:
        """True if nodes other than the cache have late sizes, so that an inference may be restarted after them."""
        own = {s for k in (2, 3) for s in symbols_of(node.source(k))}
        return any(s not in own for s in self.steps.sizes.late)

    def assign(self, graph: Graph) -> None:
        """Add the steps that make room for variables and set them, after all other steps."""
        sinks = graph.sinks
        if self.caches is not None:
            self._assign_appended(graph, self.caches)
            return
        for node in sinks:
            self.state.variables.of(node)
        offsets, end = self.state.ends(sinks)
        self.steps.state_bytes = self.state.variables.bytes
        self.steps.variables = tuple(self.state.variables.known.values())
        if offsets:
            cell = dense(self.ports.unique(BYTES.name), 1, dtype=DType.I64)
            self.steps.values[cell.name] = Value(cell, MemoryRegion.SHARED, elements=1)
            self.steps.sizes.late[BYTES] = None
            self.steps.steps.append(Step((store(cell, end - self.state.variables.bytes),), (), "Assign"))
            self.steps.steps.append(Step((), (), "Bind", binds={BYTES: Load(cell, (Const(0),))}))
            self.steps.state_bytes = BYTES + self.state.variables.bytes
        for node in sinks:
            source, condition = (self.ports.input(p) for p in (node.source(0), node.source(len(node.in_ports()) - 1)))
            known = len(node.in_ports()) == 1 or known_truth(node.input(1))
            when = None if known else prim("ne", condition(*[0] * condition.rank), 0)
            work = self.state.write(node, offsets, source.buffer, when)
            self.steps.steps.append(Step((work,), node.origin.layers, "Assign"))

    def _assign_appended(self, graph: Graph, caches: Caches) -> None:
        """Add the steps that set the sizes of variables which grow in place, after all other steps."""
        for node in graph.sinks:
            work = caches.write(node, self.ports.input(node.source(0)).buffer, self.ports.part)
            self.steps.steps.append(Step((work,), node.origin.layers, "Assign"))
        appended = (node.source(0).node for node in graph.sinks)
        self.steps.variables = tuple(map(caches.variable_of, appended))
        sizes = next(n for n in graph.nodes.values() if isinstance(n.op, CacheSizes))
        self.steps.state_bytes = symbols_of(sizes.out_port(0))[CACHE_BYTES] + caches.data

    def _caches(self) -> Caches:
        if self.caches is None:
            raise InternalError("Append: CacheSizes comes first")
        return self.caches
