"""Activation functions and normalisation that are written out."""

from __future__ import annotations

import math

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.passes.rules import activation, norm
from aot.runtime.abi import DType
from tests.passes.check import Make
from tests.rules.proof import Entry, Pattern

HALF = math.sqrt(0.5)
ROUNDED = 1e-6  # a sixth, or a root, is no binary number: a constant within one rounding of it is taken for it
APPROXIMATE = "the constants of the two forms differ by rounding under a function without algebra"


def one(make: Make, within: float = 0.0) -> Pattern:
    return Pattern(make, (("n=2", 5),), within=within)


def cubic(b: Builder, x: OutPort, cube: OutPort) -> OutPort:
    inner = b.Multiply(b.Add(x, b.Multiply(cube, 0.044715)), math.sqrt(2 / math.pi))
    return b.Multiply(b.Multiply(x, 0.5), b.Add(b.Tanh(inner), 1.0))


def clamped(b: Builder, x: OutPort) -> OutPort:
    return b.Clamp(b.Add(x, 3.0), min=0.0, max=6.0)


def normal(b: Builder, x: OutPort, inverted: bool, power: bool, inside: bool) -> OutPort:
    axes = b.const([-1], DType.I64)
    gap = b.Subtract(x, b.ReduceMean(x, axes, keep_dims=True))
    square = b.Power(gap, 2.0) if power else b.Multiply(gap, gap)
    variance = b.ReduceMean(square, axes, keep_dims=True)
    deviation = b.Sqrt(b.Add(variance, 1e-3)) if inside else b.Add(b.Sqrt(variance), 1e-3)
    if inverted:
        return b.Multiply(gap, b.Divide(b.const(1, DType.F32), deviation))
    return b.Divide(gap, deviation)


def groups(b: Builder, x: OutPort) -> OutPort:
    rows = b.Reshape(x, b.const([1, 2, -1], DType.I64), special_zero=False)
    made = b.MVN(rows, b.const([2], DType.I64), eps=1e-3)
    return b.Reshape(made, b.const([1, 2, 2], DType.I64), special_zero=False)


ENTRIES = (
    Entry(
        activation.gelu_with_erf,
        (
            one(lambda b, x: b.Multiply(b.Multiply(x, b.Add(b.Erf(b.Divide(x, math.sqrt(2))), 1.0)), 0.5)),
            one(lambda b, x: b.Multiply(x, b.Add(b.Multiply(b.Erf(b.Multiply(x, HALF)), 0.5), 0.5))),
        ),
        why=APPROXIMATE,
    ),
    Entry(
        activation.gelu_with_erfc,
        (
            one(lambda b, x: b.Multiply(b.Multiply(x, 0.5), b.Erfc(b.Multiply(b.Negative(x), HALF)))),
            one(lambda b, x: b.Multiply(b.Erfc(b.Multiply(x, -HALF)), b.Multiply(x, 0.5))),
        ),
        why=APPROXIMATE,
    ),
    Entry(
        activation.gelu_with_tanh,
        (
            one(lambda b, x: cubic(b, x, b.Power(x, 3.0))),
            one(lambda b, x: cubic(b, x, b.Multiply(x, b.Multiply(x, x)))),
        ),
        why=APPROXIMATE,
    ),
    Entry(
        activation.swish,
        (
            one(lambda b, x: b.Multiply(x, b.Sigmoid(x))),
            one(lambda b, x: b.Multiply(b.Sigmoid(b.Multiply(x, 1.5)), b.Multiply(x, 0.25))),
        ),
        note="e^x is a function whose values are positive",
    ),
    Entry(
        activation.swish_as_quotient,
        (
            one(lambda b, x: b.Divide(x, b.Add(b.Exp(b.Negative(x)), 1.0))),
            one(lambda b, x: b.Divide(b.const(1, DType.F32), b.Add(b.Exp(b.Negative(x)), 1.0))),
        ),
        note="e^x is a function whose values are positive",
    ),
    Entry(
        activation.hard_sigmoid_written_out,
        (
            one(lambda b, x: b.Divide(clamped(b, x), 6.0), ROUNDED),
            one(lambda b, x: b.Multiply(clamped(b, x), 1 / 6), ROUNDED),
        ),
        note="within 1e-6: a sixth is rounded",
    ),
    Entry(
        activation.hard_swish,
        (
            one(lambda b, x: b.Multiply(x, b.Multiply(clamped(b, x), 1 / 6)), ROUNDED),
            one(lambda b, x: b.Divide(b.Multiply(x, clamped(b, x)), 6.0), ROUNDED),
            one(lambda b, x: b.Multiply(b.HSigmoid(x), x), ROUNDED),
        ),
        note="within 1e-6: a sixth is rounded",
    ),
    Entry(
        activation.hard_sigmoid,
        (one(lambda b, x: b.HardSigmoid(x, 1 / 6, 0.5)),),
        why="the slope is rounded before it is multiplied, so that the error near the foot has no relative bound",
    ),
    Entry(
        activation.soft_plus,
        (one(lambda b, x: b.Log(b.Add(b.Exp(x), 1.0))),),
        why="the form that does not overflow needs laws of logarithms",
    ),
    Entry(
        activation.mish,
        (one(lambda b, x: b.Multiply(x, b.Tanh(b.SoftPlus(x)))),),
        why="tanh of a logarithm needs laws of both",
    ),
    Entry(
        norm.mean_variance_written_out,
        tuple(
            Pattern(lambda b, x, i=i, p=p, s=s: normal(b, x, i, p, s), (("n=2", 3),))
            for i in (False, True)
            for p in (False, True)
            for s in (False, True)
        ),
    ),
    Entry(norm.group_norm_written_out, (Pattern(groups, ((1, 2, 2),)),)),
)
