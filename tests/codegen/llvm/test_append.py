"""Weights lie in the file so that the system can map them in large pages."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.llvm.linking.append import LARGE_PAGE, pieces
from aot.codegen.platforms import LINUX
from aot.compilation.driver import compile_model
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.runtime import load
from aot.runtime.machine import machine_name
from tests.lowering.check import weights
from tests.passes.check import graph_of

LOAD = 1


def last_segment(path: Path) -> tuple[int, int, int]:
    """Its offset, address and alignment."""
    data = path.read_bytes()
    (at,), (size, count) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    rows = [struct.unpack_from("<IIQQQQQQ", data, at + n * size) for n in range(count)]
    return max(((r[2], r[3], r[7]) for r in rows if r[0] == LOAD), key=lambda r: r[1])


@pytest.mark.parametrize(("columns", "page"), [(600, LINUX.pages[machine_name()]), (1400, LARGE_PAGE)])
def test_many_weights_have_an_offset_like_their_address(tmp_path: Path, columns: int, page: int) -> None:
    """600 x 600 take less than a large page, 1400 x 1400 take 8 MB."""

    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(x, weights(b, columns, columns))

    path = tmp_path / "m.so"
    model = compile_model(graph_of(make, (1, columns)))
    model.export_model(path)
    offset, address, align = last_segment(path)
    assert (align, (address - offset) % page) == (page, 0)
    x = np.random.default_rng(0).standard_normal((1, columns), np.float32)
    np.testing.assert_array_equal(load(path)(x)[0], model(x)[0])


@pytest.mark.parametrize("at", [0, 3 << 16])
def test_pieces_end_at_large_pages(at: int) -> None:
    data = np.random.default_rng(0).integers(0, 256, LARGE_PAGE * 2 + 100, np.uint8).tobytes()
    parts = [data[:10], memoryview(data)[10:LARGE_PAGE], b"", data[LARGE_PAGE:]]
    made = [bytes(p) for p in pieces(at, parts)]
    assert b"".join(made) == data
    ends = np.cumsum([at, *map(len, made)])
    assert not any(int(end) % LARGE_PAGE for end in ends[1:-1])
    assert max(map(len, made)) <= LARGE_PAGE
