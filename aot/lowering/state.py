"""Variables that a request keeps: a flag says whether they were ever set; they are written when all else is done.

    state of a request     flag of v0 | v0 | flag of v1 | v1 ...        zeros at first and after reset_state()
    ReadValue              v[i] = flag ? state[i] : initial[i]
    Assign                 state[i] = x[i]; flag = 1             last of all, by statements that nothing merges into
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from aot.ir.graph import Node
from aot.ir.op import Input
from aot.ir.types import TensorType
from codegen.define import Definition
from codegen.loops import Buffer, Const, Expr, For, Load, Stmt, Store, Var, dense, prim, select
from runtime.abi import DType
from runtime.errors import ModelError, UnsupportedError

LINE = 64


@dataclass(frozen=True, slots=True)
class Variable:
    """Where its flag and its elements lie in the state of a request, in bytes."""

    type: TensorType
    flag: int
    data: int


class Variables:
    """The variables of a model by their ids."""

    def __init__(self) -> None:
        self.known: dict[str, Variable] = {}
        self.bytes = 0

    def of(self, node: Node) -> Variable:
        """The variable that a ReadValue or Assign names."""
        id = str(getattr(node.op, "variable_id", ""))
        type = node.out_port(0).type
        if not type.is_static:
            raise UnsupportedError(f"{node.type}: variable {id!r} must have a shape known at compile time, got {type}")
        if id not in self.known:
            width = type.dtype.stored_bytes
            flag, data = self.bytes, self.bytes + LINE
            self.bytes = data + -(-(prod(type.static_shape) * width + LINE) // LINE) * LINE
            self.known[id] = Variable(type, flag, data)
        if self.known[id].type != type:
            raise ModelError(f"{node.type}: variable {id!r} is {self.known[id].type}, got {type}")
        return self.known[id]


def flag_of(name: str) -> Buffer:
    return dense(name, 1, dtype=DType.I64)


def read(
    out: Buffer, state: Buffer, flag: Buffer, initial: Input | None, axes: tuple[Var, ...], at: tuple[Expr, ...]
) -> Definition:
    """The variable's value: what was assigned, else the initial value, else zeros."""
    kept = Load(state, at)
    first: Expr = initial(*at) if initial is not None else Const(0.0 if kept.dtype.is_float else 0, kept.dtype)
    return Definition(out, axes, select(prim("ne", Load(flag, (Const(0),)), 0), kept, first), at)


def write(state: Buffer, flag: Buffer, source: Buffer, axes: tuple[Var, ...], at: tuple[Expr, ...]) -> tuple[Stmt, ...]:
    """Set the variable from a value in memory, and its flag."""
    body: tuple[Stmt, ...] = (Store(state, at, Load(source, at)),)
    for axis in reversed(axes):
        body = (For(axis, body),)
    return (*body, Store(flag, (Const(0),), Const(1)))
