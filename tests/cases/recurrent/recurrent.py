"""Recurrent cells, sequences, and the recurrences they decompose into."""

from __future__ import annotations

import numpy as np

from aot.opset.recurrent.quantized import QuantisedLSTMRecurrence
from aot.opset.recurrent.recurrence import GRURecurrence, LSTMRecurrence, RNNRecurrence
from aot.opset.recurrent.recurrent import Direction, GRUSequence, LSTMSequence, RNNSequence
from aot.opset.recurrent.recurrent_cells import GRUCell, LSTMCell_1, LSTMCell_4, RNNCell, WeightsFormat
from aot.runtime.abi import DType
from tests.cases import LOOSE, Case, Spec

F32, I32 = DType.F32, DType.I32
SIZE, INPUT = 4, 3
ALL = {Direction.FORWARD: 1, Direction.REVERSE: 1, Direction.BIDIRECTIONAL: 2}


def cell(gates: int, states: int, bias: int = 0, batch: int | str = 2) -> list[Spec]:
    n = gates * SIZE
    return [
        (F32, (batch, INPUT)),
        *[(F32, (batch, SIZE))] * states,
        (F32, (n, INPUT)),
        (F32, (n, SIZE)),
        (F32, ((bias or gates) * SIZE,)),
    ]


def sequence(
    direction: Direction, gates: int, states: int, lengths: Spec | np.ndarray, bias: int = 0, steps: int | str = 5
) -> list[Spec | np.ndarray]:
    n, d = gates * SIZE, ALL[direction]
    return [
        (F32, (2, steps, INPUT)),
        *[(F32, (2, d, SIZE))] * states,
        lengths,
        (F32, (d, n, INPUT)),
        (F32, (d, n, SIZE)),
        (F32, (d, (bias or gates) * SIZE)),
    ]


def loop(gates: int, states: int, batch: int = 2) -> list[Spec]:
    return [(F32, (batch, 5, gates * SIZE)), *[(F32, (batch, SIZE))] * states, (F32, (gates * SIZE, SIZE))]


FULL, SHORT, GIVEN = np.array([5, 5], np.int64), np.array([2, 4], np.int64), (I32, (2,))
NUMBERS = np.random.default_rng(0).integers(-128, 128, (4 * SIZE, SIZE)).astype(np.int8)
SCALES = np.linspace(0.01, 0.02, 4 * SIZE, dtype=np.float32)
BYTES = [NUMBERS, SCALES, NUMBERS.sum(1, dtype=np.int32)]
EXOTIC = ("hardsigmoid", "softsign", "elu")

CASES = [
    Case(RNNCell(SIZE), cell(1, 1), LOOSE),
    Case(RNNCell(SIZE, ("relu",), clip=0.5), cell(1, 1)[:-1], LOOSE),
    Case(GRUCell(SIZE), cell(3, 1), LOOSE),
    Case(GRUCell(SIZE, ("tanh", "softplus"), linear_before_reset=True), cell(3, 1, 4), LOOSE),
    Case(LSTMCell_4(SIZE), cell(4, 2), LOOSE),
    Case(LSTMCell_4(SIZE, EXOTIC, (0.3, 0.0, 0.7), (0.4,), clip=2.0), cell(4, 2, batch="n=3"), LOOSE),
    Case(LSTMCell_1(SIZE), [*cell(4, 2), (F32, (3 * SIZE,))], LOOSE),
    Case(LSTMCell_1(SIZE, input_forget=True, weights_format=WeightsFormat.IOFC), cell(4, 2), LOOSE),
    *(Case(RNNSequence(SIZE, direction=d), sequence(d, 1, 1, FULL), LOOSE) for d in ALL),
    *(Case(RNNSequence(SIZE, direction=d), sequence(d, 1, 1, SHORT), LOOSE) for d in ALL),
    *(Case(GRUSequence(SIZE, direction=d), sequence(d, 3, 1, FULL), LOOSE) for d in ALL),
    *(Case(GRUSequence(SIZE, direction=d, linear_before_reset=True), sequence(d, 3, 1, SHORT, 4), LOOSE) for d in ALL),
    *(Case(GRUSequence(SIZE, direction=d), sequence(d, 3, 1, GIVEN), LOOSE, low=1) for d in ALL),
    *(Case(LSTMSequence(SIZE, direction=d), sequence(d, 4, 2, FULL), LOOSE) for d in ALL),
    *(Case(LSTMSequence(SIZE, direction=d, clip=1.0), sequence(d, 4, 2, GIVEN), LOOSE, low=1) for d in ALL),
    *(Case(LSTMSequence(SIZE, direction=d), sequence(d, 4, 2, GIVEN, steps="t=6"), LOOSE, low=1) for d in ALL),
    Case(RNNRecurrence(SIZE, ("relu",)), loop(1, 1), LOOSE, low=-1, high=1),
    Case(RNNRecurrence(SIZE, reverse=True), [*loop(1, 1), (I32, (2,))], LOOSE, low=0),
    Case(GRURecurrence(SIZE), [*loop(3, 1, 1)[:2], (F32, (8, SIZE)), (F32, (SIZE, SIZE))], LOOSE, low=-1, high=1),
    Case(GRURecurrence(SIZE, linear_before_reset=True), [*loop(3, 1), (F32, (SIZE,)), (I32, (2,))], LOOSE, low=1),
    Case(LSTMRecurrence(SIZE), loop(4, 2, 1), LOOSE),
    Case(LSTMRecurrence(SIZE, reverse=True), [*loop(4, 2), (I32, (2,))], LOOSE, low=1),
    *(Case(QuantisedLSTMRecurrence(SIZE), [*loop(4, 2, b)[:3], *BYTES], LOOSE) for b in (1, 3)),
    Case(QuantisedLSTMRecurrence(SIZE, reverse=True), [*loop(4, 2)[:3], *BYTES, (I32, (2,))], LOOSE, low=1),
    Case(QuantisedLSTMRecurrence(SIZE), [*loop(4, 2)[:1], *[np.zeros((2, SIZE), np.float32)] * 2, *BYTES], LOOSE),
]
