"""If, Loop and TensorIterator: their bodies become blocks of steps; inputs and outputs are shared values.

loop over i:   part = x[.., i, ..]           sliced inputs are read where they lie
               h.next = f(part, h.now)       a carried value has two places, which change roles after each iteration
               y[.., i, ..] = g(h.now)       collected outputs are written where they belong
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from aot.codegen.ir.access import volume
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Size, Var, as_expr, cast, dense, prim, select
from aot.codegen.ir.program import MemoryRegion
from aot.ir.conditions import axis_of
from aot.ir.graph import Node, OutPort
from aot.ir.types import Shape
from aot.lowering.define.define import Definer
from aot.lowering.define.tidy import is_empty, tidy
from aot.lowering.ir.steps import BranchControl, BufferHalf, LoopControl, Step, Value, indices
from aot.opset.control.control_flow import BRANCHES, If, Iterating, Loop, carried_size, counter, last_size
from aot.opset.control.port_maps import InputMap, OutputMap, first_part, in_order
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError


def lower_region(outer: Definer, node: Node) -> None:
    """Add the steps of a node that holds sub-graphs."""
    match node.op:
        case If():
            _if(outer, node, node.op)
        case Iterating():
            _Loop(outer, node, node.op).lower()
        case _:
            raise InternalError(f"{node.type}: an operation with regions is If, Loop or TensorIterator")


def _if(outer: Definer, node: Node, op: If) -> None:
    condition = op.chosen(node.input(0))
    outs = [_shared(outer, p, p.shape) for p in node.out_ports().values()]
    definers: list[Definer] = []
    required = op.required(node.regions)
    for name in (required,) if required else BRANCHES:
        body = node.regions[name]
        inputs, outputs = op.maps(name)
        inner = outer.inside(body)
        for m in inputs:
            _pass_in(outer, inner, node.source(m.external), body.parameters[m.parameter])
        inner.nodes()
        for out, m in zip(outs, in_order(outputs), strict=True):
            _write(inner, body.results[m.result].source(0), out)
        definers.append(inner)
    blocks = [inner.steps for inner in definers]
    if required:  # the other branch never runs
        blocks.insert(int(required == "then"), replace(blocks[0], steps=[]))
    _control(outer, node, BranchControl(outer.steps.sizes.of(condition), *blocks))


def _control(outer: Definer, node: Node, control: BranchControl | LoopControl) -> None:
    outer.steps.steps.append(Step((), node.origin.layers or (node.name,), node.type, control=control))


def _shared(outer: Definer, port: OutPort, shape: Shape, name: str = "", room: Size = 0) -> Value:
    """Add a value that several blocks touch: the port's, or another value of its element type.

    `room`: elements after it.
    """
    name = name or outer.ports.add(port, MemoryRegion.SHARED).name
    buffer = dense(name, *outer.steps.sizes.shape(shape), dtype=port.type.dtype)
    result = Value(buffer, MemoryRegion.SHARED, elements=volume(buffer.shape) + room)
    outer.steps.values[name] = result
    return result


def _pass_in(outer: Definer, inner: Definer, source: OutPort, parameter: Node) -> None:
    """Let a body read an outer value in place, without a copy."""
    port = parameter.out_port(0)
    if port.destinations:
        outer.ports.input(source)
        value = inner.ports.values[port] = outer.ports.share(source)
        inner.steps.inputs.append(value.name)


def _write(block: Definer, source: OutPort, out: Value, at: Sequence[Size] = ()) -> None:
    """Copy a value of a block into a shared one: into the box that begins at `at`, or all of it, in its own shape."""
    read = block.ports.input(source)
    axes, index = indices(read.shape)
    buffer = out.buffer if at else dense(out.name, *read.shape, dtype=read.dtype)
    target = (*(Const(0) for _ in at[len(index) :]), *index)  # a stack has one dimension more
    out_index = tuple(i + s for i, s in zip(target, at, strict=True)) if at else index
    _step(block, tidy(Definition(buffer, axes, read(*index), out_index), block.steps.values), source.node, "Result")


def _step(block: Definer, work: Definition, node: Node, kind: str) -> None:
    if not is_empty(work):
        block.steps.steps.append(Step((work,), node.origin.layers or (node.name,), kind))


class _Loop:
    """The steps of one loop."""

    def __init__(self, outer: Definer, node: Node, op: Iterating) -> None:
        self.outer, self.node, self.op = outer, node, op
        self.body = node.regions["body"]
        self.inner = outer.inside(self.body)
        operands = [node.input(i) for i in range(len(node.in_ports()))]
        self.limit, self.count = op.limit(operands, self.body), op.iterations(operands, self.body)
        self.counter = counter(self.body)
        self.parity = Var(f"{self.counter.name}.parity", 2)
        self.enters: list[Buffer] = []
        self.leaves: list[Buffer] = []
        self.start: dict[Var, Size] = {}
        self.follow: dict[Var, Size] = {}
        self._set(self.counter, 0, self.counter + 1)
        self._set(self.parity, 0, 1 - self.parity)

    def _set(self, symbol: Var, start: Size, follow: Size) -> None:
        """Set the value of a symbol before the first iteration, and after each."""
        late = self.outer.steps.sizes.late
        if symbol in late:
            raise InternalError(f"{self.node.type}: no other loop has the symbol {symbol.name}")
        late[symbol] = None
        self.start[symbol], self.follow[symbol] = start, follow

    def lower(self) -> None:
        carried = {e.parameter: e.result for e in self.op.back_edges}
        following: list[tuple[OutPort, Value]] = []
        for m in self.op.input_maps:
            if m.parameter in carried:
                result = self._result(carried[m.parameter])
                following.append((result, self._carry(m, result)))
            elif m.axis is not None:
                self._slice(m, m.axis)
            else:
                _pass_in(self.outer, self.inner, self.node.source(m.external), self.body.parameters[m.parameter])
        self._count()
        self.inner.nodes()
        stacks = [s for m in in_order(self.op.output_maps) if (s := self._output(m)) is not None]
        for result, value in following:
            _write(self.inner, result, value)
        self._close()
        for m, stack in stacks:
            self._unstack(m, stack)

    def _close(self) -> None:
        sizes, going = self.outer.steps.sizes, self.op.going(self.body)
        if isinstance(going, Expr) and variables(going) & set(self.start):  # as it was before the next iteration
            flag = Var(f"{self.counter.name}.going", 2)
            self._set(flag, 1, select(prim("ne", going, 0), 1, 0))
            going = flag
        start, follow = ({s: sizes.of(n) for s, n in row.items()} for row in (self.start, self.follow))
        edges = (tuple(self.enters), tuple(self.leaves))
        cycle = LoopControl(
            self.counter, sizes.of(self.limit), sizes.of(going), self.inner.steps, start, follow, *edges
        )
        _control(self.outer, self.node, cycle)

    def _result(self, index: int) -> OutPort:
        return self.body.results[index].source(0)

    # ---- inputs of a region

    def _carry(self, m: InputMap, result: OutPort) -> Value:
        """Name the two buffers of a carried value.

        The three names: before the first iteration, in this one, and for the next one.
        """
        port, source = self.body.parameters[m.parameter].out_port(0), self.node.source(m.external)
        for k, now in enumerate(port.shape):
            size = carried_size(self.body, m.parameter, k)
            if now == size:
                self._set(size, source.shape[k], result.shape[k])
        stem = self.inner.ports.name(port)
        pair = _shared(self.outer, port, (), self.outer.ports.unique(f"{stem}.pair"))

        def half(what: str, shape: Shape, index: Size) -> Value:
            value = _shared(self.outer, port, shape, self.outer.ports.unique(f"{stem}.{what}"))
            carry = self.outer.steps.values[value.name] = replace(value, half=BufferHalf(pair.name, index))
            return carry

        first = half("first", source.shape, 0)
        self.enters.append(first.buffer)
        _write(self.outer, source, first)
        now = self.inner.ports.values[port] = half("now", port.shape, self.parity)
        self.leaves.append(now.buffer)
        self.inner.steps.inputs.append(now.name)
        return half("next", result.shape, 1 - self.parity)

    def _slice(self, m: InputMap, axis: int) -> None:
        """Slice the part of an input that this iteration reads."""
        port, source = self.body.parameters[m.parameter].out_port(0), self.node.source(m.external)
        data = self.outer.ports.input(source)
        self.outer.ports.share(source)
        axis = axis_of(axis, data.rank, "sliced input")
        axes, at = indices(port.shape)
        begin = self.outer.steps.sizes.of(first_part(m, source.shape[axis], self.counter))
        index = tuple(i + begin if k == axis else i for k, i in enumerate(at))
        part = self.inner.ports.add(port, MemoryRegion.ARENA).buffer
        _step(self.inner, tidy(Definition(part, axes, data(*index), at), self.inner.steps.values), self.node, "Slice")

    def _count(self) -> None:
        """Store the iteration counter as a value in memory if a step reads it from memory."""
        parameter = self.op.current_iteration if isinstance(self.op, Loop) else -1
        if parameter >= 0:
            out = self.inner.ports.add(self.body.parameters[parameter].out_port(0), MemoryRegion.ARENA).buffer
            axes, at = indices(out.shape)
            _step(self.inner, Definition(out, axes, cast(self.counter, out.dtype), at), self.node, "Loop")

    # ---- outputs of a region

    def _output(self, m: OutputMap) -> tuple[OutputMap, Value] | None:
        """Create an output; return it with its value if its parts are placed after the loop."""
        port, result = self.node.out_port(m.external), self._result(m.result)
        edge = next((e for e in self.op.back_edges if e.result == m.result), None)
        if m.axis is not None:
            return self._collect(m, port, result)
        if edge is not None:
            self.outer.ports.values[port] = self.inner.ports.values[self.body.parameters[edge.parameter].out_port(0)]
            return None
        for k, now in enumerate(result.shape):
            size = last_size(self.body, m.result, k)
            if port.shape[k] == size:
                self._set(size, 0, now)
        out = _shared(self.outer, port, port.shape)
        if not isinstance(self.limit, int) or not self.limit:
            self._zero(out)
        _write(self.inner, result, out)
        return None

    def _zero(self, out: Value) -> None:
        """Write zeros, the result of a loop that never runs."""
        self.enters.append(out.buffer)
        axes, at = indices(out.buffer.shape)
        zero = Const(0.0 if out.buffer.dtype.is_float else 0, out.buffer.dtype.compute)
        _step(self.outer, Definition(out.buffer, axes, zero, at), self.node, "Loop")

    def _collect(self, m: OutputMap, port: OutPort, part: OutPort) -> tuple[OutputMap, Value] | None:
        """Collect the parts along an axis, from its end if the stride is negative.

        Where that end is unknown, stack them.

        A part is written before it is counted: there is room for one more.
        """
        axis = _axis(m, part)
        sizes, size = self.outer.steps.sizes, part.shape[axis]
        room = volume(sizes.shape(part.shape)) if self.count is None else 0
        if self.count is None and (m.stride < 0 or any(n != 1 for n in part.shape[:axis])):
            name = self.outer.ports.unique(f"{self.outer.ports.name(port)}.parts")
            stack = _shared(self.outer, port, (self.counter, *part.shape), name, room)
            _write(self.inner, part, stack, (self.counter, *_zeros(part)))
            return m, stack
        forward = self.count is None or m.stride > 0
        number = self.counter if forward else as_expr(self.count or 0, DType.I64) - 1 - self.counter
        at = (sizes.of(number * size) if k == axis else 0 for k in range(part.type.rank))
        _write(self.inner, part, _shared(self.outer, port, port.shape, room=room), tuple(at))
        return None

    def _unstack(self, m: OutputMap, stack: Value) -> None:
        """Move stacked parts to their places, now that their number is known."""
        port = self.node.out_port(m.external)
        out = self.outer.ports.add(port, MemoryRegion.ARENA).buffer
        axis, (axes, at) = _axis(m, port), indices(out.shape)
        size = stack.buffer.shape[axis + 1]
        number, inside = at[axis] // size, at[axis] % size
        number = number if m.stride > 0 else self.counter - 1 - number
        read = Load(stack.buffer, (number, *(inside if k == axis else i for k, i in enumerate(at))))
        _step(self.outer, Definition(out, axes, read, at), self.node, "Concat")


def _axis(m: OutputMap, port: OutPort) -> int:
    return axis_of(m.axis or 0, port.type.rank, "collected output")


def _zeros(port: OutPort) -> Iterable[Size]:
    return (0 for _ in range(port.type.rank))
