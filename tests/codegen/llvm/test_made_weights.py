"""Weights that are made at each access: hashed, and kept in a file, where its folder has room."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.ir.program import ConstantBlock
from aot.codegen.llvm import weights
from aot.codegen.llvm.weights import hashed, parts_of

GIVEN = np.arange(50, dtype=np.float32)
SIZE = 1024


@pytest.mark.parametrize(("kept", "processors"), [(True, 1), (True, 4), (False, 4)])
def test_weights_are_made_once_where_a_folder_has_room(
    kept: bool, processors: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "LEAST_BYTES", 1)
    made: list[int] = []

    def runs_on(_process: int) -> set[int]:
        return set(range(processors))

    def piece(n: int) -> np.ndarray:
        made.append(n)
        return np.full(8, n, np.int16)

    def make() -> list[Callable[[], np.ndarray]]:
        return [partial(piece, n) for n in range(3)]

    monkeypatch.setattr("os.sched_getaffinity", runs_on)
    blocks = ConstantBlock(0, GIVEN), ConstantBlock(256, np.empty(0, np.int16), make, 48)
    wanted = b"".join(bytes(part) for part in parts_of(blocks, SIZE))
    made.clear()
    digest, found = hashed(blocks, SIZE, tmp_path if kept else tmp_path / "none")
    assert digest == hashlib.sha256(wanted).hexdigest()
    assert b"".join(bytes(part) for part in parts_of(found, SIZE)) == wanted
    assert (len(made), found is blocks) == ((3, False) if kept else (6, True))
    assert not list(tmp_path.iterdir())
