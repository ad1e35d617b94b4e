"""The complement of the error function, which no operation set has: TensorFlow has it."""

from __future__ import annotations

import math

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType, numpy_dtype

# Press et al., Numerical Recipes: log(erfc(z) exp(z^2) / t) as a polynomial of t = 1 / (1 + z / 2); 1.2e-7 relative
POLYNOMIAL = (
    -1.26551223,
    1.00002368,
    0.37409196,
    0.09678418,
    -0.18628806,
    0.27886807,
    -1.13520398,
    1.48851587,
    -0.82215223,
    0.17087277,
)
BOUND = 0.5  # below, 1 - erf(x) loses nothing


@op()
class Erfc(DecomposedOp):
    """1 - erf(x), but without a difference where erf(x) is nearly 1."""

    elements = Elements.FLOAT

    def infer(self, x: Operand) -> TensorType:
        return x.type

    def decompose(self, build: Builder, x: OutPort) -> OutPort:
        dtype, z = x.type.dtype, build.Abs(x)

        def number(value: float) -> OutPort:
            return build.const(np.asarray(value).astype(numpy_dtype(dtype)), dtype)

        t = build.Divide(number(1), build.Add(build.Multiply(z, 0.5), 1.0))
        total = number(POLYNOMIAL[-1])
        for factor in reversed(POLYNOMIAL[:-1]):
            total = build.Add(build.Multiply(total, t), factor)
        tail = build.Multiply(t, build.Exp(build.Subtract(total, build.Multiply(z, z))))
        return build.Select(build.Greater(x, BOUND), tail, build.Subtract(number(1), build.Erf(x)))

    def reference(self, x: Array) -> Array:
        values = np.frompyfunc(math.erfc, 1, 1)(x.astype(np.float64))
        return np.asarray(values).astype(x.dtype)
