"""Attributes that a file leaves out are TensorFlow's defaults; values are of TensorFlow 2.21, run at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.frontends import front_passes, read_model
from aot.frontends.operations import tensorflow
from aot.frontends.tf.defaults import defaults_of
from aot.ir.interpret import interpret
from tests.frontends.tf.graphs import FLOAT, INT32, INT64, STRING, messages, node, tensor

NAN, INFINITE = float("nan"), float("inf")


def constant(values: Any) -> Any:
    """A TensorProto of floats, 32-bit integers or strings."""
    data = np.asarray(values)
    if data.dtype.kind == "U":
        return tensor(STRING, data.shape, string_val=[text.encode() for text in data.flat])
    data = data.astype(np.float32 if data.dtype.kind == "f" else np.int32)
    return tensor(FLOAT if data.dtype.kind == "f" else INT32, data.shape, tensor_content=data.tobytes())


def found(
    folder: Path, kind: str, feeds: list[np.ndarray], inputs: list[Any], output: int = 0, **attrs: Any
) -> np.ndarray:
    """An output of one operation: of what is fed, then of constants."""
    made = messages.GraphDef()
    for k, x in enumerate(feeds):
        node(made.node, "Placeholder", f"x{k}", dtype=FLOAT, shape=list(x.shape))
    for k, value in enumerate(inputs):
        held = constant(value)
        node(made.node, "Const", f"c{k}", dtype=held.dtype, value=held)
    names = [*(f"x{k}" for k in range(len(feeds))), *(f"c{k}" for k in range(len(inputs)))]
    node(made.node, kind, "op", *names, **attrs)
    node(made.node, "Identity", "y", f"op:{output}", T=attrs.get("output_type", FLOAT))
    file = folder / "m.pb"
    file.write_bytes(made.SerializeToString())
    graph = read_model(file)
    for front_pass in front_passes():
        front_pass(graph)
    values = interpret(graph, list(feeds))
    return values[[r.name.split(".")[0] for r in graph.results].index("y")]


def test_table_of_defaults_has_what_definitions_say() -> None:
    assert sum(len(defaults_of(kind)) for kind in tensorflow().kinds) > 400
    assert defaults_of("LSTMBlockCell") == {"cell_clip": 3.0, "forget_bias": 1.0, "use_peephole": False}
    assert defaults_of("StringSplitV2") == {"maxsplit": -1}
    assert defaults_of("Placeholder") == {"shape": None}
    assert defaults_of("InitializeTableFromTextFileV2")["delimiter"] == "\t"


def test_range_of_quantization_is_that_of_the_data(tmp_path: Path) -> None:
    x = np.array([-0.5, 0.1, 2.3, -3.3], np.float32)
    y = found(tmp_path, "QuantizeAndDequantizeV4", [x], [-1.0, 1.0], T=FLOAT)
    assert np.allclose(y, [-0.48984373, 0.1031250, 2.2945311, -3.3], atol=1e-6)


def test_words_lie_between_the_spaces_of_ascii(tmp_path: Path) -> None:
    """A no-break space is part of a word, for constants as for inputs."""
    shape = found(tmp_path, "StringSplitV2", [], [["a\u00a0b c", "d"], ""], 2, output_type=INT64)
    assert shape.tolist() == [2, 2]


def test_states_of_a_cell_are_clipped_at_three(tmp_path: Path) -> None:
    zeros = [np.zeros((5, 12)), *[np.zeros(3)] * 3, np.zeros(12)]
    state = [np.array([[6.0, -6.0, 1.0]]), np.zeros((1, 3))]
    y = found(tmp_path, "LSTMBlockCell", [np.zeros((1, 2), np.float32)], [*state, *zeros], 1, T=FLOAT)
    assert np.allclose(y, [[3, -3, 0.7310586]], atol=1e-6)


ROWS = [
    [4, 5.5, NAN, -1],
    [NAN, 4, 5, 1],
    [NAN, NAN, NAN, NAN],
    [1, NAN, NAN, 0],
    [-INFINITE, -INFINITE, NAN, -INFINITE],
    [NAN, -INFINITE, -INFINITE, NAN],
    [NAN, NAN, 2, 2],
    [INFINITE, NAN, INFINITE, 1],
]


@pytest.mark.parametrize(
    ("kind", "expected"), [("ArgMax", [1, 2, 0, 0, 0, 0, 2, 0]), ("ArgMin", [3, 3, 0, 3, 0, 1, 2, 3])]
)
def test_places_of_extremes_leave_out_nan(kind: str, expected: list[int], tmp_path: Path) -> None:
    y = found(tmp_path, kind, [np.array(ROWS, np.float32)], [1], T=FLOAT, output_type=INT32)
    assert y.tolist() == expected


def test_no_target_is_among_the_best_beside_nan(tmp_path: Path) -> None:
    scores = np.array([[0.5, NAN, 0.7, 0.6], [0.5, 0.2, 0.1, 0.3], [INFINITE, 1, 2, 3], [3, 2, 1, 0]], np.float32)
    y = found(tmp_path, "InTopKV2", [scores], [[2, 0, 3, 4], 3], T=INT32)
    assert y.tolist() == [False, True, False, False]
