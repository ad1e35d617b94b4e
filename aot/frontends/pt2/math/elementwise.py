"""Elementwise functions of one tensor."""

from __future__ import annotations

import math

from aot.frontends.conversion.table import renames
from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.opset.elementwise.unary import Rounding
from aot.runtime.abi import DType

KEEPING = {"abs": "Abs", "neg": "Negative", "sign": "Sign", "sgn": "Sign"}  # integers stay integers
ROUNDING = {"floor": "Floor", "ceil": "Ceiling"}
REAL = renames(
    """
    acos=Acos acosh=Acosh asin=Asin asinh=Asinh atan=Atan atanh=Atanh cos=Cos cosh=Cosh erf=Erf erfinv=ErfInv
    exp=Exp log=Log sigmoid=Sigmoid sin=Sin sinh=Sinh sqrt=Sqrt tan=Tan tanh=Tanh
    """
)
AS_TF = {"expm1": "Expm1", "log1p": "Log1p", "erfc": "Erfc"}
BASES = {"log2": 2.0, "log10": 10.0}
TESTS = {"isnan": "IsNaN", "isinf": "IsInf", "isfinite": "IsFinite"}


def _name(node: AtenNode) -> str:
    return node.kind.partition(".")[0].removeprefix("special_")


@aten(*(f"{name}.default" for name in KEEPING))
def keeping(node: AtenNode, x: OutPort) -> OutPort:
    """The sign of NaN is 0."""
    if x.type.dtype is DType.BOOL:
        return x
    result = getattr(node.build, KEEPING[_name(node)])(x)
    if KEEPING[_name(node)] != "Sign" or not x.type.dtype.is_float:
        return result
    return node.build.Select(node.build.IsNaN(x), node.like(0, x), result)


@aten(*(f"{name}.default" for name in ROUNDING))
def rounding(node: AtenNode, x: OutPort) -> OutPort:
    return getattr(node.build, ROUNDING[_name(node)])(x) if x.type.dtype.is_float else x


@aten(*(f"{name}.default" for name in REAL), "special_erfinv.default", "special_erf.default")
def real(node: AtenNode, x: OutPort) -> OutPort:
    return getattr(node.build, REAL[_name(node)])(node.real(x))


@aten(*(f"{name}.default" for name in AS_TF), "special_expm1.default", "special_log1p.default", "special_erfc.default")
def as_tf(node: AtenNode, x: OutPort) -> OutPort:
    return node.tf(AS_TF[_name(node)], node.real(x))


@aten(*(f"{name}.default" for name in BASES))
def log_of_base(node: AtenNode, x: OutPort) -> OutPort:
    x = node.real(x)
    return node.build.Multiply(node.build.Log(x), node.like(1 / math.log(BASES[_name(node)]), x))


@aten("exp2.default", "special_exp2.default")
def exp2(node: AtenNode, x: OutPort) -> OutPort:
    x = node.real(x)
    return node.build.Power(node.like(2, x), x)


@aten("reciprocal.default")
def reciprocal(node: AtenNode, x: OutPort) -> OutPort:
    x = node.real(x)
    return node.build.Divide(node.like(1, x), x)


@aten("rsqrt.default")
def rsqrt(node: AtenNode, x: OutPort) -> OutPort:
    x = node.real(x)
    return node.build.Divide(node.like(1, x), node.build.Sqrt(x))


@aten("square.default")
def square(node: AtenNode, x: OutPort) -> OutPort:
    return x if x.type.dtype is DType.BOOL else node.build.Multiply(x, x)


@aten("round.default", "round.decimals")
def round_(node: AtenNode, x: OutPort, decimals: int = 0) -> OutPort:
    """The nearest number with that many decimals; halves go to even ones."""
    if not x.type.dtype.is_float:
        return x
    build, scale = node.build, node.like(10.0 ** abs(decimals), x)
    if not decimals:
        return build.Round(x, mode=Rounding.HALF_TO_EVEN)
    into, back = (build.Multiply, build.Divide) if decimals > 0 else (build.Divide, build.Multiply)
    return back(build.Round(into(x, scale), mode=Rounding.HALF_TO_EVEN), scale)


@aten("trunc.default", "fix.default")
def trunc(node: AtenNode, x: OutPort) -> OutPort:
    build = node.build
    if not x.type.dtype.is_float:
        return x
    return build.Select(build.Less(x, node.like(0, x)), build.Ceiling(x), build.Floor(x))


@aten("frac.default")
def frac(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.Subtract(x, trunc(node, x))


@aten(*(f"{name}.default" for name in TESTS))
def tested(node: AtenNode, x: OutPort) -> OutPort:
    return getattr(node.build, TESTS[_name(node)])(node.real(x))


@aten("isposinf.default", "isneginf.default")
def infinite(node: AtenNode, x: OutPort) -> OutPort:
    above = "pos" in node.kind
    return node.build.IsInf(node.real(x), detect_positive=above, detect_negative=not above)


@aten("signbit.default")
def signbit(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.Less(x, node.like(0, x))


@aten("logit.default", "special_logit.default")
def logit(node: AtenNode, x: OutPort, eps: float | None = None) -> OutPort:
    build, x = node.build, node.real(x)
    if eps is not None:
        x = build.Maximum(build.Minimum(x, node.like(1.0 - eps, x)), node.like(eps, x))
    return build.Log(build.Divide(x, build.Subtract(node.like(1, x), x)))


@aten("sinc.default", "special_sinc.default")
def sinc(node: AtenNode, x: OutPort) -> OutPort:
    build, x = node.build, node.real(x)
    angle = build.Multiply(x, node.like(math.pi, x))
    return build.Select(build.Equal(x, node.like(0, x)), node.like(1, x), build.Divide(build.Sin(angle), angle))


@aten("deg2rad.default", "rad2deg.default")
def angle(node: AtenNode, x: OutPort) -> OutPort:
    x = node.real(x)
    factor = math.pi / 180 if node.kind.startswith("deg") else 180 / math.pi
    return node.build.Multiply(x, node.like(factor, x))


@aten("nan_to_num.default")
def nan_to_num(
    node: AtenNode, x: OutPort, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> OutPort:
    """NaN and infinities replaced; without numbers, by 0 and the ends of the type."""
    build, dtype = node.build, x.type.dtype
    if not dtype.is_float:
        return x
    most = {DType.F16: 65504.0, DType.BF16: 3.3895313892515355e38, DType.F64: 1.7976931348623157e308}
    end = most.get(dtype, 3.4028234663852886e38)
    x = build.Select(build.IsNaN(x), node.like(nan or 0.0, x), x)
    above = build.IsInf(x, detect_positive=True, detect_negative=False)
    x = build.Select(above, node.like(end if posinf is None else posinf, x), x)
    below = build.IsInf(x, detect_positive=False, detect_negative=True)
    return build.Select(below, node.like(-end if neginf is None else neginf, x), x)


@aten("positive.default", "conj.default", "resolve_conj.default", "resolve_neg.default", "_conj.default")
def positive(node: AtenNode, x: OutPort) -> OutPort:
    return x


@aten("clamp.default", "clamp.Tensor", "clip.default", "clip.Tensor")
def clamp(
    node: AtenNode, x: OutPort, min: OutPort | Number | None = None, max: OutPort | Number | None = None
) -> OutPort:
    """The upper bound wins."""
    low, high = min, max
    dtype = node.dtype()
    x = node.cast(x, dtype)
    if isinstance(low, float | int) and isinstance(high, float | int) and dtype.is_float and low <= high:
        return node.build.Clamp(x, min=float(low), max=float(high))
    above, below = ("LogicalOr", "LogicalAnd") if dtype is DType.BOOL else ("Maximum", "Minimum")
    if low is not None:
        x = getattr(node.build, above)(x, node.port(low, dtype))
    return x if high is None else getattr(node.build, below)(x, node.port(high, dtype))


@aten("clamp_min.default", "clamp_min.Tensor", "clamp_max.default", "clamp_max.Tensor")
def clamp_one(
    node: AtenNode, x: OutPort, min: OutPort | Number | None = None, max: OutPort | Number | None = None
) -> OutPort:
    return clamp(node, x, min, max)
