"""Recurrent layers."""

from __future__ import annotations

import numpy as np

from tests.frontends.onnx.case import case, known, row
from tests.frontends.onnx.models import Numbers

N = Numbers(7)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OUTPUTS = {"LSTM": 3, "GRU": 2, "RNN": 2}
X, LENGTHS = N.f32(5, 2, 3, size=2.0), np.int32([5, 3])


def weights(kind: str, directions: int = 1) -> list[object]:
    rows = 4 * GATES[kind]
    return [known(N.f32(directions, rows, n)) for n in (3, 4)]


def biased(kind: str, directions: int = 1) -> list[object]:
    return [*weights(kind, directions), known(N.f32(directions, 8 * GATES[kind]))]


def states(kind: str, directions: int = 1) -> list[object]:
    return [known(N.f32(directions, 2, 4)) for _ in range(2 if kind == "LSTM" else 1)]


CASES = [
    *(
        case(kind, row(X), *biased(kind, count), hidden_size=4, direction=way, outputs=OUTPUTS[kind])
        for kind in GATES
        for way, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2))
    ),
    *(
        case(kind, row(X), *weights(kind), hidden_size=4, clip=0.4, outputs=OUTPUTS[kind])
        for kind in ("GRU", "RNN")
    ),
    *(
        case(kind, X, *biased(kind), LENGTHS, *states(kind), hidden_size=4, outputs=OUTPUTS[kind], open=False)
        for kind in GATES
    ),
    case("LSTM", X, *biased("LSTM"), None, *states("LSTM"), known(N.f32(1, 12)), hidden_size=4, outputs=3, open=False),
    case("LSTM", row(X), *weights("LSTM"), hidden_size=4, input_forget=1, open=False),
    case(
        "LSTM", row(X), *weights("LSTM"), hidden_size=4, activations=["HardSigmoid", "Tanh", "Affine"],
        activation_alpha=[0.3, 2.0], activation_beta=[0.4, 0.1],
    ),
    case(
        "LSTM", row(X), *weights("LSTM"), hidden_size=4, activations=["Tanh", "Relu", "ScaledTanh"],
        activation_alpha=[0.7], activation_beta=[0.5],
    ),
    case("GRU", row(X), *biased("GRU"), hidden_size=4, linear_before_reset=1, outputs=2),
    case("GRU", row(X), *biased("GRU"), hidden_size=4, linear_before_reset=1, clip=0.4),
    case("RNN", row(X), *weights("RNN"), hidden_size=4, activations=["Relu"]),
    case(
        "RNN", row(X), *weights("RNN"), hidden_size=4, activations=["Affine"], activation_alpha=[0.3],
        activation_beta=[0.1],
    ),
]  # fmt: skip
