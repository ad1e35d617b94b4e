"""Expressions -> values.

Rules, each in one place:
  * inside `within` no address outside is read: the address of zeros replaces it                         `within`
  * a product with a structural zero, or with one, costs nothing                                         `fma`
  * of a * b - c * d the first product is fused on all machines
  * products and sums of quantised numbers are computed as they are written: no multiply-adds            `quantized`
"""

from __future__ import annotations

from aot.codegen.ir.index import Affine, decide, is_index, normal
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Var
from aot.codegen.ir.numbers.clamps import clamp_of, rounded_of, without_inner_bounds
from aot.codegen.llvm.emit.address import reads_memory
from aot.codegen.llvm.emit.arithmetic.convert import NO_NAMES, bits, cast, clamped, constant, rounded
from aot.codegen.llvm.emit.arithmetic.quotients import reciprocal
from aot.codegen.llvm.emit.arithmetic.scalar import SCALAR
from aot.codegen.llvm.emit.constant_lanes import LANES
from aot.codegen.llvm.emit.function_text import Function, Value, constants, is_constant, lanes_of, number, passage
from aot.codegen.llvm.emit.lane_index import NARROW, fits
from aot.codegen.llvm.emit.memory import Memory
from aot.codegen.llvm.emit.replaced import replaced
from aot.codegen.llvm.mathlib.functions import MATHLIB, template
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

PRODUCTS = frozenset({"fma", "mul", "exact_mul"})
EXACT = {"add": "exact_add", "sub": "exact_sub", "mul": "exact_mul"}
ZERO, ONE, MINUS_ONE = "0x0000000000000000", "0x3FF0000000000000", "0xBFF0000000000000"


class Values(Memory):
    """Emits expressions at the current place of a function."""

    def expr(self, expr: Expr) -> Value:
        """Return the value of an expression; equal sub-expressions are emitted once per statement."""
        if self.at.places is not None and isinstance(expr, Load):
            steps = self.at.places.get((id(expr.buffer), id(expr.index)))  # None: a parameter of a function
            a = None if steps is None else steps.at(self.at.indices)
            if a is not None and a.stride in (0, 1):
                return self.read(a, self.width if a.stride else 1)  # which knows what was read before
        if isinstance(expr, Const):
            return constant(expr.value, expr.dtype)
        value = self.behind(expr, self.memo)
        if value is None:
            value = self.memo[expr, self.at.guard] = self._expr(expr)
        return value

    def _expr(self, expr: Expr) -> Value:
        if isinstance(expr, Load):
            return self.load(expr)
        if isinstance(expr, Prim):
            return self.index(expr) if expr.dtype is DType.I64 and is_index(expr) else self.primitive(expr)
        if isinstance(expr, Var):
            return self.index(expr)
        raise InternalError("emit: a reduction must be turned into loops first")

    def primitive(self, expr: Prim) -> Value:
        fn, args, dtype = expr.fn, expr.args, expr.dtype
        match fn, args:
            case "add" | "sub", _ if dtype.is_float and not self.quantized and (fused := self.fused(expr)) is not None:
                return fused
            case "within", (index, bound, value, *other):
                return self.within(index, bound, value, other[0] if other else Const(0, value.dtype))
            case "select", (condition, yes, no):
                return self.select(condition, yes, no)
            case "cast", (a,) if self.moves(a) and is_index(a) and fits(self.at.normal(a)):
                return cast(self.f, NARROW, dtype.compute, self.numbers(self.at.normal(a), NARROW))
            case "cast", (a,) if (clamp := clamp_of(expr) or clamp_of(a)) is not None:
                value, low, high = clamp
                value = without_inner_bounds(value, low, high)
                if (whole := rounded_of(value)) is not None and low.is_integer() and high.is_integer():
                    bounds, names = (int(low), int(high)), self.abilities.intrinsics.get("round_i32", NO_NAMES)
                    level = rounded(self.f, self.to_round(whole[0]), whole[1], *bounds, self.abilities.rounds, names)
                else:
                    level = clamped(self.f, self.expr(value), low, high)
                return cast(self.f, DType.I32, dtype.compute, level)
            case "cast", (a,):
                return cast(self.f, a.dtype, dtype.compute, self.expr(a))
            case (("even" | "odd" | "word" | "row_words" | "lookup"), (Load() as x, *index)):
                return self.of_place(fn, x, *index)
            case "bits", (a,):
                return bits(self.f, a.dtype, dtype, self.expr(a))
            case _ if dtype is DType.BOOL and (known := decide(expr, self.at.env)) is not None:
                return constant(known, DType.BOOL)
            case _ if (fn, args[0].dtype) in MATHLIB:
                return self.function(fn, args)
            case _:
                operand = self.to_round if fn == "round_even" else self.expr
                exact = self.quantized and dtype.is_float and fn in EXACT
                return self.apply(EXACT[fn] if exact else fn, args[0].dtype, *[operand(a) for a in args])

    def fused(self, expr: Prim) -> Value | None:
        """Emit a sum with a product as a multiply-add, and a difference of two products where LLVM fuses the second."""
        match expr.fn, expr.args:
            case "add", (Prim("mul", (a, b)), c) | (c, Prim("mul", (a, b))):
                return self.fma(expr.dtype, self.expr(a), self.expr(b), self.expr(c))
            case "sub", (Prim("mul", (a, b)), Prim("mul") as c) if self.abilities.fuses_second:
                negative = self.apply("neg", expr.dtype, self.expr(c))
                return self.fma(expr.dtype, self.expr(a), self.expr(b), negative)
            case _:
                return None

    def of_place(self, fn: str, x: Load, *index: Expr) -> Value:
        """Emit a primitive of the place that is loaded instead of the number there."""
        if fn == "lookup":
            return self.byte_of(x.buffer, self.expr(*index))
        if fn == "row_words":
            return self.row_words(x, self.at.normal(*index).const)
        return self.word(x) if fn == "word" else self.word_part(fn == "odd", x)

    def to_round(self, expr: Expr) -> Value:
        """Return the value of an expression that is rounded to a whole number: near zero it need not be exact."""
        match expr:
            case Prim("div", (a, Const(divisor)), DType.F32) if self.f.fused and (inverse := reciprocal(divisor)):
                value = self.expr(a)
                high, low = (number(factor, value.type) for factor in inverse)
                return self.f.intrinsic("fma", value, high, self.f.binary("fmul", value, low))
            case _:
                return self.expr(expr)

    def function(self, fn: str, args: tuple[Expr, ...]) -> Value:
        """Emit a function of `aot.codegen.llvm.mathlib`: its expression, with the arguments for its parameters."""
        params, body = template(fn, args[0].dtype)
        values = [self.expr(a) for a in args]
        key = (fn, *(v.type for v in values))
        if self.calls_functions:
            return self.called(key, params, body, values)
        if (known := self.passages.get(key)) is not None and not any(map(is_constant, values)):
            return known.again(self.f, values)
        block, first, lines = self.f.block, self.f.count, len(self.f.block.lines)
        memo = {(p, self.at.guard): v for p, v in zip(params, values, strict=True)}
        # No factors: the lines are written again with other operands.
        with replaced(self, memo=memo, quantized=False, factors=None):
            result = self.expr(body)
        if (
            self.f.block is block
            and (passed := passage(self.f, first, block.lines[lines:], values, result)) is not None
        ):
            self.passages[key] = passed
        return result

    def called(self, key: tuple[str, ...], params: tuple[Expr, ...], body: Expr, values: list[Value]) -> Value:
        """Call a function of the module, which has the code of `body` once."""
        if (known := self.functions.get(key)) is None:
            f = Function(f"{self.f.name}.{key[0]}.{len(self.functions)}", [], fused=self.f.fused)
            operands = [Value(v.type, f"%a{i}") for i, v in enumerate(values)]
            inner = Values(f, {}, {}, self.abilities)
            inner.memo = {(p, inner.at.guard): v for p, v in zip(params, operands, strict=True)}
            known = self.functions[key] = f.returning(inner.expr(body), operands)
            inner.at.end()
            self.f.declarations |= f.declarations
            self.f.globals += [*f.globals, f.text()]
        type_, name = known
        return self.f.op(type_, f"call {type_} {name}({', '.join(map(str, values))})")

    def index(self, expr: Expr) -> Value:
        """Emit index arithmetic as a number: a vector if it varies by lane."""
        a, lane = self.at.normal(expr), self.at.lane
        if lane is None:
            return self.at.linear(a)
        distances = None if any(map(reads_memory, a.terms)) else self.places(a)
        if distances is None:
            return self.numbers(a)
        first = normal(a.expr(), {lane: Affine({})})
        if not any(distances):
            return self.at.linear(first)
        ramp = constants([str(first.const + p) for p in distances], "i64")
        rest = self.at.linear(Affine(first.terms))
        return self.f.binary("add", self.wide(rest, self.width), ramp) if first.terms else ramp

    def within(self, index: Expr, bound: Expr, value: Expr, other: Expr) -> Value:
        low = decide(Prim("ge", (index, Const(0)), DType.BOOL), self.at.env)
        high = decide(Prim("lt", (index, bound), DType.BOOL), self.at.env)
        if low and high:
            return self.expr(value)
        if low is False or high is False:
            return self.expr(other)
        inside = self.apply("lt", DType.U64, self.expr(index), self.expr(bound))
        outer = self.inside
        self.inside = self.apply("and", DType.BOOL, outer, inside) if outer else inside
        self.outer[self.at.guard] = outer.name if outer else ""
        some = self.expr(value)
        self.inside = outer
        return self.choose(inside, some, self.expr(other))

    def select(self, condition: Expr, yes: Expr, no: Expr) -> Value:
        known = decide(condition, self.at.env)
        if known is not None:
            return self.expr(yes if known else no)
        return self.choose(self.expr(condition), self.expr(yes), self.expr(no))

    def choose(self, condition: Value, yes: Value, no: Value) -> Value:
        """Select one of two values; a scalar condition may select whole vectors."""
        lanes = max(lanes_of(v.type) for v in (condition, yes, no))
        if lanes_of(condition.type) > 1:
            condition = self.wide(condition, lanes)
        return self.f.select(condition, self.wide(yes, lanes), self.wide(no, lanes))

    def apply(self, fn: str, dtype: DType, *args: Value) -> Value:
        """Emit a scalar primitive on operands of type `dtype`."""
        if fn not in SCALAR:
            raise InternalError(f"emit: no rule for {fn} of {dtype.value}")
        lanes = max([lanes_of(a.type) for a in args])
        if fn in PRODUCTS:
            args = (*(self.wide_factor(a, lanes) for a in args[:2]), *args[2:])
        return SCALAR[fn](self.f, dtype, *[self.wide(a, lanes) for a in args])

    def wide_factor(self, v: Value, lanes: int) -> Value:
        """Copy a factor to every lane; a constant is one lane of a vector where an instruction multiplies by that."""
        if self.factors is not None and lanes >= LANES:
            v = self.factors.factor(v, lanes, self.splats)
        return self.wide(v, lanes)

    def half_fma(self, a: Value, b: Value, c: Value) -> Value:
        """Emit a * b + c of numbers that f16 holds, rounded once to f16."""
        lanes = lanes_of(c.type)
        x, w = (self.wide(self.half(factor), lanes) for factor in (a, b))
        return self.f.cast("fpext", self.f.intrinsic("fma", x, w, self.half(c)), "float")

    def fma(self, dtype: DType, a: Value, b: Value, c: Value) -> Value:
        """Emit a * b + c, or less if the factor `a` is the constant 1 or -1, or `c` the constant zero."""
        if c.name == ZERO or (c.name.startswith("splat") and c.name == number(0.0, c.type).name):
            return b if a.name == ONE else self.apply("mul", dtype, a, b)
        if a.name in (ONE, MINUS_ONE):
            return self.apply("add" if a.name == ONE else "sub", dtype, c, b)
        return self.apply("fma", dtype, a, b, c)
