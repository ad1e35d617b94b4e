"""Weights that are made at each access: hashed, and kept in a file, where its folder has room."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.ir.program import ConstantBlock
from aot.codegen.llvm import weights
from aot.codegen.llvm.weights import hashed, parts_of

GIVEN = np.arange(50, dtype=np.float32)
SIZE = 1024


@pytest.mark.parametrize("kept", [True, False])
def test_weights_are_made_once_where_a_folder_has_room(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "LEAST_BYTES", 1)
    made: list[int] = []

    def make() -> Iterator[np.ndarray]:
        for n in range(3):
            made.append(n)
            yield np.full(8, n, np.int16)

    blocks = ConstantBlock(0, GIVEN), ConstantBlock(256, np.empty(0, np.int16), make, 48)
    wanted = b"".join(bytes(part) for part in parts_of(blocks, SIZE))
    made.clear()
    digest, found = hashed(blocks, SIZE, tmp_path if kept else tmp_path / "none")
    assert digest == hashlib.sha256(wanted).hexdigest()
    assert b"".join(bytes(part) for part in parts_of(found, SIZE)) == wanted
    assert (len(made), found is blocks) == ((3, False) if kept else (6, True))
    assert not list(tmp_path.iterdir())
