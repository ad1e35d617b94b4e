"""Steps of random ONNX graphs that compute element by element, and predicates of their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

from aot.ir.types import Array
from tests.fuzz.graphs.elementwise import broadcasts
from tests.fuzz.graphs.growing import Refused
from tests.fuzz.graphs.onnx_growing import OnnxGrowing

F32, I64 = np.float32, np.int64


UNARY = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Abs",
    "Neg",
    "Floor",
    "Ceil",
    "Sqrt",
    "Sin",
    "Erf",
    "Softplus",
    "HardSigmoid",
    "HardSwish",
    "Sign",
    "Softsign",
    "Cos",
    "Elu",
    "LeakyRelu",
    "Round",
    "Mish",
    "Celu",
    "Selu",
    "ThresholdedRelu",
)


BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")


COMPARED = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


CASTS = (np.float32, np.float32, np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8, np.bool_)


def is_float(v: Array) -> bool:
    return v.dtype.kind == "f"


def of(*types: Any) -> Callable[[Array], bool]:
    return lambda v: v.dtype in [np.dtype(t) for t in types]


def ranked(least: int, most: int = 6) -> Callable[[Array], bool]:
    return lambda v: least <= v.ndim <= most and v.size > 0


def unary(g: OnnxGrowing) -> str:
    return g.one(g.d.pick(UNARY), g.tame(g.pick(of(F32, F32, np.float16))))


def _beside(g: OnnxGrowing, name: str) -> str:
    x, d = g.values[name], g.d
    if d.flag():
        return g.pick(lambda v: v.dtype == x.dtype and broadcasts(v.shape, x.shape))
    shape = tuple(1 if d.flag() else n for n in x.shape)[d.integer(0, x.ndim) :]
    rng = d.generator()
    return g.constant((rng.uniform(-3, 3, shape) if is_float(x) else rng.integers(0, 4, shape)).astype(x.dtype))


def binary(g: OnnxGrowing) -> str:
    x = g.tame(g.pick(of(F32, F32, np.float16, np.float64, np.int32, I64)))
    y = g.tame(_beside(g, x))
    kind = g.d.pick(BINARY)
    if kind in ("Div", "Pow") and not is_float(g.values[x]):
        kind, y = "Div", g.constant(np.array(g.d.integer(1, 3), g.values[x].dtype))
    return g.tame(g.one(kind, *((x, y) if g.d.integer(0, 2) or kind in ("Div", "Pow") else (y, x))))


def remainder(g: OnnxGrowing) -> str:
    x = g.pick(of(np.int32, I64))
    return g.one("Mod", x, g.constant(np.array(g.d.pick([-3, -2, 2, 3]), g.values[x].dtype)), fmod=g.d.integer(0, 1))


def compare(g: OnnxGrowing) -> str:
    x = g.pick(of(F32, np.int32, I64))
    return g.one(g.d.pick(COMPARED), x, _beside(g, x))


def where(g: OnnxGrowing) -> str:
    c = g.pick(of(np.bool_))
    x = g.pick(lambda v: of(F32, I64, np.int32, np.uint8)(v) and broadcasts(v.shape, g.values[c].shape))
    return g.one("Where", c, x, _beside(g, x))


def logic(g: OnnxGrowing) -> str:
    x = g.pick(of(np.bool_))
    return g.one("Not", x) if g.d.flag() else g.one(g.d.pick(["And", "Or", "Xor"]), x, _beside(g, x))


def cast(g: OnnxGrowing) -> str:
    """Only values that the type holds: others are not defined."""
    to = np.dtype(g.d.pick(CASTS))
    name = g.tame(g.pick(lambda v: v.size > 0))
    value = g.values[name]
    if to.kind in "iu" and (not np.isfinite(value.astype(np.float64)).all() or (value.astype(np.float64) < 0).any()):
        raise Refused("not defined")
    return g.one("Cast", name, to=helper.np_dtype_to_tensor_dtype(to))
