"""Operations element by element: broadcasting, conversion, activations."""

from __future__ import annotations

from aot.ir.op import Op
from aot.opset.elementwise.activation import (
    Approximation,
    Clamp,
    Elu,
    Gelu,
    Gelu_2,
    HardSigmoid,
    HSigmoid,
    HSwish,
    Mish,
    PRelu,
    Relu,
    Selu,
    Sigmoid,
    SoftPlus,
    SoftSign,
    Swish,
)
from aot.opset.elementwise.binary import (
    Add,
    AutoBroadcast,
    Divide,
    FloorMod,
    Maximum,
    Minimum,
    Mod,
    Multiply,
    Power,
    SquaredDifference,
    Subtract,
)
from aot.opset.elementwise.broadcasting import Broadcast, BroadcastMode, Tile
from aot.opset.elementwise.comparison import (
    BitwiseAnd,
    BitwiseLeftShift,
    BitwiseNot,
    BitwiseOr,
    BitwiseRightShift,
    BitwiseXor,
    Equal,
    Greater,
    GreaterEqual,
    IsFinite,
    IsInf,
    IsNaN,
    Less,
    LessEqual,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    LogicalXor,
    NotEqual,
    Select,
    Xor,
)
from aot.opset.elementwise.conversion import Convert, ConvertLike, ConvertPromoteTypes
from aot.opset.elementwise.unary import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceiling,
    Cos,
    Cosh,
    Erf,
    ErfInv,
    Exp,
    Floor,
    Log,
    Negative,
    Round,
    Rounding,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
)
from aot.runtime.abi import DType
from tests.cases import CLOSE, EXACT, LOOSE
from tests.properties.drawing import ANY, FLOATS, INDICES, INTEGERS, NUMBERS, Draw, Trial, listed

ARITHMETIC: tuple[type[Op], ...] = (
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
    Mod,
    FloorMod,
    Power,
    SquaredDifference,
)
COMPARISONS: tuple[type[Op], ...] = (Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual)
LOGIC: tuple[type[Op], ...] = (LogicalAnd, LogicalOr, LogicalXor, Xor)
BITS: tuple[type[Op], ...] = (BitwiseAnd, BitwiseOr, BitwiseXor)
SMOOTH: tuple[type[Op], ...] = (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Erf,
    ErfInv,
    Exp,
    Log,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
)
ROUNDED: tuple[type[Op], ...] = (Abs, Ceiling, Floor, Negative, Sign, Relu)
ACTIVATIONS: tuple[type[Op], ...] = (Gelu_2, HSigmoid, HSwish, Mish, Sigmoid, SoftPlus, SoftSign)


def stretchable(d: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another one."""
    kept = shape[d.integer(0, len(shape)) :] if d.flag() else shape
    return tuple(n if d.integer(0, 3) else 1 for n in kept)


def pair(d: Draw) -> tuple[AutoBroadcast, int, tuple[int, ...], tuple[int, ...]]:
    """Mode, axis, and shapes of two inputs."""
    shape = d.shape()
    mode = d.pick([AutoBroadcast.NUMPY, AutoBroadcast.NUMPY, AutoBroadcast.NONE, AutoBroadcast.PDPD])
    if mode is AutoBroadcast.NUMPY:
        return mode, -1, stretchable(d, shape), stretchable(d, shape)
    if mode is AutoBroadcast.PDPD and shape:
        start = d.integer(0, len(shape) - 1)
        part = shape[start : d.integer(start + 1, len(shape))]
        return mode, start, shape, tuple(n if d.integer(0, 3) else 1 for n in part)
    return AutoBroadcast.NONE, -1, shape, shape


def binary(d: Draw, kinds: tuple[type[Op], ...], types: tuple[DType, ...]) -> Trial:
    mode, start, a, b = pair(d)
    dtype, kind = d.pick(types), d.pick(kinds)
    tolerance = LOOSE if kind is Power else CLOSE
    low = 0.3 if kind is Power and dtype.is_float else -4
    return Trial(kind(mode, start), [d.array(dtype, a, low), d.array(dtype, b)], tolerance=tolerance)  # type: ignore[call-arg]


def arithmetic(d: Draw) -> Trial:
    return binary(d, ARITHMETIC, NUMBERS)


def division(d: Draw) -> Trial:
    mode, start, a, b = pair(d)
    dtype = d.pick(NUMBERS)
    return Trial(Divide(mode, start, d.flag()), [d.array(dtype, a, -100, 100), d.array(dtype, b, 1, 9)])


def comparison(d: Draw) -> Trial:
    return binary(d, COMPARISONS, ANY)


def logic(d: Draw) -> Trial:
    return binary(d, LOGIC, (DType.BOOL,))


def bits(d: Draw) -> Trial:
    return binary(d, BITS, (*INTEGERS, DType.BOOL))


def shifts(d: Draw) -> Trial:
    mode, start, a, b = pair(d)
    dtype = d.pick(INTEGERS)
    op = d.pick([BitwiseLeftShift, BitwiseRightShift])(mode, start)
    return Trial(op, [d.array(dtype, a, -100, 100), d.array(dtype, b, 0, 7)])


def negation(d: Draw) -> Trial:
    if d.flag():
        return Trial(LogicalNot(), [d.array(DType.BOOL, d.shape())])
    return Trial(BitwiseNot(), [d.array(d.pick((*INTEGERS, DType.BOOL)), d.shape(), -100, 100)])


def kinds_of_floats(d: Draw) -> Trial:
    x = d.array(d.pick(FLOATS), d.shape())
    special = d.generator().integers(0, 6, x.shape)
    for k, value in enumerate((float("inf"), float("-inf"), float("nan"))):
        x[special == k] = value
    op = d.pick([IsFinite(), IsNaN(), IsInf(d.flag(), d.flag())])
    return Trial(op, [x])


def smooth(d: Draw) -> Trial:
    kind, dtype = d.pick(SMOOTH), d.pick(FLOATS)
    within = {Acos: (-1, 1), Asin: (-1, 1), Atanh: (-0.99, 0.99), Acosh: (1, 9), ErfInv: (-0.99, 0.99)}
    low, high = within.get(kind, (-4, 4))
    return Trial(kind(), [d.array(dtype, d.shape(), low, high)], tolerance=LOOSE)


def rounding(d: Draw) -> Trial:
    x = d.array(d.pick(NUMBERS), d.shape(), -100, 100)
    if x.dtype.kind in "fV" and d.flag():
        x = (x.astype("f4").round() / 2).astype(x.dtype)
    return Trial(d.pick([Round(d.pick(list(Rounding))), d.pick(ROUNDED)()]), [x], tolerance=EXACT)


def activation(d: Draw) -> Trial:
    kind = d.pick([*ACTIVATIONS, Gelu, Elu])
    if kind is Gelu:
        op: Op = Gelu(d.pick(list(Approximation)))
    else:
        op = Elu(d.pick([0.0, 0.5, 2.0])) if kind is Elu else kind()
    return Trial(op, [d.array(d.pick(FLOATS), d.shape(), -9, 9)], tolerance=LOOSE)


def parametrized(d: Draw) -> Trial:
    dtype, shape = d.pick(FLOATS), d.shape()
    x, one = d.array(dtype, shape, -9, 9), d.array(dtype, d.pick([(), (1,)]), 0.1, 2)
    other = d.array(dtype, one.shape, 0.1, 2)
    fixed = frozenset({1, 2}) if d.flag() else frozenset[int]()
    if d.flag():
        return Trial(Swish(), [x, one.reshape(())] if d.flag() else [x], fixed & {1}, LOOSE)
    return Trial(d.pick([HardSigmoid(), Selu()]), [x, one, other], fixed, LOOSE)


def prelu(d: Draw) -> Trial:
    shape, dtype = d.shape((1, 5)), d.pick(FLOATS)
    channels = shape[1] if len(shape) > 1 else shape[0]
    slope = d.pick([(channels,), (1,), stretchable(d, shape)])
    return Trial(PRelu(), [d.array(dtype, shape), d.array(dtype, slope)])


def clamp(d: Draw) -> Trial:
    low = d.integer(-60, 60) / 10
    op = Clamp(low, low + d.integer(1, 50) / 10)
    return Trial(op, [d.array(d.pick(NUMBERS), d.shape(), -9, 9)])


def select(d: Draw) -> Trial:
    mode, start, a, b = pair(d)
    dtype = d.pick(ANY)
    if mode is AutoBroadcast.PDPD:  # the condition is a run of the dimensions of the first one
        inputs = [d.array(DType.BOOL, b), d.array(dtype, a), d.array(dtype, b)]
        return Trial(Select(mode, start), inputs)
    whole = a if mode is AutoBroadcast.NONE else stretchable(d, a)
    return Trial(Select(mode), [d.array(DType.BOOL, whole), d.array(dtype, a), d.array(dtype, b)])


def convert(d: Draw) -> Trial:
    source, target = d.pick(ANY), d.pick(ANY)
    low = 0 if target in (DType.U8, DType.U16, DType.U32, DType.U64, DType.BOOL) else -100
    return Trial(Convert(target), [d.array(source, d.shape(), low, 100)])


def alike(d: Draw) -> Trial:
    """Conversion to the type of another input, or of both to one that holds them."""
    a, b = d.pick(ANY), d.pick(ANY)
    inputs = [d.array(a, d.shape((0, 3)), 0, 100), d.array(b, d.shape((0, 3)), 0, 100)]
    if d.flag():
        return Trial(ConvertLike(), inputs)
    return Trial(ConvertPromoteTypes(True, d.flag(), d.pick((DType.F32, DType.F64, DType.I64))), inputs)


def broadcast(d: Draw) -> Trial:
    target, dtype, index = d.shape((0, 5), (1, 4)), d.pick(ANY), d.pick(INDICES)
    mode = d.pick(list(BroadcastMode))
    if mode in (BroadcastMode.EXPLICIT, BroadcastMode.NONE):
        kept = tuple(sorted(d.subset(len(target))))
        shape = tuple(target[k] if d.integer(0, 3) else 1 for k in kept)
        lists = [d.array(dtype, shape), listed(index, target), listed(index, kept)]
        return Trial(Broadcast(mode), lists, frozenset({1, 2}))
    start = -1
    if mode is BroadcastMode.PDPD and target:
        start = d.integer(0, len(target) - 1)
        shape = target[start : d.integer(start + 1, len(target))]
    else:
        shape = stretchable(d, target)
        target = stretchable(d, target) if mode is BroadcastMode.BIDIRECTIONAL else target
    return Trial(Broadcast(mode, start), [d.array(dtype, shape), listed(index, target)], frozenset({1}))


def tile(d: Draw) -> Trial:
    shape, times = d.shape((0, 4), (1, 4)), d.shape((0, 4), (0, 3))
    return Trial(Tile(), [d.array(d.pick(ANY), shape), listed(d.pick(INDICES), times)], frozenset({1}))


TRIALS = [
    arithmetic,
    division,
    comparison,
    logic,
    bits,
    shifts,
    negation,
    kinds_of_floats,
    smooth,
    rounding,
    activation,
    parametrized,
    prelu,
    clamp,
    select,
    convert,
    alike,
    broadcast,
    tile,
]
