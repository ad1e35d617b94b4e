"""Emission of each scalar primitive; the same for scalars and vectors. `contract` is the only fast-math flag."""

from __future__ import annotations

from collections.abc import Callable

from aot.codegen.llvm.emit.arithmetic.convert import cast, same
from aot.codegen.llvm.emit.arithmetic.shuffle import halves
from aot.codegen.llvm.emit.function_text import Function, Value, is_constant, number
from aot.runtime.abi import DType

Emit = Callable[..., Value]  # (function, type of the operands, *operands)
NAN = "0x7FF8000000000000"
ORDER = {"lt": ("olt", "lt"), "le": ("ole", "le"), "gt": ("ogt", "gt"), "ge": ("oge", "ge")}


def _arithmetic(float_op: str, int_op: str) -> Emit:
    def emit(f: Function, t: DType, a: Value, b: Value) -> Value:
        return f.binary(f"{float_op} contract" if t.is_float else int_op, a, b)

    return emit


def _exact(op: str) -> Emit:
    """Emit without fast-math flags: range reduction relies on the rounding."""

    def emit(f: Function, t: DType, a: Value, b: Value) -> Value:
        return f.binary(op, a, b)

    return emit


def _comparison(fn: str) -> Emit:
    def emit(f: Function, t: DType, a: Value, b: Value) -> Value:
        if fn in ("eq", "ne"):
            return f.compare(("fcmp oeq" if fn == "eq" else "fcmp une") if t.is_float else f"icmp {fn}", a, b)
        ordered, plain = ORDER[fn]
        return f.compare(f"fcmp {ordered}" if t.is_float else f"icmp {'s' if t.is_signed else 'u'}{plain}", a, b)

    return emit


def _extreme(fn: str) -> Emit:
    """Emit min or max. Floats propagate NaN: comparing one is false, so the operand that may be NaN comes second."""

    def emit(f: Function, t: DType, a: Value, b: Value) -> Value:
        if t is DType.BOOL:
            return f.binary("or" if fn == "max" else "and", a, b)
        if not t.is_float:
            return f.intrinsic(f"{'s' if t.is_signed else 'u'}{fn}", a, b)
        if f.keeps_nan:
            return f.intrinsic(f"{fn}imum", a, b)
        if is_constant(b) and NAN not in b.name:
            a, b = b, a
        selected = f.select(f.compare("fcmp ogt" if fn == "max" else "fcmp olt", a, b), a, b)
        if is_constant(a) and NAN not in a.name:
            return selected
        return f.select(f.compare("fcmp uno", a, a), a, selected)

    return emit


def _larger(f: Function, t: DType, a: Value, b: Value) -> Value:
    return f.intrinsic("maximum", a, b) if f.keeps_nan else f.select(f.compare("fcmp ogt", b, a), b, a)


def _neg(f: Function, t: DType, a: Value) -> Value:
    return f.op(a.type, f"fneg {a}") if t.is_float else f.binary("sub", same(a, 0), a)


def _abs(f: Function, t: DType, a: Value) -> Value:
    if t.is_float:
        return f.intrinsic("fabs", a)
    return f.intrinsic("abs", a, Value("i1", "false")) if t.is_signed else a


def _sign(f: Function, t: DType, a: Value) -> Value:
    if t.is_float:
        zero, one, less = number(0.0, a.type), number(1.0, a.type), number(-1.0, a.type)
        below = f.select(f.compare("fcmp olt", a, zero), less, a)
        return f.select(f.compare("fcmp ogt", a, zero), one, below)
    if not t.is_signed:
        return f.select(f.compare("icmp ne", a, same(a, 0)), same(a, 1), a)
    return f.intrinsic("smax", f.intrinsic("smin", a, same(a, 1)), same(a, -1))


def _safe(f: Function, t: DType, b: Value) -> tuple[Value, Value, Value | None]:
    """Return a divisor that cannot trap, and the conditions that it was zero and that it was -1."""
    zero = f.compare("icmp eq", b, same(b, 0))
    if not t.is_signed:
        return f.select(zero, same(b, 1), b), zero, None
    minus = f.compare("icmp eq", b, same(b, -1))
    return f.select(f.binary("or", zero, minus), same(b, 1), b), zero, minus


def _div(f: Function, t: DType, a: Value, b: Value) -> Value:
    if t.is_float:
        return f.binary("fdiv contract", a, b)
    safe, zero, minus = _safe(f, t, b)
    q = f.binary("sdiv" if t.is_signed else "udiv", a, safe)
    if minus is not None:
        q = f.select(minus, f.binary("sub", same(a, 0), a), q)
    return f.select(zero, same(a, 0), q)


def _rem(f: Function, t: DType, a: Value, b: Value) -> Value:
    """Remainder with the sign of the dividend: `a` minus a multiple of `b`, exact if the quotient is.

    For f32, quotients are exact below 2^53, or 2^29 without fused multiply-adds.
    """
    if not t.is_float:
        return f.binary("srem" if t.is_signed else "urem", a, _safe(f, t, b)[0])
    if t is not DType.F32:
        return _far_remainder(f, a, b)
    # Quotients of less than 2^24 are exact; without fused multiply-adds, their products with `b` need f64.
    q = f.intrinsic("trunc", f.binary("fdiv", a, b))
    small = f.compare("fcmp olt", f.intrinsic("fabs", q), number(2.0**24, q.type))
    finite = f.compare("fcmp olt", f.intrinsic("fabs", b), number(float("inf"), b.type))
    wide_a, wide_b = (f.cast("fpext", x, "double") for x in (a, b))

    def near() -> Value:
        if f.fused:
            return _stepped(f, a, b, _remainder(f, a, b, q))
        return _stepped(
            f, a, b, f.cast("fptrunc", _remainder(f, wide_a, wide_b, f.cast("fpext", q, "double")), "float")
        )

    exact = f.all(f.binary("and", small, finite))
    return f.either(exact, near, lambda: f.cast("fptrunc", _far_remainder(f, wide_a, wide_b), "float"))


def _far_remainder(f: Function, a: Value, b: Value) -> Value:
    """Remainder of numbers that may be infinite, too."""
    rest = _stepped(f, a, b, _remainder(f, a, b, f.intrinsic("trunc", f.binary("fdiv", a, b))))
    infinite = f.compare("fcmp oeq", f.intrinsic("fabs", b), number(float("inf"), b.type))
    finite = f.compare("fcmp olt", f.intrinsic("fabs", a), number(float("inf"), b.type))
    return f.select(f.binary("and", infinite, finite), a, rest)


def _remainder(f: Function, a: Value, b: Value, q: Value) -> Value:
    return f.intrinsic("fmuladd", f.op(q.type, f"fneg {q}"), b, a)


def _stepped(f: Function, a: Value, b: Value, rest: Value) -> Value:
    """Correct a remainder if its quotient was rounded one step too far; 0 gets the sign of the dividend."""
    sign = f.intrinsic("copysign", number(1.0, a.type), a)
    wrong = f.compare("fcmp olt", f.binary("fmul", rest, sign), number(0.0, a.type))
    step = f.intrinsic("copysign", b, a)
    return f.intrinsic("copysign", f.select(wrong, f.binary("fadd", rest, step), rest), a)


def _floordiv(f: Function, t: DType, a: Value, b: Value) -> Value:
    if t.is_float:
        return f.intrinsic("floor", f.binary("fdiv", a, b))
    if not t.is_signed:
        return _div(f, t, a, b)
    q = _div(f, t, a, b)
    rest = f.binary("sub", a, f.binary("mul", q, b))
    opposite = f.compare("icmp slt", f.binary("xor", rest, b), same(a, 0))
    inexact = f.binary("and", f.compare("icmp ne", rest, same(a, 0)), f.compare("icmp ne", b, same(a, 0)))
    return f.select(f.binary("and", opposite, inexact), f.binary("sub", q, same(a, 1)), q)


def _mod(f: Function, t: DType, a: Value, b: Value) -> Value:
    """Remainder with the sign of the divisor."""
    rest = _rem(f, t, a, b)
    if t.is_float:
        zero = number(0.0, a.type)
        opposite = f.binary("xor", f.compare("fcmp olt", rest, zero), f.compare("fcmp olt", b, zero))
        adds_divisor = f.binary("and", opposite, f.compare("fcmp one", rest, zero))
        return f.select(adds_divisor, f.binary("fadd", rest, b), rest)
    if not t.is_signed:
        return rest
    opposite = f.compare("icmp slt", f.binary("xor", rest, b), same(a, 0))
    adds_divisor = f.binary("and", opposite, f.compare("icmp ne", rest, same(a, 0)))
    # x mod 0 = 0: the rest is then 0 already, as it is a rest of division by one.
    return f.select(adds_divisor, f.binary("add", rest, b), rest)


def _shift(right: bool) -> Emit:
    def emit(f: Function, t: DType, a: Value, b: Value) -> Value:
        op = ("ashr" if t.is_signed else "lshr") if right else "shl"
        if op == "ashr":
            return f.binary(op, a, f.intrinsic("umin", b, same(b, t.bits - 1)))
        inside = f.compare("icmp ult", b, same(b, t.bits))
        return f.select(inside, f.binary(op, a, f.select(inside, b, same(b, 0))), same(a, 0))

    return emit


def _fma(f: Function, t: DType, a: Value, b: Value, c: Value) -> Value:
    if not t.is_float:
        return f.binary("add", f.binary("mul", a, b), c)
    return f.intrinsic("fmuladd", a, b, c, flags="contract ")


def _exact_fma(f: Function, t: DType, a: Value, b: Value, c: Value) -> Value:
    return f.intrinsic("fmuladd", a, b, c)


def _unary(name: str) -> Emit:
    def emit(f: Function, t: DType, a: Value) -> Value:
        return f.intrinsic(name, a) if t.is_float else a

    return emit


def _round_away(f: Function, t: DType, a: Value) -> Value:
    if not t.is_float:
        return a
    almost_half = 0.49999997019767761230 if t.bits == 32 else 0.49999999999999994449
    return f.intrinsic("trunc", f.binary("fadd", a, f.intrinsic("copysign", number(almost_half, a.type), a)))


def _not(f: Function, t: DType, a: Value) -> Value:
    return f.binary("xor", a, same(a, 1 if t is DType.BOOL else -1))


def _fixed_product(f: Function, t: DType, x: Value, m: Value, right: Value) -> Value:
    """Emit round_half_away(floor((x m + 2^30) / 2^31) / 2^right) of i32; the product alone is wider."""
    del t
    wide = f.binary("mul", f.cast("sext", x, "i64"), f.cast("sext", m, "i64"))
    high = f.cast("trunc", f.binary("ashr", f.binary("add", wide, same(wide, 1 << 30)), same(wide, 31)), "i32")
    half = f.binary("lshr", f.binary("shl", same(right, 1), right), same(right, 1))
    shifts = f.binary("ashr", f.binary("sub", same(right, 0), right), same(right, 31))  # -1, or 0 for no shift
    below = f.binary("and", f.binary("ashr", high, same(high, 31)), shifts)
    return f.binary("ashr", f.binary("add", f.binary("add", high, half), below), right)


def _centred(f: Function, t: DType, a: Value) -> Value:
    wide = cast(f, t, DType.I32, a)
    return f.binary("sub", wide, same(wide, 128))


def _halves(high: bool) -> Emit:
    def emit(f: Function, t: DType, a: Value, b: Value) -> Value:
        del t
        return halves(f, a, b, high)

    return emit


SCALAR: dict[str, Emit] = {
    "add": _arithmetic("fadd", "add"),
    "sub": _arithmetic("fsub", "sub"),
    "mul": _arithmetic("fmul", "mul"),
    "neg": _neg,
    "abs": _abs,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "larger": _larger,
    "sign": _sign,
    "div": _div,
    "rem": _rem,
    "floordiv": _floordiv,
    "mod": _mod,
    "sqrt": _unary("sqrt"),
    "floor": _unary("floor"),
    "ceil": _unary("ceil"),
    "trunc": _unary("trunc"),
    "round_even": _unary("roundeven"),
    "round_away": _round_away,
    **{fn: _comparison(fn) for fn in ("eq", "ne", "lt", "le", "gt", "ge")},
    "and": _exact("and"),
    "or": _exact("or"),
    "xor": _exact("xor"),
    "not": _not,
    "shl": _shift(False),
    "shr": _shift(True),
    "centred": _centred,
    "low_halves": _halves(False),
    "high_halves": _halves(True),
    "fma": _fma,
    "exact_add": _exact("fadd"),
    "exact_sub": _exact("fsub"),
    "exact_mul": _exact("fmul"),
    "exact_fma": _exact_fma,
    "fixed_product": _fixed_product,
}
