"""LSTM and SVDF on integers, which keep their states: the results are those of the third inference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.frontends.tflite.case import network
from tests.frontends.tflite.models import Net, Op, Tensor, model

INPUTS, UNITS, PROJECTED, TIME, BATCH = 5, 4, 3, 4, 2
HIDDEN_SCALE, HIDDEN_ZERO = 1 / 128, 3
GATES = range(4)


def quantized(name: str, kind: str, shape: Any, scale: float, zero: int = 0, data: Any = None, **facts: Any) -> Tensor:
    return Tensor(name, kind, list(shape), data, [scale], [zero], **facts)


def lstm_inputs(
    shape: Any = (BATCH, TIME, INPUTS),
    coupled: bool = False,
    peepholes: bool = False,
    projected: bool = False,
    normed: bool = False,
    data: str = "i8",
) -> list[Tensor | None]:
    """The 24 inputs of an LSTM of integers, data of `shape` first; `coupled`: without an input gate."""
    rng = np.random.default_rng(17)
    outputs = PROJECTED if projected else UNITS

    def weights(name: str, *shape: int) -> Tensor:
        held = rng.integers(-127, 128, shape).astype(np.int8)
        return quantized(name, "i8", shape, float(rng.uniform(0.3, 0.9) / 127), 0, held)

    def bias(name: str, count: int) -> Tensor:
        return quantized(name, "i32", [count], 1e-5, 0, rng.integers(-3000, 3000, count).astype(np.int32))

    def column(name: str, scale: float) -> Tensor:
        return quantized(name, "i16", [UNITS], scale, 0, rng.integers(-32767, 32768, UNITS).astype(np.int16))

    own = [k for k in GATES if not (coupled and k == 0)]
    given: list[Tensor | None] = [None] * 24
    given[0] = quantized("x", data, shape, 1 / 64 if data == "i8" else 2**-13, -5 if data == "i8" else 0)
    for k in own:
        given[1 + k], given[5 + k] = weights(f"w{k}", UNITS, INPUTS), weights(f"r{k}", UNITS, outputs)
        given[12 + k] = bias(f"b{k}", UNITS)
        given[20 + k] = column(f"n{k}", 2.0**-15) if normed else None
    for k, gate in enumerate((0, 1, 3)):
        given[9 + k] = column(f"p{k}", float(rng.uniform(0.2, 0.5) / 32767)) if peepholes and gate in own else None
    if projected:
        given[16], given[17] = weights("projection", outputs, UNITS), bias("projection_bias", outputs)
    scale, zero = (HIDDEN_SCALE, HIDDEN_ZERO) if data == "i8" else (2.0**-15, 0)
    given[18] = quantized("h", data, [BATCH, outputs], scale, zero, variable=True)
    given[19] = quantized("c", "i16", [BATCH, UNITS], 2.0**-11, variable=True)
    return given


def lstm_file(given: list[Tensor | None], time_major: bool = False, **fields: float) -> bytes:
    """The file of an LSTM over a sequence, or of one step where the data has no axis of time."""
    x, state = given[0], given[18]
    assert x is not None
    assert state is not None
    tensors = [t for t in given if t is not None]
    places = iter(range(len(tensors)))
    inputs = [-1 if t is None else next(places) for t in given]
    y, (scale, *_), (zero, *_) = len(tensors), [*state.scales, 1.0], [*state.zeros, 0]
    sums = [quantized(f"sum{k}", "i16", [0], 2.0**-12 if given[21] is None else 1.7 * 2.0**-13) for k in GATES]
    hidden = quantized("hidden", x.type, [0], *((1 / 140, -4) if given[16] is not None else (scale, zero)))
    tensors += [replace(state, name="y", shape=[*x.shape[:-1], state.shape[1]], variable=False), *sums, hidden]
    one = len(x.shape) == 2
    kind, options = ("LSTM", "LSTM") if one else ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTM")
    facts = {"FusedActivationFunction": 4, **fields, **({"TimeMajor": True} if time_major else {})}
    operator = Op(kind, inputs, [y], options, facts, intermediates=range(y + 1, y + 6))
    return model(Net(tensors, [operator], [0], [y]))


def svdf_tensors(state: str, rank: int = 1, filters: int = 4, memory: int = 3) -> list[Tensor]:
    """Data, weights of features and of time, bias, state, output."""
    rng = np.random.default_rng(18)
    kind, most = (np.int16, 32767) if state == "i16" else (np.int8, 127)
    by_feature = rng.integers(-127, 128, (filters, INPUTS)).astype(np.int8)
    by_time = rng.integers(-most, most + 1, (filters, memory)).astype(kind)
    bias = rng.integers(-9000, 9000, filters // rank).astype(np.int32) // (1 if state == "i16" else 16)
    scale, zero = (0.001, 0) if state == "i16" else (0.1, 7)
    return [
        quantized("x", "i8", [BATCH, INPUTS], 0.05, 4),
        quantized("by_feature", "i8", by_feature.shape, 0.01, 0, by_feature),
        quantized("by_time", state, by_time.shape, 1 / most, 0, by_time),
        quantized("bias", "i32", bias.shape, scale / most, 0, bias),
        quantized("state", state, [BATCH, filters * memory], scale, zero, variable=True),
        quantized("y", "i8", [BATCH, filters // rank], 0.04, -128),
    ]


def svdf_file(tensors: list[Tensor], rank: int = 1) -> bytes:
    options = {"Rank": rank, "FusedActivationFunction": 1}
    return model(Net(tensors, [Op("SVDF", range(5), [5], "SVDF", options)], [0], [5]))


def data_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(19).integers(-128, 128, shape).astype(np.int8)


SEQUENCE, STEP = data_of(BATCH, TIME, INPUTS), data_of(BATCH, INPUTS)
SWAPPED = data_of(TIME, BATCH, INPUTS)
network("q_near_lstm", lstm_file(lstm_inputs()), SEQUENCE, runs=3)
network("q_near_lstm_coupled", lstm_file(lstm_inputs(SWAPPED.shape, coupled=True), True), SWAPPED, runs=3)
network("q_near_lstm_norms", lstm_file(lstm_inputs(peepholes=True, normed=True)), SEQUENCE, runs=3)
network("q_near_lstm_projected", lstm_file(lstm_inputs(projected=True), ProjClip=0.3, CellClip=0.6), SEQUENCE, runs=3)
network("q_near_lstm_step", lstm_file(lstm_inputs(STEP.shape, peepholes=True)), STEP, runs=3)
for rank in (1, 2):
    network(f"q_svdf_{rank}", svdf_file(svdf_tensors("i16", rank), rank), STEP, runs=3)
