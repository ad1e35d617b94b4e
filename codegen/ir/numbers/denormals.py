"""Kernels that may flush denormals to zero: x86-64 computes 30 to 390 times as fast without denormals.

A denormal f32 is below 1.2e-38. Flushing it is an error of that size in a kernel that only adds, multiplies,
takes maxima and applies bounded functions. In a logarithm, a quotient or a root the error may be large: kernels with
these keep denormals, unless the operand is bounded away from zero (`x / sqrt(v + 1e-5)`). Kernels that compare or round
keep them, too, except as the epilogue of a product with weights. Kernels that only move data keep all bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import walk
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce
from aot.codegen.ir.numbers.bf16_chains import is_chain_sum
from aot.codegen.ir.numbers.normal_values import MIN_NORMAL
from aot.codegen.ir.primitives import COMPARISONS, SHORT_FUNCTIONS
from aot.codegen.ir.traverse import Work, members
from aot.codegen.target import Target
from aot.runtime.abi import DType

COUNTED_TOGETHER = 1 << 16  # elements that stay in the cache of a core
MIN_SAFE_SUMMAND = 1e-30  # least summand that keeps a sum away from zero; denormals are negligible beside it
TAME_FNS = SHORT_FUNCTIONS | frozenset(
    "add sub mul neg abs min max larger exp exp_normal tanh erf sin cos atan asinh fma within select "
    "cast and or xor not exact_add exact_sub exact_mul exact_fma".split()
)
JUMP_FNS = COMPARISONS | {"sign", "floor", "ceil", "trunc", "round_even", "round_away"}
EXPONENTIALS = frozenset({"exp", "exp_normal", "exp_short"})
DIVIDING_FNS = frozenset({"div", "sqrt", "log"})
FLUSHED_TYPES = (DType.F32, DType.F16, DType.BF16)


def flushes(works: Iterable[Work], target: Target) -> bool:
    """True if a kernel of these works may flush denormals to zero."""
    definitions = [d for w in works for d in members(w)]
    if target.machine.flush is None or not definitions:
        return False
    if any(is_chain_sum(d.reduction) for d in definitions):
        return True  # their order counts denormals as zero
    producers = {d.out.name: d.value for d in definitions}
    prims, sums = list[Prim](), False
    for e in walk(*(e for d in definitions for e in (d.value, *(r.value for r in d.results)))):
        match e:
            case Prim(_, args):
                prims += (e,) if any(a.dtype.is_float for a in args) else ()
            case Load(buffer):
                if not _is_plain(buffer, target):
                    return False
            case Const(value, dtype):
                if dtype.is_float and 0 < abs(value) < MIN_NORMAL:
                    return False
            case Reduce(fn):
                sums = sums or (fn == "add" and e.dtype.is_float)
            case _:
                pass
    if not prims and not sums:
        return False
    allowed = TAME_FNS | JUMP_FNS if any(map(_is_product, definitions)) else TAME_FNS
    return all(p.fn in allowed or (p.fn in DIVIDING_FNS and _is_far(p.args[-1], producers)) for p in prims)


def denormals(data: NDArray[np.generic]) -> int:
    """Count the denormal elements of an f32 array; 0 for other types."""
    if data.dtype != np.float32:
        return 0
    bits = np.ascontiguousarray(data).view(np.uint32).reshape(-1)
    count = 0
    for start in range(0, bits.size, COUNTED_TOGETHER):
        size = bits[start : start + COUNTED_TOGETHER] << 1
        size -= 1  # of zero, to the greatest number
        count += int(np.count_nonzero(size < (1 << 24) - 1))
    return count


def _is_plain(b: Buffer, target: Target) -> bool:
    """True if loads convert the elements of `b` without arithmetic on denormals."""
    if not b.dtype.is_float:
        return b.dtype.bits >= 8
    return b.dtype in FLUSHED_TYPES and (b.dtype is not DType.F16 or target.abilities.converts_half)


def _is_product(d: Definition) -> bool:
    """True for a sum of products of floats: a convolution, a product of matrices."""
    r = d.reduction
    return r is not None and r.fn == "add" and r.dtype.is_float and isinstance(r.body, Prim) and r.body.fn == "mul"


def _is_far(e: Expr, producers: Mapping[str, Expr], depth: int = 4) -> bool:
    """True if a value is known to be bounded away from zero: a constant, a count, a sum of exponentials, x + 1e-5."""
    match e:
        case Const():
            return abs(e.value) >= MIN_SAFE_SUMMAND
        case Load(buffer, _) if buffer.name in producers and depth:
            return _is_far(producers[buffer.name], producers, depth - 1)
        case Prim("cast", (x,), _):
            return not x.dtype.is_float or _is_far(x, producers, depth)
        case Prim("sqrt", (x,), _):
            return _is_far(x, producers, depth)
        case Prim(("add" | "max"), args, _):
            return any(isinstance(a, Const) and a.value >= MIN_SAFE_SUMMAND for a in args)
        case Reduce("add", _, Prim(fn), _) if fn in EXPONENTIALS:
            return True
        case Reduce("add", _, Load(buffer, _), _) if buffer.name in producers:
            return isinstance(producer := producers[buffer.name], Prim) and producer.fn in EXPONENTIALS
        case _:
            return False


__all__ = ["denormals", "flushes"]
