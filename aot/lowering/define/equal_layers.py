"""Definitions of equal layers: one is made and proved, and the others differ in the buffers that they access.

relu1[i, j] = max(fc1[i, j], 0)   ->   relu2[i, j] = max(fc2[i, j], 0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

import numpy as np

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Buffer, Expr, Load
from aot.ir.op import ComputeOp
from aot.ir.operand import Input
from aot.lowering.define.tidy import is_empty
from aot.lowering.ir.proof import is_plainly_inside
from aot.lowering.ir.steps import Value

MAX_NUMBERS = 8  # of a constant that are part of a form
Form = tuple[object, ...]
_all_but_name = attrgetter(*(name for name in Buffer.__match_args__ if name != "name"))


class Watched(Input):
    """An input that notes whether an operation asks for its value: its definition then is not that of others."""

    asked = False

    def __getattribute__(self, name: str) -> object:
        if name == "value":
            object.__setattr__(self, "asked", True)
        return super().__getattribute__(name)


class EqualLayers:
    """The definitions of operations by their forms; None where they depend on more than that."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values
        self._known: dict[Form, tuple[Definition, list[Buffer]] | None] = {}

    def form_of(self, op: ComputeOp, inputs: Sequence[Input | None], out: Buffer) -> Form:
        """Return the form of a layer: operation, types, which buffers are one, numbers of small constants."""
        names = [x.buffer.name for x in inputs if x is not None]
        alike = tuple(map(names.index, names))
        types = tuple(x and (x.type, _all_but_name(x.buffer), self._numbers(x)) for x in inputs)
        return type(op), repr(op), _all_but_name(out), types, alike  # as text 0.0 differs from -0.0

    def _numbers(self, x: Input) -> bytes | None:
        """Return the numbers of a small constant, such as axes, or what is inlined; None for other inputs."""
        value = self._values.get(x.buffer.name)
        data = None if value is None else value.data
        return data.tobytes() if isinstance(data, np.ndarray) and data.size <= MAX_NUMBERS else None

    def definition(self, form: Form, inputs: Sequence[Input | None], out: Buffer) -> Definition | None:
        """Return the definition of a layer of a form that is known."""
        known = self._known.get(form)
        if known is None:
            return None
        d, buffers = known
        own = {b.name: x.buffer for b, x in zip(buffers, (x for x in inputs if x is not None), strict=True)}

        def change(e: Expr) -> Expr | None:
            return Load(own[e.buffer.name], e.index) if isinstance(e, Load) and e.buffer.name in own else None

        return Definition(out, d.axes, rewrite(d.value, change), d.index)

    def watched(self, form: Form | None, inputs: Sequence[Input | None]) -> list[Input | None]:
        """Return the inputs with which the definition of a layer is made; those of a new form are watched."""
        if form is None or form in self._known:
            return [*inputs]
        return [x if x is None or self._numbers(x) is not None else Watched(x.buffer, x.type, x.value) for x in inputs]

    def add(self, form: Form | None, inputs: Sequence[Input | None], d: Definition) -> None:
        """Keep a definition that was made with `watched` inputs, if it is that of all layers of its form."""
        if form is not None and form not in self._known:
            asked = any(isinstance(x, Watched) and x.asked for x in inputs)
            whole = not asked and not is_empty(d) and is_plainly_inside(d)
            self._known[form] = (d, [x.buffer for x in inputs if x is not None]) if whole else None
