"""LSTM and SVDF on integers that LiteRT's kernels do not have, and those that are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import aot
from aot.frontends.unsupported import UnconvertedError
from aot.runtime.errors import ModelError
from tests.frontends.onnx.models import converted, run
from tests.frontends.tflite.integer_recurrent_cases import data_of, lstm_file, lstm_inputs, svdf_file, svdf_tensors
from tests.frontends.tflite.models import Net, Op, Tensor, model
from tests.frontends.tflite.test_reader import saved


def rounded(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def test_state_of_svdf_may_have_8_bits(tmp_path: Path) -> None:
    """Results equal TensorFlow Lite Micro; the state and its weights have 8 bits and a zero point."""
    tensors = svdf_tensors("i8", rank=2)
    compiled = aot.compile_model(saved(tmp_path, svdf_file(tensors, 2)))
    x, features, times, bias, held, y = tensors
    state = np.full((2, 4, 3), held.zeros[0], np.int64)
    weights, over_time = (np.asarray(t.data, np.int64) for t in (features, times))
    for seed in range(4):
        data = np.random.default_rng(seed).integers(-128, 128, (2, 5)).astype(np.int8)
        sums = (data - np.int64(x.zeros[0])) @ weights.T
        fresh = rounded(sums * (x.scales[0] * features.scales[0] / held.scales[0])) + held.zeros[0]
        state = np.concatenate([state[:, :, 1:], np.clip(fresh, -128, 127)[:, :, None].astype(np.int64)], 2)
        total = ((state - held.zeros[0]) * over_time).sum(2).reshape(2, 2, 2).sum(2) + np.asarray(bias.data)
        wanted = rounded(total * (held.scales[0] * times.scales[0] / y.scales[0])) + y.zeros[0]
        assert compiled(data)[0].tolist() == np.clip(wanted, -128, 127).tolist()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("data", "levels"), [("i8", 2), ("i16", 48)])
def test_lstm_is_that_of_real_numbers_within_the_roundings(data: str, levels: int, tmp_path: Path) -> None:
    """Levels of 16 bits are 2^-15: gates of 2^-12 and a cell state of 2^-11 leave errors of some 2^-10."""
    given = lstm_inputs(data=data)
    x = data_of(2, 4, 5) if data == "i8" else data_of(2, 4, 5).astype(np.int16) * 60
    found = aot.compile_model(saved(tmp_path, lstm_file(given)))(x)[0]
    unit = 1 / 64 if data == "i8" else 2.0**-13
    real, scale, zero = ((x + 5.0) * unit, 1 / 128, 3) if data == "i8" else (x * unit, 2.0**-15, 0)
    h, c, weights = np.zeros((2, 4)), np.zeros((2, 4)), {t.name: t for t in given if t is not None}

    def gate(k: int, part: np.ndarray) -> np.ndarray:
        w, r = (np.asarray(weights[f"{n}{k}"].data, np.float64) * weights[f"{n}{k}"].scales[0] for n in "wr")
        return part @ w.T + h @ r.T + np.asarray(weights[f"b{k}"].data) * (unit * weights[f"w{k}"].scales[0])

    for t in range(4):
        enter, forget, fresh, leave = (gate(k, real[:, t]) for k in range(4))
        c = sigmoid(forget) * c + sigmoid(enter) * np.tanh(fresh)
        h = sigmoid(leave) * np.tanh(c)
        limits = np.iinfo(found.dtype)
        assert np.abs(found[:, t] - np.clip(h / scale + zero, limits.min, limits.max)).max() <= levels


def test_weights_of_8_bits_beside_real_data_are_numbers(tmp_path: Path) -> None:
    """The LSTM gives what it gives with the dequantised weights."""
    given = lstm_inputs()
    real = [t and real_of(t) for t in given]
    mixed = [r if k in (0, *range(12, 20)) else t for k, (t, r) in enumerate(zip(given, real, strict=True))]
    x = np.random.default_rng(0).standard_normal((2, 4, 5)).astype(np.float32)
    plain, small = (run(saved(tmp_path, lstm_file(form)), x)[0] for form in (real, mixed))
    np.testing.assert_allclose(small, plain, rtol=1e-5, atol=1e-6)


def real_of(t: Tensor) -> Tensor:
    data = None if t.data is None else (np.asarray(t.data, np.float64) * t.scales[0]).astype(np.float32)
    return replace(t, type="f32", data=data, scales=[], zeros=[])


def test_state_of_8_bits_in_an_lstm_is_refused_by_name(tmp_path: Path) -> None:
    tensors = [
        Tensor("x", "i8", [1, 3], scales=[0.1]),
        *(Tensor(n, "i8", [1, 2], scales=[0.1], variable=True) for n in "hc"),
    ]
    tensors.append(Tensor("y", "i8", [1, 2], scales=[0.1]))
    inputs = [0, *[-1] * 17, 1, 2, -1, -1, -1, -1]
    file = saved(tmp_path, model(Net(tensors, [Op("LSTM", inputs, [3], "LSTM")], [0], [3])))
    with pytest.raises(UnconvertedError, match="a cell state of i16 are supported, got i8, i8, i8"):
        converted(file)


def test_lstm_without_weights_is_refused(tmp_path: Path) -> None:
    tensors = [Tensor("x", "i8", [1, 3], scales=[0.1]), Tensor("h", "i8", [1, 2], scales=[0.1], variable=True)]
    tensors += [Tensor("c", "i16", [1, 2], scales=[2.0**-11], variable=True), Tensor("y", "i8", [1, 2], scales=[0.1])]
    inputs = [0, *[-1] * 17, 1, 2, -1, -1, -1, -1]
    file = saved(tmp_path, model(Net(tensors, [Op("LSTM", inputs, [3], "LSTM")], [0], [3])))
    with pytest.raises(ModelError, match="input 2 must be given"):
        converted(file)


def test_integer_states_of_an_rnn_are_refused(tmp_path: Path) -> None:
    tensors = [Tensor("x", "i8", [1, 3], scales=[0.1])]
    tensors += [Tensor(n, "i8", s, np.ones(s, np.int8), [0.1]) for n, s in (("w", [2, 3]), ("r", [2, 2]))]
    tensors += [Tensor("b", "i32", [2], np.ones(2, np.int32), [0.01])]
    tensors += [Tensor("h", "i8", [1, 2], scales=[0.1], variable=True), Tensor("y", "i8", [1, 2], scales=[0.1])]
    file = saved(tmp_path, model(Net(tensors, [Op("RNN", range(5), [5], "RNN")], [0], [5])))
    with pytest.raises(UnconvertedError, match="integer states are not supported"):
        converted(file)
