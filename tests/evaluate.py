"""Evaluates what `compute` says with NumPy, a whole output at once: an oracle that needs no code generator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from aot.codegen.ir.definition import identity
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Space, Var, dense
from aot.ir.op import ComputeOp
from aot.ir.operand import Input, Operand
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.opset.elementwise.quantization import FixedPointProduct
from aot.runtime.abi import DType

_ERF = np.frompyfunc(math.erf, 1, 1)
FLOAT: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "larger": np.fmax,
    "sign": np.sign,
    "rem": np.fmod,
    "pow": np.power,
    "sqrt": np.sqrt,
    "exp_normal": np.exp,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": lambda x: np.asarray(_ERF(x)).astype(x.dtype),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_even": np.rint,
    "round_away": lambda x: np.copysign(np.floor(np.abs(x.astype("f8")) + 0.5), x).astype(x.dtype),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "select": np.where,
    "fma": lambda a, b, c: a * b + c,
    "exact_add": np.add,
    "exact_sub": np.subtract,
    "exact_mul": np.multiply,
    "atan2": np.arctan2,
}
INTEGER = FLOAT | {
    "div": lambda a, b: np.floor_divide(a - np.fmod(a, b), b),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "fixed_product": FixedPointProduct.rounded,
}
REDUCE = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.logical_and,
    "or": np.logical_or,
}


def computed(op: ComputeOp, operands: list[Operand | None], arrays: list[Array | None], out: TensorType) -> Array:
    """The output of `op`, by its `compute`; None stands for an absent input."""
    memory = {f"x{i}": a for i, a in enumerate(arrays) if a is not None}
    inputs: list[Input | None] = []
    for i, (o, a) in enumerate(zip(operands, arrays, strict=True)):
        if o is None or a is None:
            inputs.append(None)
        else:
            inputs.append(Input(dense(f"x{i}", *a.shape, dtype=o.dtype), TensorType(o.dtype, a.shape), o.value))
    axes = tuple(Var(f"i{d}", n) for d, n in enumerate(out.shape))
    value = op.compute(out, *inputs)(*axes)
    index = np.indices(out.static_shape)
    with np.errstate(all="ignore"):
        found = _Evaluation(memory, dict(zip(axes, index, strict=True))).value(value)
        return np.broadcast_to(converted(found, out.dtype), out.static_shape)


class _Evaluation:
    def __init__(self, memory: dict[str, Array], env: dict[Expr, Array]) -> None:
        self.memory, self.env = memory, env
        self.guards = 0

    def value(self, e: Expr) -> Array:
        match e:
            case Const(value, dtype):
                return np.asarray(value).astype(numpy_dtype(dtype))
            case Var():
                return self.env[e]
            case Load(buffer, index):
                return self.load(buffer, index)
            case Prim("cast", (x,), dtype):
                return converted(self.value(x), dtype)
            case Prim("bits", (x,), dtype):
                return self.value(x).view(numpy_dtype(dtype))
            case Prim("within", (index, extent, inner, *fill)):
                return self.within(self.value(index), self.value(extent), inner, fill)
            case Prim(fn, args):
                table = FLOAT if args[-1].dtype.is_float else INTEGER
                assert fn == "select" or len({a.dtype for a in args}) == 1, f"{fn} of {[a.dtype.value for a in args]}"
                return table[fn](*(self.value(a) for a in args))
            case Reduce(fn, axes, body, init):
                assert init is None
                return self.reduce(fn, axes, body)
            case _:
                raise NotImplementedError(e)

    def within(self, index: Array, extent: Array, inner: Expr, fill: list[Expr]) -> Array:
        """`inner` is not read outside: there, its loads may be of any element."""
        self.guards += 1
        value = self.value(inner)
        self.guards -= 1
        other = self.value(fill[0]) if fill else np.zeros((), value.dtype)
        return np.where((index >= 0) & (index < extent), value, other)

    def load(self, buffer: Buffer, index: tuple[Expr, ...]) -> Array:
        assert all(i.dtype is DType.I64 for i in index), buffer.name
        table = np.array(buffer.values).reshape(buffer.shape) if buffer.space is Space.TABLE else None
        array, at = self.memory[buffer.name] if table is None else table, tuple(self.value(i) for i in index)
        found = array[tuple(np.clip(i, 0, n - 1) for i, n in zip(at, array.shape, strict=True)) if self.guards else at]
        return np.asarray(found).astype(numpy_dtype(buffer.dtype.compute))

    def reduce(self, fn: str, axes: tuple[Var, ...], body: Expr) -> Array:
        dtype = numpy_dtype(body.dtype)
        total = np.asarray(identity(fn, body.dtype).value).astype(dtype)
        for point in itertools.product(*(range(int(a.extent)) for a in axes)):  # type: ignore[arg-type]
            self.env |= {a: np.asarray(i) for a, i in zip(axes, point, strict=True)}
            total = REDUCE[fn](total, self.value(body)).astype(dtype)
        return total


def converted(x: Array, dtype: DType) -> Array:
    """Floats to integers truncate and saturate, NaN gives 0."""
    to = numpy_dtype(dtype)
    if x.dtype.kind == "f" and to.kind in "iu":
        low, high = np.iinfo(to).min, np.iinfo(to).max
        whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=float(high), neginf=float(low)))
        inside = (whole >= low) & (whole < float(high))
        return np.where(inside, np.where(inside, whole, 0).astype(to), np.where(whole < low, low, high).astype(to))
    return x.astype(to)
