"""Values in memory for the ports of a graph."""

from __future__ import annotations

import re
from dataclasses import replace
from math import gcd

from aot.codegen.ir.access import volume
from aot.codegen.ir.loops import Buffer, Size, Space, Var, dense
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, move_loads, reads, rewrite_work, writes
from aot.ir.graph import Node, OutPort
from aot.ir.op import Op
from aot.ir.operand import Input
from aot.ir.types import Array, Shape
from aot.ir.values.deferred import Deferred
from aot.lowering.define.tidy import apart, foreign
from aot.lowering.ir.steps import Steps, Value
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError, UnsupportedError


class PortValues:
    """The values of ports, which are added to `steps` under unique names."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.values: dict[OutPort, Value] = {}

    def add(self, port: OutPort, region: MemoryRegion, index: int = 0, data: Array | Deferred | None = None) -> Value:
        """Add a dense value for a port."""
        if port.type.dtype is DType.NF4:
            raise UnsupportedError(f"{port.node.type}: elements of nf4 are constants for Convert, got {port.type}")
        name = self.name(port)
        buffer = dense(name, *self.steps.sizes.shape(port.shape), dtype=port.type.dtype)
        if region is MemoryRegion.INPUT:
            buffer = foreign(buffer)
        value = Value(buffer, region, index, data)
        self.values[port] = self.steps.values[name] = value
        return value

    def input(self, port: OutPort) -> Input:
        """Return the value of a port as an operand; a constant is added with its first use."""
        if port not in self.values:
            self.add(port, MemoryRegion.CONSTANT, data=_known_array(port))
        sizes = self.steps.sizes
        return Input(self.values[port].buffer, sizes.type(port.type), sizes.value(port.symbolic_value))

    def inputs(self, node: Node) -> list[Input | None]:
        """Return the operands of a node; None for those without a source."""
        return [None if p.source is None else self.input(p.source) for p in node.inputs()]

    def share(self, port: OutPort) -> Value:
        """Return the value of a port, kept in memory so that all blocks of control flow can read it."""
        value = self.steps.values[self.values[port].name]
        if value.region is MemoryRegion.ARENA:
            value = replace(value, region=MemoryRegion.SHARED, elements=volume(value.buffer.shape))
            self.steps.values[value.name] = value
        return value

    def part(self, node: Node, at: Size, shape: Shape, dtype: DType) -> Buffer:
        """Add a buffer for the part of the state at `at`, under a unique name."""
        buffer = dense(self.unique(f"{self.name(node.out_port(0))}.state"), *shape, dtype=dtype)
        if isinstance(at, int):
            buffer = replace(buffer, align=gcd(buffer.align, at))
        self.steps.values[buffer.name] = Value(buffer, MemoryRegion.STATE, at=at)
        return buffer

    def name(self, port: OutPort) -> str:
        """Return a name that no value has, after the port's node."""
        stem = re.sub(r"\W+", "_", port.node.name).strip("_")[-32:] or "value"
        stem = stem if not stem[0].isdigit() else f"_{stem}"
        return self.unique(stem)

    def unique(self, stem: str) -> str:
        """Return a name that no value has: `stem`, or with a number after it."""
        name, n = stem, 0
        while name in self.steps.values:
            n += 1
            name = f"{stem}.{n}"
        return name

    def own(self, op: Op, nest: tuple[Work, ...], outs: list[Buffer]) -> tuple[Work, ...]:
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


def symbols_of(port: OutPort) -> list[Var]:
    """Return symbols that stand for the elements of the port's value."""
    own = port.own_symbols
    return [] if own is None else [s for s in own.flat if isinstance(s, Var)]


def _known_array(port: OutPort) -> Array | Deferred:
    constant = port.constant_data
    if constant is None or (not isinstance(constant, Deferred) and constant.dtype == object):
        raise InternalError(f"{port}: no value in memory and none known")
    return constant
