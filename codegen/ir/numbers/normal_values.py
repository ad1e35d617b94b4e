"""Values that are no denormal numbers, in kernels with arithmetic that flushes these to zero.

VCVTNEPS2BF16 takes denormal numbers for zero. Results of arithmetic are none where the processor flushes them; what is
loaded and stored without arithmetic may be one.

y[i] = bf16(x[i] * 2 + b[i])        normal: the result of a multiply-add
y[i] = bf16(max(x[i], 0))           unknown: x[i] itself may be a denormal number
"""

from __future__ import annotations

from aot.codegen.ir.loops import Alloc, Const, Expr, Load, Prim, Space, Stmt, Store
from aot.codegen.ir.primitives import SHORT_FUNCTIONS
from aot.codegen.ir.traverse import statements
from aot.runtime.abi import DType

MIN_NORMAL = 2.0**-126  # the least normal f32
ROUNDED_FNS = frozenset({"add", "sub", "mul", "div", "fma"})
NORMAL_FNS = SHORT_FUNCTIONS | {
    "exp",
    "exp_normal",
    "erf",
    "tanh",
}  # functions whose result an arithmetic operation computes
CHOOSING_FNS = {"max": 0, "min": 0, "neg": 0, "abs": 0, "select": 1, "within": 2}  # the first operand that is chosen


def normal_buffers(stmts: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the names of buffers of the kernel's own that never hold a denormal number.

    Tiles that are stored hold none: their arithmetic takes denormal numbers for zero.
    """
    known = list(statements(stmts))
    stores = [s for s in known if isinstance(s, Store)]
    result = frozenset(s.buffer.name for s in known if isinstance(s, Alloc))
    while True:
        wrong = {s.buffer.name for s in stores if s.accumulate != "add" and not is_normal(s.value, result)}
        if wrong.isdisjoint(result):
            return result
        result -= wrong


def is_normal(e: Expr, buffers: frozenset[str]) -> bool:
    """True if a value is no denormal number, where `buffers` hold none and arithmetic flushes them."""
    match e:
        case Const():
            return not e.dtype.is_float or not 0 < abs(e.value) < MIN_NORMAL
        case Load(buffer, _):
            return buffer.name in buffers or not buffer.dtype.is_float
        case Prim("cast", (x,)):
            return not x.dtype.is_float or is_normal(x, buffers)
        case Prim(fn, args, DType.F32) if fn in CHOOSING_FNS:
            return all(is_normal(x, buffers) for x in args[CHOOSING_FNS[fn] :] if x.dtype.is_float)
        case Prim(fn, _, DType.F32) if fn in NORMAL_FNS:
            return True
        case Prim(fn, args, DType.F32) if fn in ROUNDED_FNS:
            return not _may_vanish(e) or all(is_normal(x, buffers) for x in args)
        case _:
            return False


def _may_vanish(e: Prim) -> bool:
    """True if the emitter may return an operand instead of arithmetic: a factor of 0 or 1, or a term of 0."""
    factors = (x for a in e.args if isinstance(a, Prim) and a.fn == "mul" for x in a.args)
    return any(
        (isinstance(x, Load) and x.buffer.space is Space.TABLE) or (isinstance(x, Const) and abs(x.value) in (0, 1))
        for x in (*e.args, *factors)
    )
