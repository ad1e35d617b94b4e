"""Large constants of packed types are unpacked when they are read, all of them or some rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot.frontends.openvino.constants import Weights, pack, packed_bytes
from aot.ir.inference import MAX_FOLD_ELEMENTS
from aot.ir.types import numpy_dtype
from aot.ir.values.deferred import Deferred, value_of
from aot.runtime.abi import DType

PACKED = (DType.U1, DType.U2, DType.U3, DType.U4, DType.U6, DType.I4, DType.NF4, DType.F4E2M1)


@pytest.mark.parametrize("dtype", PACKED)
@pytest.mark.parametrize("columns", [256, 255], ids=["rows of whole bytes", "rows that share bytes"])
def test_rows_are_those_of_all_elements(tmp_path: Path, dtype: DType, columns: int) -> None:
    shape = (MAX_FOLD_ELEMENTS // columns + 1, columns)
    codes = np.random.default_rng(0).integers(0, 1 << dtype.bits, shape).astype(np.uint8)
    file = tmp_path / "m.bin"
    file.write_bytes(b"\0" * 8 + pack(dtype, codes).tobytes())
    found = Weights(file).constant(dtype, shape, 8, packed_bytes(dtype, codes.size))
    assert isinstance(found, Deferred) and found.is_in_rows == (columns == 256)
    assert (found.type.dtype, found.shape) == (dtype, shape)
    whole = value_of(found)
    assert whole.dtype == numpy_dtype(dtype) and np.array_equal(whole.view(np.uint8), codes)
    del whole
    rows = np.concatenate([found.rows(n, min(n + 100, shape[0])) for n in range(0, shape[0], 100)])
    assert np.array_equal(rows.view(np.uint8), codes)


def test_small_constants_are_unpacked_at_once(tmp_path: Path) -> None:
    file = tmp_path / "m.bin"
    file.write_bytes(bytes([0x21, 0x43]))
    found = Weights(file).constant(DType.U4, (4,), 0, 2)
    assert not isinstance(found, Deferred) and found.view(np.uint8).tolist() == [1, 2, 3, 4]
