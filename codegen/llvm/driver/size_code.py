"""Sizes that depend on symbols, as LLVM integer code and as text.

4 * ((n + 3) // 4)   ->   %s1 = add i64 %n, 3 ...
"""

from __future__ import annotations

from collections.abc import Mapping

from aot.codegen.ir.loops import Const, Expr, Prim, Size, Var
from aot.codegen.ir.primitives import COMPARISONS
from aot.codegen.ir.printer import INFIX
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

_BITWISE = ("and", "or", "xor")
_COMPARE = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_INFIX = {fn: sign for fn, sign in INFIX.items() if fn != "div"} | {"and": "&", "or": "|"}


class SizeCode:
    """Appends the code of sizes to `lines`; `values` has the operand of each symbol by name, and more may be added.

    Numbers wrap on overflow: a size may come from data, and a program checks it before it is used.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self.values = dict(values)
        self._made: dict[Expr, str] = {}

    def operand(self, size: Size) -> str:
        """Return an i64 operand (i1 for comparisons) with the value of `size`."""
        match size:
            case int():
                return str(size)
            case Const(value):
                return str(int(value))
            case Var(name):
                if name not in self.values:
                    raise InternalError(f"size: every variable is a symbol of the program, got {name!r}")
                return self.values[name]
            case Prim(fn, args):
                if size not in self._made:
                    self._made[size] = self._prim(fn, args)
                return self._made[size]
            case _:
                raise InternalError(f"size: made of symbols and integer operations, got {type(size).__name__}")

    def truth(self, size: Size) -> str:
        """Return an i1 operand: true if `size` is true, or not 0."""
        value = self.operand(size)
        return value if _type(size) == "i1" else self.add(f"icmp ne i64 {value}, 0")

    def change(self, name: str, value: str) -> None:
        """Give a symbol another value from here on."""
        self.values[name] = value
        self._made = {}

    def add(self, text: str) -> str:
        name = f"%s{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _prim(self, fn: str, args: tuple[Expr, ...]) -> str:
        if fn == "select":
            condition = self.truth(args[0])
            a, b = self.operand(args[1]), self.operand(args[2])
            return self.add(f"select i1 {condition}, {_type(args[1])} {a}, {_type(args[1])} {b}")
        operands = [self.operand(a) for a in args]
        match fn, operands:
            case (("add" | "sub" | "mul"), [a, b]):
                return self.arithmetic(fn, a, b)
            case _, [a, b] if fn in _BITWISE:
                return self.add(f"{fn} {_type(args[0])} {a}, {b}")
            case (("min" | "max"), [a, b]):
                return self.add(f"call i64 @llvm.s{fn}.i64(i64 {a}, i64 {b})")
            case "abs", [a]:
                return self.add(f"call i64 @llvm.smax.i64(i64 {a}, i64 {self.add(f'sub i64 0, {a}')})")
            case "neg", [a]:
                return self.add(f"sub i64 0, {a}")
            case "not", [a]:
                return self.add(f"xor {_type(args[0])} {a}, -1")
            case (("div" | "rem" | "floordiv" | "mod"), [a, b]):
                return self._division(fn, a, b)
            case "cast", [a]:
                return self.add(f"zext i1 {a} to i64") if _type(args[0]) == "i1" else a
            case _ if fn in COMPARISONS:
                return self.add(f"icmp {_COMPARE[fn]} {_type(args[0])} {operands[0]}, {operands[1]}")
            case _:
                raise InternalError(f"size: made of symbols and integer operations, got {fn}")

    def arithmetic(self, fn: str, a: str, b: str) -> str:
        return self.add(f"{fn} i64 {a}, {b}")

    def _division(self, fn: str, a: str, b: str) -> str:
        """x / 0 = 0; floordiv and mod round towards minus infinity, the remainder has the divisor's sign."""
        if b.isdigit() and b != "0":
            return self._divided(fn, a, b)
        zero = self.add(f"icmp eq i64 {b}, 0")
        negative = self.add(f"icmp eq i64 {b}, -1")  # x / -1 is -x / 1: the least number would trap
        special = self.add(f"or i1 {zero}, {negative}")
        divisor = self.add(f"select i1 {special}, i64 1, i64 {b}")
        negated = self.add(f"sub i64 0, {a}")
        dividend = self.add(f"select i1 {negative}, i64 {negated}, i64 {a}")
        quotient = self.add(f"sdiv i64 {dividend}, {divisor}")
        rest = self.add(f"srem i64 {dividend}, {divisor}")
        if fn in ("floordiv", "mod"):
            signs = self.add(f"xor i64 {rest}, {divisor}")
            differ = self.add(f"icmp slt i64 {signs}, 0")
            uneven = self.add(f"icmp ne i64 {rest}, 0")
            below = self.add(f"and i1 {differ}, {uneven}")
            one = self.add(f"zext i1 {below} to i64")
            lower = self.add(f"sub i64 {quotient}, {one}")
            shift = self.add(f"select i1 {below}, i64 {divisor}, i64 0")
            upper = self.add(f"add i64 {rest}, {shift}")
            quotient, rest = lower, upper
        result = quotient if fn in ("div", "floordiv") else rest
        return self.add(f"select i1 {zero}, i64 0, i64 {result}")

    def _divided(self, fn: str, a: str, b: str) -> str:
        """Divide by a number above 0; return the quotient, or the remainder."""
        if fn == "div":
            return self.add(f"sdiv i64 {a}, {b}")
        rest = self.add(f"srem i64 {a}, {b}")
        if fn == "rem":
            return rest
        below = self.add(f"icmp slt i64 {rest}, 0")
        if fn == "mod":
            return self.add(f"add i64 {rest}, {self.add(f'select i1 {below}, i64 {b}, i64 0')}")
        return self.add(f"add i64 {self.add(f'sdiv i64 {a}, {b}')}, {self.add(f'sext i1 {below} to i64')}")


class CheckedSizeCode(SizeCode):
    """SizeCode with overflow checks; `fits` is an i1: no operation has overflowed since `watch`."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.fits = "true"

    def watch(self) -> None:
        self.fits = "true"
        self._made = {}

    def arithmetic(self, fn: str, a: str, b: str) -> str:
        pair = self.add(f"call {{ i64, i1 }} @llvm.s{fn}.with.overflow.i64(i64 {a}, i64 {b})")
        over = self.add(f"extractvalue {{ i64, i1 }} {pair}, 1")
        within = self.add(f"xor i1 {over}, true")
        self.fits = self.add(f"and i1 {self.fits}, {within}")
        return self.add(f"extractvalue {{ i64, i1 }} {pair}, 0")


def _type(size: Size) -> str:
    return "i1" if isinstance(size, Expr) and size.dtype is DType.BOOL else "i64"


def size_text(size: Size) -> str:
    """Return `size` as readable text: `(n + 3) // 4`."""
    match size:
        case int():
            return str(size)
        case Const(value):
            return str(int(value))
        case Var(name):
            return name
        case Prim(fn, (a, b)) if fn in _INFIX:
            return f"{_operand_text(a)} {_INFIX[fn]} {_operand_text(b)}"
        case Prim(fn, args):
            return f"{fn}({', '.join(map(size_text, args))})"
        case _:
            raise InternalError(f"size: made of symbols and integer operations, got {type(size).__name__}")


def _operand_text(size: Size) -> str:
    text = size_text(size)
    return f"({text})" if isinstance(size, Prim) and size.fn in _INFIX else text
