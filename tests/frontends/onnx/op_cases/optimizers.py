"""Steps of optimisers, of one weight and of two, at time 0 and later."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.onnx.case import Case, case
from tests.frontends.onnx.models import Numbers

N = Numbers(5)
MEANS: dict[str, Any] = {"norm_coefficient": 0.01, "alpha": 0.9, "beta": 0.7}
KINDS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("Adagrad", 3, {"norm_coefficient": 0.01, "decay_factor": 0.1, "epsilon": 1e-5}),
    ("Adagrad", 3, {}),
    ("Adam", 4, {**MEANS, "epsilon": 1e-5}),
    ("Adam", 4, {"norm_coefficient_post": 0.1}),
    ("Momentum", 3, {**MEANS, "mode": "standard"}),
    ("Momentum", 3, {**MEANS, "mode": "nesterov"}),
)


def step(op: str, kinds: int, attrs: dict[str, Any], weights: int, time: int) -> Case:
    tensors = [np.abs(N.f32(2, k + 1)) + 0.1 for _ in range(kinds) for k in range(weights)]
    outputs = weights * (kinds - 1)
    name = f"ai.onnx.preview.training.{op}"
    return case(name, np.float32(0.1), np.int64(time), *tensors, outputs=outputs, by_evaluator=True, **attrs)


CASES = [step(*kind, weights, time) for kind in KINDS for weights, time in ((1, 0), (2, 3))]
