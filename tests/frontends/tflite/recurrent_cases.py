"""Recurrent layers, which keep their states: the results are those of the third inference."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.frontends.tflite.case import c, case, f
from tests.frontends.tflite.models import Tensor

BATCH, INPUTS, HIDDEN, TIME = 2, 3, 4, 5


def w(*shape: int) -> Tensor:
    return c(f(*shape, low=-0.7, high=0.7), np.float32)


def state(*shape: int) -> Tensor:
    return Tensor(f"state{shape}{np.random.default_rng().integers(1 << 20)}", "f32", shape, variable=True)


def lstm(
    name: str, kind: str, x: np.ndarray, options: str, without: tuple[int, ...] = (), norms: bool = False, **fields: Any
) -> None:
    """`without`: places of weights that are left out."""
    given: list[Any] = [
        x,
        *(w(HIDDEN, INPUTS) for _ in range(4)),
        *(w(HIDDEN, HIDDEN) for _ in range(4)),
        *(w(HIDDEN) for _ in range(3)),
        *(w(HIDDEN) for _ in range(4)),
        w(HIDDEN, HIDDEN),
        w(HIDDEN),
        state(BATCH, HIDDEN),
        state(BATCH, HIDDEN),
    ]
    given = [None if k in without else p for k, p in enumerate(given)]
    if norms:
        given += [w(HIDDEN) for _ in range(4)]
    case(name, kind, *given, options=options, runs=3, FusedActivationFunction=4, **fields)


PLAIN = (9, 10, 11, 16, 17)
STEP, SEQUENCE = f(BATCH, INPUTS), f(BATCH, TIME, INPUTS)
lstm("lstm", "LSTM", STEP, "LSTM", PLAIN)
lstm("lstm_full", "LSTM", STEP, "LSTM", (), CellClip=0.9, ProjClip=0.3)
lstm("lstm_coupled", "LSTM", STEP, "LSTM", (1, 5, 9, 12, 16, 17))
lstm("sequence_lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM", SEQUENCE, "UnidirectionalSequenceLSTM", PLAIN)
lstm("sequence_lstm_norms", "UNIDIRECTIONAL_SEQUENCE_LSTM", SEQUENCE, "UnidirectionalSequenceLSTM", PLAIN, norms=True)
lstm(
    "sequence_lstm_time",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    f(TIME, BATCH, INPUTS),
    "UnidirectionalSequenceLSTM",
    PLAIN,
    TimeMajor=True,
)
case(
    "rnn",
    "RNN",
    STEP,
    w(HIDDEN, INPUTS),
    w(HIDDEN, HIDDEN),
    w(HIDDEN),
    state(BATCH, HIDDEN),
    options="RNN",
    runs=3,
    FusedActivationFunction=1,
)
case(
    "sequence_rnn",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    SEQUENCE,
    w(HIDDEN, INPUTS),
    w(HIDDEN, HIDDEN),
    w(HIDDEN),
    state(BATCH, HIDDEN),
    options="SequenceRNN",
    runs=3,
    FusedActivationFunction=4,
)
case(
    "svdf",
    "SVDF",
    STEP,
    w(8, INPUTS),
    w(8, 6),
    w(4),
    state(BATCH, 8 * 6),
    options="SVDF",
    runs=3,
    Rank=2,
    FusedActivationFunction=1,
)
