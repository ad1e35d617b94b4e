"""Functions with results rounded to levels of 8 bits: forms of few digits, which need no division.

    u8(min(max(round_even((x / (exp_normal(-x) + 1) + 0.28) / 0.02), 0), 255))
        ->  u8(min(max(round_even(x * sigmoid_level(x) * 50 + 14), 0), 255))

Where the function is of one byte, a table holds its results; here it is of a sum in f32. From the range of the levels
follows that of the function: its form is replaced if no result of it within that range is off by more than
`MAX_ERROR` of a level. Such a result moves to another level only from near the middle of two. A sigmoid in a term of a
sum is replaced, too: it may be twelve times as large as the range before it is off by more.
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Const, Expr, Prim, prim
from aot.codegen.ir.numbers.clamps import clamp_of, may_clamp, rounded_of
from aot.codegen.ir.primitives import SHORT_FUNCTIONS
from aot.codegen.ir.traverse import expressions, rewrite_work
from aot.lowering.context import Context
from aot.lowering.ir.steps import Steps
from aot.lowering.numbers.byte_values import is_byte
from aot.lowering.numbers.precision.short_functions import ERROR, GELU_ERROR, LEVEL_ERROR, short_form
from aot.runtime.abi import DType

MAX_ERROR = 1 / 64  # greatest error, as a part of a level: only results that near to the middle of two can change
SIGMOID = "sigmoid_level"
GELUS = ("gelu_short", "gelu_tanh_short")  # functions whose errors are absolute


@dataclass(frozen=True, slots=True)
class _Line:
    """factor * x + offset, the map from the result of a function to a level."""

    factor: float = 1.0
    offset: float = 0.0

    def then(self, factor: float = 1.0, offset: float = 0.0) -> _Line:
        """Return this line as a function of x, applied to `factor` * x + `offset`."""
        return _Line(self.factor * factor, self.factor * offset + self.offset)

    def of(self, x: Expr) -> Expr:
        """Return the line's value as one multiply-add."""
        return x * Const(self.factor, x.dtype) + Const(self.offset, x.dtype)

    def allows(self, value: Prim, low: float, high: float) -> bool:
        """True if the error of functions of few digits is small for levels from `low` to `high`."""
        ends = max(abs((level - self.offset) / self.factor) for level in (low, high))
        few = value.fn in SHORT_FUNCTIONS and value.fn != SIGMOID
        error = GELU_ERROR if value.fn in GELUS else (ERROR if few else LEVEL_ERROR) * ends
        return error * self.factor <= MAX_ERROR


def shorten_levels(steps: Steps, _context: Context) -> None:
    """Compute functions with few digits where their results become levels."""
    for step in steps.steps:
        step.works = tuple(rewrite_work(w, _level) if any(map(may_clamp, expressions(w))) else w for w in step.works)


def _level(e: Expr) -> Expr | None:
    """Return a level of functions of few digits."""
    if not may_clamp(e):
        return e
    clamp = clamp_of(e) if is_byte(e.dtype) else None
    rounded = rounded_of(clamp[0]) if clamp is not None else None
    if clamp is None or rounded is None:
        return None
    value, line = _line(rounded[0])
    low, high = (bound - rounded[1] for bound in clamp[1:])
    if isinstance(value, Prim) and value.fn == "add":
        shortened: Expr | None = prim("add", *(_sigmoid(x) or x for x in value.args))
    else:
        shortened = _sigmoid(value) or short_form(value)
    if not isinstance(shortened, Prim) or shortened == value or not line.allows(shortened, low, high):
        return None
    return rewrite(e, {rounded[0]: line.of(shortened)})


def _sigmoid(e: Expr) -> Prim | None:
    """Return a sigmoid, or a number times one, with the digits that levels need."""
    form = short_form(e, sigmoid=SIGMOID)
    return (
        form if form is not None and SIGMOID in (form.fn, *(a.fn for a in form.args if isinstance(a, Prim))) else None
    )


def _line(e: Expr) -> tuple[Expr, _Line]:
    """Match `e` as an increasing linear function: return its operand and the line."""
    line = _Line()
    while True:
        match e:
            case Prim("add", (x, Const(by)), DType.F32):
                line, e = line.then(offset=by), x
            case Prim("sub", (x, Const(by)), DType.F32):
                line, e = line.then(offset=-by), x
            case Prim("mul", (x, Const(factor)), DType.F32) if factor > 0:
                line, e = line.then(factor), x
            case Prim("div", (x, Const(divisor)), DType.F32) if divisor > 0:
                line, e = line.then(1 / divisor), x
            case _:
                return e, line
