"""Constant factors as lanes of vectors: where an instruction multiplies by one lane, a register holds four of them.

Written as vectors of equal numbers they would take a register each, or an instruction for each use.
"""

from __future__ import annotations

from collections.abc import Callable

from aot.codegen.llvm.emit.arithmetic.shuffle import shuffle
from aot.codegen.llvm.emit.function_text import Function, Value, is_constant, vector

LANES = 4
TYPE = vector("float", LANES)


class ConstantLanes:
    """Constants of a function in the order of their use. `global_name` makes a constant in memory."""

    def __init__(self, f: Function, global_name: Callable[[str], str]) -> None:
        self._f, self._global_name = f, global_name
        self._names: list[str] = []
        self._vectors: list[Value] = []
        self._globals: list[int] = []  # places in `Function.globals` of the vectors

    def factor(self, v: Value, lanes: int, known: dict[object, Value]) -> Value:
        """Return a vector of a constant f32; any other value as it is. `known`: values of the current block."""
        if v.type != "float" or not is_constant(v):
            return v
        key = ("constant", v.name, lanes)
        if key not in known:
            if v.name not in self._names:
                self._add(v.name)
            group, lane = divmod(self._names.index(v.name), LANES)
            known[key] = shuffle(self._f, self._vectors[group], Value(TYPE, "poison"), [lane] * lanes)
        return known[key]

    def _add(self, name: str) -> None:
        f, entry_block = self._f, self._f.blocks[0]
        if len(self._names) % LANES == 0:
            address = Value("ptr", self._global_name(f"{TYPE} zeroinitializer"))
            self._globals.append(len(f.globals) - 1)
            self._vectors.append(f.op(TYPE, f"load {TYPE}, {address}, align 64", entry_block))
        self._names.append(name)
        own = self._names[len(self._vectors) * LANES - LANES :]
        items = ", ".join(f"float {n}" for n in (*own, *["0.0"] * (LANES - len(own))))
        line = f.globals[self._globals[-1]]
        f.globals[self._globals[-1]] = f"{line.split(TYPE)[0]}{TYPE} <{items}>, align 64"
