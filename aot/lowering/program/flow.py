"""Control flow between the calls of a program: sizes that are set, jumps over a branch and back to a loop's head.

if v0             loop i in n while v1
  call 0            call 2
else                let h.d0 = h.d0 + 1
  call 1            let i = i + 1
end               end
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Size, Var, as_expr, prim
from aot.codegen.ir.program import Address, Bind, Call, Check, Control, Jump, Label, Let, SizeConstraint
from aot.ir.types import dim_text
from aot.lowering.ir.steps import BranchControl, LoopControl, Step, Steps
from aot.lowering.ir.symbolic_sizes import Sizes
from aot.opset.control.control_flow import UNLIMITED_ITERATIONS
from aot.runtime.abi import DType

Emit = Callable[[Steps], None]
FEW_TURNS = 1 << 20  # iterations of nested loops up to which no cancellation point is needed


@dataclass(slots=True)
class Flow:
    """Control flow between `calls`, recorded as they are added, also as lines of the dump `text`."""

    calls: list[Call]
    text: list[object]
    sizes: Sizes
    control: list[Control] = field(default_factory=list[Control])
    labels: int = 0
    turns: int = 1  # product of the limits of enclosing loops, where static

    def bind(self, symbol: Var, address: Address, dtype: DType) -> None:
        """Read a symbol from memory."""
        self.control.append(Bind(len(self.calls), symbol, address, dtype))
        at = f"%{address.region}{address.index or ''}+{dim_text(address.offset)}"
        self.text.append(f"bind {symbol.name} = {dtype.value} at {at}")

    def check(self, rules: Sequence[SizeConstraint]) -> None:
        for rule in rules:
            self.control.append(Check(len(self.calls), rule))
            self.text.append(f"check {rule.text}")

    def choice(self, step: Step, choice: BranchControl, emit: Emit) -> None:
        """Add a choice between two blocks; `emit` adds the calls of a block."""
        otherwise, end = self._label("else"), self._label("end")
        self.text.append(f"if {dim_text(choice.condition)}: {' + '.join(step.layers)}")
        self._jump(otherwise, prim("eq", as_expr(choice.condition, DType.I64), 0))
        emit(choice.then)
        self._jump(end)
        self.text.append("else")
        self._mark(otherwise)
        emit(choice.other)
        self.text.append("end")
        self._mark(end)

    def cycle(self, step: Step, cycle: LoopControl, emit: Emit) -> None:
        """Add a loop around a block; `emit` adds the calls of the block."""
        head, end = self._label("loop"), self._label("end")
        bound = "" if cycle.limit == UNLIMITED_ITERATIONS else f" in {dim_text(cycle.limit)}"
        going = "" if cycle.going == 1 else f" while {dim_text(cycle.going)}"
        self.sizes.late |= {s: None for s in cycle.start if s not in self.sizes.late}
        self._let(cycle.start)
        self.text.append(f"loop {cycle.counter.name}{bound}{going}: {' + '.join(step.layers)}")
        self._mark(head)
        self._jump(end, prim("ge", cycle.counter, cycle.limit))
        around, limit = self.turns, cycle.limit
        self.turns *= max(limit, 1) if isinstance(limit, int) else 1
        asks = not isinstance(limit, int) or self.turns > FEW_TURNS
        emit(cycle.body)
        self.turns = around
        self._let(cycle.follow)
        self._jump(head, cycle.going, asks)
        self.text.append("end")
        self._mark(end)

    def _label(self, stem: str) -> str:
        self.labels += 1
        return f"{stem}{self.labels}"

    def _mark(self, name: str) -> None:
        self.control.append(Label(len(self.calls), name))

    def _jump(self, to: str, when: Size = 1, asks: bool = False) -> None:
        self.control.append(Jump(len(self.calls), to, when, asks))

    def _let(self, values: dict[Var, Size]) -> None:
        """Set symbols simultaneously."""
        for symbol, size in values.items():
            value = self.sizes.written_out(size)
            self.control.append(Let(len(self.calls), symbol, value))
            self.text.append(f"let {symbol.name} = {dim_text(value)}")
