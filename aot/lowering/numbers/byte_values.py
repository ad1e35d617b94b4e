"""Values of an expression for all 256 values of a byte in it, with NumPy.

Each operation is rounded as its type says. Exponentials and their like are computed in f64 first, one number after
another: results depend neither on NumPy's vector code nor on the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aot.codegen.ir.loops import Const, Expr, Prim
from aot.ir.types import numpy_dtype
from aot.runtime.abi import DType

Numbers = NDArray[Any]
Rule = Callable[..., Numbers]
BYTES = 256  # values of a byte
LARGEST_POWER = 709.78  # e^x is finite in f64 up to here
LARGEST_EXACT = 32  # bits of integers whose bounds f64 holds


def _one_by_one(fn: Callable[[float], float]) -> Rule:
    def apply(x: Numbers) -> Numbers:
        return np.array([math.nan if math.isnan(v) else fn(v) for v in x.tolist()]).astype(x.dtype)

    return apply


def _exp(x: float) -> float:
    return math.exp(x) if x < LARGEST_POWER else math.inf


ANY: dict[str, Rule] = {  # rules for floats and integers
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "not": np.invert,
    "select": np.where,
}
FLOATS: dict[str, Rule] = ANY | {
    "div": np.true_divide,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_even": np.rint,
    "exp": _one_by_one(_exp),
    "exp_normal": _one_by_one(_exp),
    "tanh": _one_by_one(math.tanh),
    "erf": _one_by_one(math.erf),
}


def rule_of(e: Prim) -> Rule | None:
    """Return the function that computes a primitive of arrays; None for one without a rule."""
    if e.fn == "cast":
        exact = e.dtype.is_float or e.dtype.bits <= LARGEST_EXACT or not e.args[0].dtype.is_float
        return partial(_converted, numpy_dtype(e.dtype)) if exact else None
    return (FLOATS if e.args[-1].dtype.is_float else ANY).get(e.fn)


def values_of(e: Expr, byte: Expr) -> Numbers:
    """Return the values of `e` for each value of `byte`, by its bits; all else in `e` is constants and has a rule."""
    all_bytes = np.arange(BYTES, dtype=np.uint8).view(numpy_dtype(byte.dtype))
    with np.errstate(all="ignore"):
        return np.broadcast_to(_evaluated(e, {byte: all_bytes}), BYTES)


def _evaluated(e: Expr, known: dict[Expr, Numbers]) -> Numbers:
    if e not in known:
        assert isinstance(e, Const | Prim)
        if isinstance(e, Const):
            known[e] = np.full(BYTES, e.value).astype(numpy_dtype(e.dtype))
        else:
            rule = rule_of(e)
            assert rule is not None
            known[e] = rule(*(_evaluated(a, known) for a in e.args))
    return known[e]


def _converted(dtype: np.dtype[Any], x: Numbers) -> Numbers:
    """Convert as `cast` does: floats to integers truncate and saturate, NaN gives 0."""
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    limits = np.iinfo(str(dtype))
    whole = np.trunc(np.where(np.isnan(x), 0, x).astype("f8"))
    return np.clip(whole, limits.min, limits.max).astype(dtype)


def is_byte(dtype: DType) -> bool:
    """True for u8 and i8."""
    return dtype in (DType.U8, DType.I8)
