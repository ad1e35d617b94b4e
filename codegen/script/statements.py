"""Statements under construction, with unique names for variables and buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Alloc, Buffer, Expr, Operand, Space, Stmt, Store, Var, as_expr, cast, dense
from aot.codegen.script.declarations import Cell
from aot.runtime.abi import DType

Item = Stmt | Callable[[tuple[Stmt, ...]], Stmt]


@dataclass
class Statements:
    """Statements under construction; a Let or an Alloc takes the rest of its block as body."""

    blocks: list[list[Item]] = field(default_factory=lambda: [list[Item]()])
    used: dict[str, int] = field(default_factory=dict[str, int])
    in_lanes: set[Var] = field(default_factory=set[Var])  # variables that differ between the lanes of a loop
    sizes: frozenset[str] = frozenset()  # names of dynamic sizes: a variable of the script must have another name

    def emit(self, item: Item) -> None:
        self.blocks[-1].append(item)

    def close(self, items: list[Item]) -> tuple[Stmt, ...]:
        body: tuple[Stmt, ...] = ()
        for item in reversed(items):
            body = (item(body),) if callable(item) else (item, *body)
        return body

    def name(self, preferred: str) -> str:
        """Return a unique name, so that a call inlined into a loop may use the loop's names."""
        while True:
            count = self.used.get(preferred, 0)
            self.used[preferred] = count + 1
            if (name := f"{preferred}.{count}" if count else preferred) not in self.sizes:
                return name

    def cell(self, name: str, dtype: DType, value: Operand) -> Cell:
        buffer = dense(self.name(name), space=Space.REGISTERS, dtype=dtype)
        self.emit(lambda body: Alloc(buffer, body))
        self.store(buffer, (), value)
        return Cell(buffer)

    def store(self, buffer: Buffer, index: tuple[Expr, ...], value: Operand) -> None:
        self.emit(Store(buffer, index, cast(as_expr(value, buffer.dtype.compute), buffer.dtype)))
