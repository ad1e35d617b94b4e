"""Arrays in and out: types without a NumPy equivalent travel as bits; state; models that do nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import runtime
from aot.codegen.ir.program import Program, Tensor
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.elementwise.conversion import Convert
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.arrays.tensors import aligned_empty, as_array, numpy_dtype
from aot.runtime.errors import UnsupportedError, UsageError
from aot.runtime.loading.manifest import TensorInfo
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


SHORT = {
    DType.BF16: ml_dtypes.bfloat16,
    DType.F8E4M3: ml_dtypes.float8_e4m3fn,
    DType.F8E5M2: ml_dtypes.float8_e5m2,
    DType.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    DType.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    DType.F8E8M0: ml_dtypes.float8_e8m0fnu,
    DType.F4E2M1: ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize(("dtype", "peer"), SHORT.items())
def test_lists_of_short_floats_are_rounded_as_numbers(dtype: DType, peer: type) -> None:
    """All finite values, and numbers a quarter, a half and three quarters of the way between two of them."""
    bits = numpy_dtype(info(dtype))
    count = 16 if dtype is DType.F4E2M1 else 1 << 8 * bits.itemsize
    with np.errstate(invalid="ignore"):
        values = np.arange(count, dtype=bits).view(peer).astype(np.float64)
    values = np.unique(values[np.isfinite(values)])[:: 17 if dtype is DType.BF16 else 1]
    first = 1 if dtype is DType.F8E8M0 else 0  # ml_dtypes rounds 1.25 * 2^-127 up
    low, high = values[first:-1], values[first + 1 :]
    numbers = np.concatenate([values, *(low + (high - low) * part for part in (0.25, 0.5, 0.75))])
    made = as_array("input", info(dtype), numbers.tolist())
    assert made.dtype == bits
    assert made.tobytes() == numbers.astype(np.float32).astype(peer).tobytes()


@pytest.mark.parametrize(("dtype", "peer"), [*SHORT.items(), (DType.F16, np.float16)])
def test_lists_keep_signs_infinities_and_nan_or_are_refused(dtype: DType, peer: type) -> None:
    for number in (-0.0, -1.5, np.inf, -np.inf, np.nan, 1e39, -1e39, 65519.0, 65520.0):
        with np.errstate(over="ignore"):
            right: np.ndarray[Any, Any] = np.array([number]).astype(np.float32).astype(peer)
        back = float(right.astype(np.float64)[0])
        near = math.isfinite(back) and math.isfinite(number) and abs(back - number) <= abs(number) * 0.1
        if near or back == number or (math.isnan(back) and math.isnan(number)):
            assert as_array("input", info(dtype), [number]).tobytes() == right.tobytes(), number
        else:
            with pytest.raises(UsageError, match=r"input 'x': expected .* a number must be .*, got "):
                as_array("input", info(dtype), [number])


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        (DType.I32, [1.5]),
        (DType.I32, [1e10]),
        (DType.I64, float("nan")),
        (DType.U8, [256]),
        (DType.U8, [np.int64(256)]),
        (DType.U8, [-1]),
        (DType.I4, [8]),
        (DType.U2, [4]),
        (DType.BOOL, [2]),
        (DType.F32, [1e39]),
        (DType.F32, [10**400]),
        (DType.F32, ["1"]),
        (DType.BF16, ["1"]),
        (DType.BF16, [1j]),
        (DType.F32, [[1], [1, 2]]),
        (DType.F32, None),
    ],
)
def test_numbers_that_a_type_does_not_have_are_refused(dtype: DType, given: object) -> None:
    with pytest.raises(UsageError, match="input 'x': expected"):
        as_array("input", info(dtype), given)


@pytest.mark.parametrize(
    ("dtype", "given", "right"),
    [
        (DType.I32, [1.0, -2], np.array([1, -2], np.int32)),
        (DType.U64, [2**64 - 1, 1], np.array([2**64 - 1, 1], np.uint64)),
        (DType.I64, -(2**63), np.array(-(2**63), np.int64)),
        (DType.BOOL, [True, 0, 1.0], np.array([True, False, True])),
        (DType.I4, [-8, 7], np.array([-8, 7], np.int8)),
        (DType.F32, [1, 0.1, float("inf")], np.array([1, 0.1, np.inf], np.float32)),
        (DType.F32, [], np.zeros(0, np.float32)),
        (DType.BF16, [], np.zeros(0, np.uint16)),
        (DType.BF16, [[1, True], [1.5, np.float32(2)]], np.array([[0x3F80] * 2, [0x3FC0, 0x4000]], np.uint16)),
        (DType.BF16, 1.5, np.array(0x3FC0, np.uint16)),
    ],
)
def test_numbers_that_a_type_has_are_kept(dtype: DType, given: object, right: np.ndarray) -> None:
    made = as_array("input", info(dtype), given)
    assert made.dtype == right.dtype
    assert np.array_equal(made, right)


@pytest.mark.parametrize(
    ("dtype", "right"),
    [
        (DType.BF16, [1.5, -2, 0.10009765625]),
        (DType.F16, [1.5, -2, 0.0999755859375]),
        (DType.F8E4M3, [1.5, -2, 0.1015625]),
    ],
)
def test_a_compiled_model_takes_a_list_of_numbers(dtype: DType, right: list[float]) -> None:
    graph = Graph("list")
    given = graph.add(Parameter(dtype, (3,)), name="x")
    graph.add(Result(), graph.add(Convert(DType.F32), given.out_port(0), name="wide").out_port(0))
    model = compile_model(graph, CompileOptions(level=None), threads=1)
    assert model([[1.5, -2, 0.1]])[0].tolist() == right
    with pytest.raises(UsageError, match=r"input 'x': expected .* a number must be at most"):
        model([[1, 1e39, 2]])
