"""Arrays in and out: types without a NumPy equivalent travel as bits; state; models that do nothing."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import runtime
from codegen.ir.program import Program, Tensor
from runtime.abi import DType
from runtime.errors import UnsupportedError, UsageError
from runtime.manifest import TensorInfo
from runtime.tensors import aligned_empty, as_array, numpy_dtype
from tests.programs import built, running_sum


def info(dtype: DType) -> TensorInfo:
    return TensorInfo("x", ("x",), dtype, (4,), 64)


@pytest.mark.parametrize(
    ("dtype", "given", "bits"),
    [
        (DType.BF16, ml_dtypes.bfloat16, np.uint16),
        (DType.F8E4M3, ml_dtypes.float8_e4m3fn, np.uint8),
        (DType.F8E5M2, ml_dtypes.float8_e5m2, np.uint8),
        (DType.BOOL, np.bool_, np.bool_),
        (DType.F16, np.float16, np.float16),
        (DType.U64, np.uint64, np.uint64),
    ],
)
def test_bits_are_kept(dtype: DType, given: type, bits: type) -> None:
    array = np.arange(4).astype(given)
    made = as_array("input", info(dtype), array)
    assert made.dtype == bits
    assert made.tobytes() == array.tobytes()
    assert as_array("input", info(dtype), made).dtype == bits


def test_other_types_are_refused_by_their_short_names() -> None:
    with pytest.raises(UsageError, match=r"input 'x': expected bf16\[4\], got f16\[4\]"):
        as_array("input", info(DType.BF16), np.zeros(4, np.float16))
    with pytest.raises(UsageError, match=r"expected f32\[4\], got bf16\[4\]"):
        as_array("input", info(DType.F32), np.zeros(4, ml_dtypes.bfloat16))
    with pytest.raises(UnsupportedError, match="whole bytes, got string"):
        numpy_dtype(info(DType.STRING))


def test_aligned_memory() -> None:
    for shape in ((3, 5), (), (0, 4)):
        array, where = aligned_empty(shape, np.dtype(np.float32), 64)
        assert array.shape == shape
        assert where % 64 == 0
        assert array.size == 0 or array.ctypes.data == where
        assert array.flags.writeable


def test_state_belongs_to_the_request(tmp_path: Path) -> None:
    built(running_sum()).write_shared(tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so", threads=2)
    first, second = model.create_infer_request(), model.create_infer_request()
    ones = np.ones(8, np.float32)
    assert [first.infer(ones)[0][0] for _ in range(3)] == [1, 2, 3]
    assert second.infer(ones)[0][7] == 1
    first.reset_state()
    assert first.infer(ones)[0][0] == 1


def test_a_model_without_calls(tmp_path: Path) -> None:
    x, y = (Tensor(name, (name,), DType.F32, ()) for name in "xy")
    built(Program("", (), (), (), (), 0, 0, (x,), (y,))).write_shared(tmp_path / "m.so")
    for threads in (1, 2):
        assert runtime.load(tmp_path / "m.so", threads=threads)(np.float32(1).reshape(()))[0].shape == ()
