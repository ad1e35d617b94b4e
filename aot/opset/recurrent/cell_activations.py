"""Activation functions of recurrent networks, by the names their attributes use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr, prim, select
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Activation:
    """Function with its parameters, in three forms; a positive `clip` bounds its argument to -clip..clip."""

    name: str
    alpha: float
    beta: float
    clip: float = 0.0

    def clipped(self, clip: float) -> Activation:
        return replace(self, clip=clip)

    def scalar(self, x: Expr) -> Expr:
        if self.clip > 0:
            x = prim("min", prim("max", x, -self.clip), self.clip)
        return FORMS[self.name][0](x, self.alpha, self.beta)

    def array(self, x: Array) -> Array:
        bounded = np.clip(x, -self.clip, self.clip) if self.clip > 0 else x
        return FORMS[self.name][1](bounded, self.alpha, self.beta)

    def graph(self, build: Builder, x: OutPort) -> OutPort:
        if self.clip > 0:
            x = build.Clamp(x, min=-self.clip, max=self.clip)
        return FORMS[self.name][2](build, x, self.alpha, self.beta)


def activation(what: str, name: str, alpha: float | None, beta: float | None) -> Activation:
    """Return the function `name`, with default parameters in place of None; raise UnsupportedError if it is unknown."""
    key = name.lower()
    if key not in FORMS:
        raise UnsupportedError(f"{what}: activation must be one of {', '.join(FORMS)}, got {name}")
    usual = usual_parameters(key)
    return Activation(key, usual[0] if alpha is None else alpha, usual[1] if beta is None else beta)


def usual_parameters(name: str) -> tuple[float, float]:
    """Return the default alpha and beta of a function, for attributes without them."""
    return DEFAULT_PARAMETERS.get(name.lower(), (1.0, 0.0))


DEFAULT_PARAMETERS = {"hardsigmoid": (0.2, 0.5), "leakyrelu": (0.01, 0.0), "elu": (1.0, 0.0), "scaledtanh": (1.0, 1.0)}

Scalar = Callable[[Expr, float, float], Expr]
Whole = Callable[[Array, float, float], Array]
InGraph = Callable[[Builder, OutPort, float, float], OutPort]

FORMS: dict[str, tuple[Scalar, Whole, InGraph]] = {
    "sigmoid": (
        lambda x, a, b: 1.0 / (prim("exp_normal", -x) + 1.0),
        lambda x, a, b: 1 / (1 + np.exp(-x)),
        lambda build, x, a, b: build.Sigmoid(x),
    ),
    "tanh": (
        lambda x, a, b: prim("tanh", x),
        lambda x, a, b: np.tanh(x),
        lambda build, x, a, b: build.Tanh(x),
    ),
    "relu": (
        lambda x, a, b: prim("max", x, 0.0),
        lambda x, a, b: np.maximum(x, 0),
        lambda build, x, a, b: build.Relu(x),
    ),
    "affine": (
        lambda x, a, b: x * a + b,
        lambda x, a, b: a * x + b,
        lambda build, x, a, b: build.Add(build.Multiply(x, a), b),
    ),
    "leakyrelu": (
        lambda x, a, b: select(prim("lt", x, 0.0), x * a, x),
        lambda x, a, b: np.where(x < 0, a * x, x),
        lambda build, x, a, b: build.PRelu(x, a),
    ),
    "thresholdedrelu": (
        lambda x, a, b: select(prim("gt", x, a), x, 0.0),
        lambda x, a, b: np.where(x > a, x, 0),
        lambda build, x, a, b: build.Select(build.Greater(x, a), x, build.const(0.0, x.type.dtype)),
    ),
    "scaledtanh": (
        lambda x, a, b: prim("tanh", x * b) * a,
        lambda x, a, b: a * np.tanh(b * x),
        lambda build, x, a, b: build.Multiply(build.Tanh(build.Multiply(x, b)), a),
    ),
    "hardsigmoid": (
        lambda x, a, b: prim("min", prim("max", x * a + b, 0.0), 1.0),
        lambda x, a, b: np.clip(a * x + b, 0, 1),
        lambda build, x, a, b: build.Clamp(build.Add(build.Multiply(x, a), b), min=0.0, max=1.0),
    ),
    "elu": (
        lambda x, a, b: select(prim("lt", x, 0.0), (prim("exp", x) - 1.0) * a, x),
        lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x),
        lambda build, x, a, b: build.Elu(x, alpha=a),
    ),
    "softsign": (
        lambda x, a, b: x / (prim("abs", x) + 1.0),
        lambda x, a, b: x / (1 + np.abs(x)),
        lambda build, x, a, b: build.SoftSign(x),
    ),
    "softplus": (
        lambda x, a, b: prim("max", x, 0.0) + prim("log", prim("exp", -prim("abs", x)) + 1.0),
        lambda x, a, b: np.logaddexp(x, 0),
        lambda build, x, a, b: build.SoftPlus(x),
    ),
}
