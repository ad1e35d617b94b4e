"""Operations of TensorFlow Lite give what LiteRT's kernels give; tests/frontends/tflite/make.py makes the cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from aot.frontends.tflite.registry import CONVERSIONS, EXACT
from tests.each import check_each
from tests.frontends.onnx.models import run
from tests.frontends.tflite import stored_cases
from tests.inferred import results_of

CLOSE = 3e-6  # of the largest number of an output
STATEFUL = [name for name, case in stored_cases().items() if case["runs"] > 1]


def arrays(case: dict[str, Any], letter: str) -> list[Any]:
    return [case[k] for k in sorted(case, key=lambda k: (len(k), k)) if k[0] == letter]


def saved(case: dict[str, Any], folder: Path) -> Path:
    path = folder / "m.tflite"
    path.write_bytes(case["file"].tobytes())
    return path


def assert_close(found: Any, wanted: Any, levels: int = 0) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if found.dtype.kind == "f":
        assert np.abs(found - wanted).max(initial=0) <= CLOSE * max(np.abs(wanted).max(initial=0), 1e-3)
    else:
        assert np.abs(found.astype(np.int64) - wanted.astype(np.int64)).max(initial=0) <= levels


def test_operations_give_what_litert_gives(tmp_path: Path) -> None:
    """Bit for bit for integers, but for `q_near`: LiteRT approximates those, and one level may differ."""

    def check(name: str) -> None:
        case = stored_cases()[name]
        for found, wanted in zip(run(saved(case, tmp_path), *arrays(case, "x")), arrays(case, "y"), strict=True):
            assert_close(np.asarray(found), wanted, int(name.startswith("q_near")))

    check_each(check, [n for n in stored_cases() if n not in STATEFUL])


@pytest.mark.parametrize(
    "name", ["conv_021", "fully_connected", "while", "q_conv_i8_03", "q_depthwise_u8", "q_conv_i16_11", "q_add_i8_3"]
)
def test_compiled_operation_gives_what_litert_gives(name: str, tmp_path: Path) -> None:
    case = stored_cases()[name]
    model = aot.compile_model(saved(case, tmp_path))
    outs = model(*arrays(case, "x"))
    for k, wanted in enumerate(arrays(case, "y")):
        assert_close(outs[k], wanted)


@pytest.mark.parametrize("name", STATEFUL)
def test_states_are_kept_between_inferences(name: str, tmp_path: Path) -> None:
    """Variables, and tensors that recurrent layers update: the result is that of the third inference."""
    case = stored_cases()[name]
    graph, state = aot.stages(saved(case, tmp_path)).optimized, dict[str, np.ndarray]()
    outs = [results_of(graph, arrays(case, "x"), state) for _ in range(int(case["runs"]))]
    for found, wanted in zip(outs[-1], arrays(case, "y"), strict=True):
        assert_close(np.asarray(found), wanted, int(name.startswith("q_near")))


@pytest.mark.parametrize("name", ["variable", "sequence_lstm", "q_near_lstm"])
def test_states_of_compiled_networks_are_kept_between_inferences(name: str, tmp_path: Path) -> None:
    case = stored_cases()[name]
    model = aot.compile_model(saved(case, tmp_path))
    outs = [model(*arrays(case, "x")) for _ in range(int(case["runs"]))]
    for k, wanted in enumerate(arrays(case, "y")):
        assert_close(np.asarray(outs[-1][k]), wanted, int(name.startswith("q_near")))


def test_there_are_as_many_conversions_as_the_page_says() -> None:
    assert len({*CONVERSIONS.load(), *EXACT}) >= 130
