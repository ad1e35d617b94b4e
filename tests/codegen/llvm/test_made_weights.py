"""Weights that are made at each access: hashed, and kept in a file that becomes the library, where there is room."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from aot.codegen.ir.program import ConstantBlock
from aot.codegen.llvm import weights
from aot.codegen.llvm.build import Built
from aot.codegen.llvm.linking import append
from aot.codegen.llvm.weights import LEAST_BYTES, ROOM, hashed, parts_of
from aot.compilation.driver import compile_model, stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.runtime import load
from tests.lowering.check import weights as weights_of
from tests.passes.check import graph_of

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
    again = blocks if found is None else found.blocks
    assert b"".join(bytes(part) for part in parts_of(again, SIZE)) == wanted
    assert (len(made), found is None) == ((3, False) if kept else (6, True))
    assert not list(tmp_path.iterdir())


def refused(*_arguments: object, **_options: object) -> None:
    raise OSError


@pytest.mark.parametrize("case", ["named", "refused", "another system"])
def test_a_file_of_weights_becomes_the_first_library(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second library, and one where files cannot get a name, are copies with the same bytes."""
    monkeypatch.setattr(append, "LARGE", LEAST_BYTES)
    if case == "refused":
        monkeypatch.setattr("os.link", refused)

    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(x, weights_of(b, 1400, 1400))

    graph = graph_of(make, (1, 1400))
    compilation, libraries = stages(graph), [tmp_path / f"{n}.so" for n in range(2)]
    with monkeypatch.context() as patch:
        if case == "another system":  # where folders cannot be opened, and links need names
            patch.setattr("aot.codegen.llvm.weights.sys", SimpleNamespace(platform="win32"))
        compilation.write_library(libraries[0])
    built = compilation.built
    assert isinstance(built, Built)
    assert built.weights_file is not None
    built.write_shared(libraries[1])
    assert built.weights_file.is_library == (case == "named" and sys.platform == "linux")
    assert libraries[0].read_bytes() == libraries[1].read_bytes()
    assert libraries[0].read_bytes()[ROOM:] == b"".join(map(bytes, parts_of(built.constants, built.constant_bytes)))
    libraries[0].write_bytes(bytes(libraries[0].stat().st_size))  # one library must not depend on the other
    x = np.random.default_rng(0).standard_normal((1, 1400), np.float32)
    np.testing.assert_array_equal(load(libraries[1])(x)[0], compile_model(graph)(x)[0])
    assert sorted(tmp_path.iterdir()) == libraries
