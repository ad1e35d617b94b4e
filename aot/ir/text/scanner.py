"""Reads tokens, types and dimensions from a text; errors give the position and the expected token."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from aot.codegen.ir.loops import Const, Var, prim
from aot.ir.types import Dim, TensorType
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

WORD = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
INTEGER = re.compile(r"-?\d+")
NUMBER = re.compile(r"-?(?:\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?|inf\b|nan\b)")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
COMPARISONS = {"==": "eq", "!=": "ne", "<=": "le", ">=": "ge", "<": "lt", ">": "gt"}
SUMS = {"+": "add", "-": "sub"}
PRODUCTS = {"//": "floordiv", "*": "mul", "%": "mod"}


class Scanner:
    """A text and a position in it. `symbols`: variables of dimensions by name; new ones are added without bounds."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.symbols: dict[str, Var] = {}

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, pattern: re.Pattern[str]) -> str | None:
        self.skip_space()
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match.group()

    def accept(self, text: str) -> bool:
        self.skip_space()
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def sees(self, text: str) -> bool:
        self.skip_space()
        return self.text.startswith(text, self.at)

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(repr(text))

    def need(self, pattern: re.Pattern[str], what: str) -> str:
        token = self.take(pattern)
        if token is None:
            raise self.error(what)
        return token

    def error(self, expected: str) -> ModelError:
        line = self.text.count("\n", 0, self.at) + 1
        rest = self.text[self.at :].split("\n", 1)[0][:30]
        return ModelError(f"graph text, line {line}: {expected} expected, got {rest!r}")

    def word(self) -> str:
        return self.need(WORD, "a word")

    def integer(self) -> int:
        return int(self.need(INTEGER, "an integer"))

    def string(self) -> str:
        return str(json.loads(self.need(STRING, "a string")))

    def several(self, close: str, item: Callable[[], object]) -> None:
        """Parse `item, item, ... close`."""
        while not self.accept(close):
            item()
            if not self.accept(","):
                self.expect(close)
                return

    def symbol_list(self) -> None:
        """Parse `batch in 1..64, seq in 0..`."""
        while True:
            name = self.word()
            if self.word() != "in":
                raise self.error("'in'")
            low = self.integer()
            self.expect("..")
            high = self.take(re.compile(r"\d+"))
            self.symbols[name] = Var(name, int(high) + 1 if high else None, low)
            if not self.accept(","):
                return

    def type(self) -> TensorType:
        """Parse a tensor type: `f32[batch,3]`, `f32[...]`."""
        word = self.word()
        if word not in set(DType):
            raise self.error(f"an element type instead of {word!r}")
        self.expect("[")
        if self.accept("..."):
            self.expect("]")
            return TensorType(DType(word), None)
        dims: list[Dim] = []
        self.several("]", lambda: dims.append(self.dim()))
        return TensorType(DType(word), tuple(dims))

    def dim(self) -> Dim:
        """Parse a dimension, a sum of products: `batch*2+1`, `(n-1)//2`, `min(n,8)`, `select(n==0,0,m)`."""
        left = self._sum()
        while (fn := self._operator(COMPARISONS)) is not None:
            left = _combine(fn, left, self._sum())
        return left

    def _sum(self) -> Dim:
        left = self._product()
        while (fn := self._operator(SUMS)) is not None:
            left = _combine(fn, left, self._product())
        return left

    def _product(self) -> Dim:
        left = self._factor()
        while (fn := self._operator(PRODUCTS)) is not None:
            left = _combine(fn, left, self._factor())
        return left

    def _operator(self, table: dict[str, str]) -> str | None:
        return next((fn for sign, fn in table.items() if self.accept(sign)), None)

    def _factor(self) -> Dim:
        if self.accept("("):
            inside = self.dim()
            self.expect(")")
            return inside
        number = self.take(INTEGER)
        if number is not None:
            return int(number)
        name = self.word()
        if not self.accept("("):
            return self.symbols.setdefault(name, Var(name))
        args: list[Dim] = []
        self.several(")", lambda: args.append(self.dim()))
        try:
            result = prim(name, *args)
        except ValueError as error:
            raise self.error(f"a function instead of {name!r}") from error
        return int(result.value) if isinstance(result, Const) else result


def _combine(fn: str, left: Dim, right: Dim) -> Dim:
    result = prim(fn, left, right)
    return int(result.value) if isinstance(result, Const) else result
