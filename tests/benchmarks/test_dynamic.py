"""The comparison of a dynamic model with static ones: that it runs, and what it says."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import dynamic

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "model.xml"


def test_a_model_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dynamic, "find_spec", lambda name: None)

    def slow(path: Path, inputs: dynamic.Inputs) -> dict[str, dynamic.Run]:
        return {"slow": lambda: math.factorial(20_000)}

    monkeypatch.setattr(dynamic, "peers", slow)
    shape = "x".join(map(str, np.load(DIGITS.parent / "seven.npy").shape))
    name = dynamic.compile_model(DIGITS).inputs[0].name
    out = tmp_path / "out.json"
    assert dynamic.run([str(DIGITS), "--size", f"{name}={shape}", "--rounds", "1", "--peers", "--json", str(out)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["bits"] is True
    assert row["from static"] == 0
    assert row["memory"] == 1
    assert row["peers"] > 1
    assert f"| {name} {shape} |" in capsys.readouterr().out


def test_the_difference_is_relative_and_infinite_between_shapes() -> None:
    one, two = np.array([1.0, 2.0]), np.array([1.0, 4.0])
    assert dynamic.difference([one], [two]) == 0.5
    assert dynamic.difference([one], [two[:1]]) == math.inf
    assert dynamic.difference([], []) == 0
