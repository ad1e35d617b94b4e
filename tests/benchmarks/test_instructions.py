"""Instructions are counted between two marks of the emulated program; inside, the mark is a call of the system."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import aot
from benchmarks.instructions import inside
from benchmarks.instructions.__main__ import counted

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


def test_counts_are_subtracted() -> None:
    assert counted("a warning\nexecuted 120\nexecuted 180\nexecuted 185\n") == [60, 5]


def test_an_inference_lies_between_two_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = aot.compile_model(DIGITS / "model.xml", output=tmp_path / "m.so")
    np.savez(tmp_path / "x.npz", **{model.inputs[0].name: np.load(DIGITS / "seven.npy")})
    seen: list[str] = []
    ours = inside.ours

    def watched(path: str, inputs: dict[str, object]) -> inside.Run:
        run = ours(path, inputs)
        return lambda: (seen.append("run"), run())

    monkeypatch.setitem(inside.RUNTIMES, "ours", watched)
    monkeypatch.setattr(os, "getppid", lambda: seen.append("mark"))
    inside.main("ours", str(tmp_path / "m.so"), str(tmp_path / "x.npz"))
    assert seen == ["run", "run", "mark", "run", "mark"]
