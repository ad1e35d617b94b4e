"""Weights that are whole numbers times factors: which ones become bytes, where it pays, and that results stay right."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest

from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array, numpy_dtype
from aot.opset.elementwise.conversion import LEVELS
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.passes.check import graph_of, values

DEEP, WIDE = 256, 48
FEW, MANY = 2, 64  # rows


def numbers(low: int, high: int, *shape: int) -> Array:
    return np.random.default_rng(0).integers(low, high, shape, endpoint=True).astype(np.float32)


def factors(*shape: int) -> Array:
    return np.random.default_rng(1).uniform(0.001, 0.1, shape).astype(np.float32)


def product(
    w: Array, rows: int | str, *, transposed: bool = False, small: bool = False, target: str = "x86-64-v3"
) -> Compilation:
    def make(b: Builder, x: OutPort) -> OutPort:
        data = np.ascontiguousarray(w.T) if transposed else w
        return b.MatMul(x, b.const(data, DType.F32), transpose_a=False, transpose_b=transposed)

    return stages(graph_of(make, (rows, len(w))), CompileOptions(level=None, target=target, small_weights=small))


def is_compressed(made: Compilation) -> bool:
    return bool(
        {DType.I8, DType.U8} & {b.dtype for k in made.program.kernels for b in k.buffers if b.name.startswith("w")}
    )


def is_right(made: Compilation, w: Array, rows: int) -> bool:
    (x,) = values((rows, len(w)))
    expected = x.astype(np.float64) @ w
    found = in_memory(made.built, threads=1)(x)[0]
    return bool(np.allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max()))


WEIGHTS = {
    "symmetric": numbers(-128, 127, DEEP, WIDE) * factors(1, WIDE),
    "one factor": numbers(-127, 127, DEEP, WIDE) * np.float32(0.037),
    "unsigned": (numbers(0, 255, DEEP, WIDE) - numbers(90, 160, 1, WIDE)) * factors(1, WIDE),
    "four bits": numbers(-8, 7, DEEP, WIDE) * factors(1, WIDE),
    "parts of 32": numbers(-8, 7, 8, 32, WIDE) * factors(8, 1, WIDE),
    "parts of 128": numbers(-127, 127, 2, 128, WIDE) * factors(2, 1, WIDE),
    "unsigned parts": (numbers(0, 15, 4, 64, WIDE) - numbers(6, 10, 4, 1, WIDE)) * factors(4, 1, WIDE),
    "rounded three times": numbers(-127, 127, DEEP, WIDE) * factors(1, WIDE) * np.float32(1.7) / np.float32(0.3),
    "a column of zeros": numbers(-127, 127, DEEP, WIDE) * factors(1, WIDE) * (np.arange(WIDE) != 3),
}


@pytest.mark.parametrize(("kind", "transposed"), [(kind, n % 2 == 1) for n, kind in enumerate(WEIGHTS)])
def test_weights_of_quantized_networks(kind: str, transposed: bool) -> None:
    w = WEIGHTS[kind].astype(np.float32).reshape(DEEP, WIDE)
    made = product(w, FEW, transposed=transposed)
    assert is_compressed(made)
    assert is_right(made, w, FEW)


@pytest.mark.parametrize(
    "w",
    [
        np.random.default_rng(0).normal(size=(DEEP, WIDE)),
        numbers(-300, 300, DEEP, WIDE) * factors(1, WIDE),
        np.where(np.arange(WIDE) == WIDE - 1, np.inf, numbers(-127, 127, DEEP, WIDE)),
        np.where(np.arange(WIDE) == WIDE - 1, np.nan, numbers(-127, 127, DEEP, WIDE) * factors(1, WIDE)),
        numbers(-127, 127, DEEP, WIDE) * factors(DEEP, 1),  # factors along the sum
    ],
    ids=["normal", "more than 8 bits", "infinite", "no number", "along the sum"],
)
def test_others_stay_as_they_are(w: Array) -> None:
    assert not is_compressed(product(w.astype(np.float32), FEW))


def test_it_pays_where_elements_are_loaded_a_few_times() -> None:
    w = WEIGHTS["symmetric"].astype(np.float32)
    assert not is_compressed(product(w, MANY))
    always = product(w, MANY, small=True)
    assert is_compressed(always)
    assert is_right(always, w, MANY)


def test_rows_that_run_time_tells_may_be_one() -> None:
    w = WEIGHTS["unsigned"].astype(np.float32)
    made = product(w, "n=1")
    assert is_compressed(made)
    assert is_right(made, w, 1)
    assert is_right(made, w, MANY - 1)


def test_the_library_is_a_quarter_as_large() -> None:
    w = (numbers(-127, 127, 512, 512) * factors(1, 512)).astype(np.float32)
    assert 512 * 512 < product(w, 1).program.constant_bytes < 512 * 512 * 1.2


def test_rows_of_a_table() -> None:
    table = (numbers(-127, 127, 300, 64) * factors(300, 1)).astype(np.float32)

    def make(b: Builder, x: OutPort) -> OutPort:
        axis = b.const(np.array(0, np.int64), DType.I64)
        return b.Gather(b.const(table, DType.F32), b.Convert(x, destination_type=DType.I32), axis, batch_dims=0)

    x = np.array([3, 299, 0, 17], np.float32)
    made = stages(graph_of(make, (4,)), CompileOptions(level=None))
    assert is_compressed(made)
    assert np.allclose(in_memory(made.built)(x)[0], table[x.astype(int)], rtol=1e-6, atol=0)


FAR = np.array([0, 200]).reshape(2, 1, 1)
NIBBLES = {
    "symmetric": numbers(-8, 7, DEEP, WIDE) * factors(1, WIDE),
    "unsigned": (numbers(0, 15, DEEP, WIDE) - numbers(0, 15, 1, WIDE)) * factors(1, WIDE),
    "parts of 32": (numbers(0, 15, 8, 32, WIDE) - numbers(0, 15, 8, 1, WIDE)) * factors(8, 1, WIDE),
    "symmetric parts of 64": numbers(-7, 7, 4, 64, WIDE) * factors(4, 1, WIDE),
    "one part far from zero": (numbers(0, 15, 2, 128, WIDE) + np.array([0, 200]).reshape(2, 1, 1))
    * factors(2, 1, WIDE),
}


@pytest.mark.parametrize(("kind", "rows"), [*((kind, "n=1") for kind in NIBBLES), ("symmetric", 1), ("parts of 32", 2)])
def test_numbers_of_four_bits_take_half_a_byte(kind: str, rows: int | str) -> None:
    w = NIBBLES[kind].astype(np.float32).reshape(DEEP, WIDE)
    made = product(w, rows)
    sizes = [b.shape for k in made.program.kernels for b in k.buffers if b.dtype is DType.U8]
    (size,) = {prod(n for n in shape if isinstance(n, int)) for shape in sizes}
    assert DEEP * WIDE // 2 <= size <= DEEP * 64 // 2  # panels are padded to whole vectors
    for count in (rows,) if isinstance(rows, int) else (1, 7, 63):
        assert is_right(made, w, count)


def test_an_odd_number_of_terms_keeps_a_byte_each() -> None:
    w = (numbers(-8, 7, DEEP + 1, WIDE) * factors(1, WIDE)).astype(np.float32)
    made = product(w, 1)
    assert DType.U8 not in {b.dtype for k in made.program.kernels for b in k.buffers}
    assert is_compressed(made)
    assert is_right(made, w, 1)


@pytest.mark.parametrize("kind", NIBBLES)
def test_four_bits_give_equal_bits_for_all_levels_and_threads(kind: str) -> None:
    w = NIBBLES[kind].astype(np.float32).reshape(DEEP, WIDE)
    (x,) = values((2, DEEP))
    found: set[bytes] = set()
    for target in ("x86-64-v3", "native"):
        made = product(w, FEW, target=target)
        found |= {in_memory(made.built, threads=n)(x)[0].tobytes() for n in (1, 2)}
    assert len(found) == 1


def test_rows_of_a_table_of_four_bits() -> None:
    table = (numbers(0, 15, 300, 2, 32) - numbers(3, 9, 300, 2, 1)) * factors(300, 2, 1)
    table = table.astype(np.float32).reshape(300, 64)

    def make(b: Builder, x: OutPort) -> OutPort:
        axis = b.const(np.array(0, np.int64), DType.I64)
        return b.Gather(b.const(table, DType.F32), b.Convert(x, destination_type=DType.I32), axis, batch_dims=0)

    x = np.array([3, 299, 0, 17], np.float32)
    made = stages(graph_of(make, (4,)), CompileOptions(level=None))
    assert made.program.constant_bytes < 300 * 64 // 2 + 300 * 2 * 5 + 256
    assert np.allclose(in_memory(made.built)(x)[0], table[x.astype(int)], rtol=1e-6, atol=0)


@pytest.mark.parametrize(("most", "part"), [(15, 32), (31, 64), (255, 32)])
def test_zero_points_between_whole_numbers(most: int, part: int) -> None:
    """GGUF's Q4_1 and Q4_K store the least element of each block, which is no multiple of the scale."""
    deep, wide = 256, 288  # enough elements that the constant is deferred
    rng = np.random.default_rng(0)
    whole = rng.integers(0, most + 1, (wide, deep // part, part)).astype(np.uint8)
    zeros, scales = (
        rng.uniform(low, high, (wide, deep // part, 1)).astype(np.float32) for low, high in ((0, most), (1, 2))
    )

    def make(b: Builder, x: OutPort) -> OutPort:
        numbers = b.Convert(b.const(whole, DType.U8), destination_type=DType.F32)
        w = b.Multiply(b.Subtract(numbers, b.const(zeros, DType.F32)), b.const(scales, DType.F32))
        return b.MatMul(x, b.Reshape(w, b.const(np.array([wide, deep]), DType.I64)), transpose_b=True)

    made = stages(graph_of(make, (2, deep)), CompileOptions(level=None, target="x86-64-v3", activations="f32"))
    assert made.program.constant_bytes < wide * deep * (0.5 if most == 15 else 1) + wide * deep // part * 8 + 4096
    w = ((whole.astype(np.float64) - zeros) * scales).reshape(wide, deep)
    assert is_right(made, w.T, 2)


CODES = {DType.NF4: np.uint8, DType.F4E2M1: ml_dtypes.float4_e2m1fn}


def coded(b: Builder, codes: Array, dtype: DType, scales: Array, wide: DType) -> OutPort:
    """Codes times scales, computed in f32, or in f16 with scales of f8e8m0 as OpenVINO's MXFP4."""
    numbers = b.Convert(b.const(codes.view(CODES[dtype]), dtype), destination_type=wide)
    kept = DType.F8E8M0 if wide is DType.F16 else DType.F32
    held = b.Convert(b.const(scales.astype(numpy_dtype(kept)), kept), destination_type=wide)
    return b.Convert(b.Multiply(numbers, held), destination_type=DType.F32)


def some_codes(*shape: int) -> tuple[Array, Array]:
    """Codes, and scales for their last axis that f16 and f8e8m0 hold."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 16, shape).astype(np.uint8), 2.0 ** rng.integers(-4, 5, (*shape[:-1], 1))


@pytest.mark.parametrize(("dtype", "turned", "wide"), [(DType.NF4, False, DType.F32), (DType.F4E2M1, True, DType.F16)])
def test_codes_of_four_bits_take_half_a_byte(dtype: DType, turned: bool, wide: DType) -> None:
    rows, columns = 298, 256  # vectors of all lengths; enough elements that the constant is deferred
    codes, scales = some_codes(rows, columns // 64, 64)

    def make(b: Builder, x: OutPort) -> OutPort:
        w = b.Reshape(coded(b, codes, dtype, scales, wide), b.const([rows, columns], DType.I64))
        w = b.Transpose(w, b.const([1, 0], DType.I64)) if turned else w
        return b.MatMul(x, w, transpose_b=not turned)

    w = (np.array(LEVELS[dtype])[codes] * scales).reshape(rows, columns).T
    (x,), found = values((3, columns)), set[bytes]()
    for target in ("x86-64-v3", "native", "x86-64-v2"):
        made = stages(graph_of(make, ("n=1", columns)), CompileOptions(level=None, target=target))
        assert made.program.constant_bytes < w.size * 0.5 + scales.size * 4 + 4096
        assert all(is_right(made, w, n) for n in (1, 40))
        if target != "x86-64-v2":  # it has no multiply-adds
            found |= {in_memory(made.built, threads=n)(x)[0].tobytes() for n in (1, 2)}
    assert len(found) == 1


@pytest.mark.parametrize("dtype", CODES)
def test_products_with_codes_stay_in_floats_where_data_are_rounded(dtype: DType) -> None:
    codes, scales = some_codes(298, 4, 64)

    def make(b: Builder, x: OutPort) -> OutPort:
        w = b.Reshape(coded(b, codes, dtype, scales, DType.F32), b.const([298, 256], DType.I64))
        return b.MatMul(b.Abs(x), w, transpose_b=True)

    (x,) = values((3, 256))
    plain, rounded = (
        stages(graph_of(make, ("n=1", 256)), CompileOptions(level=None, activations=kind)) for kind in ("f32", "int8")
    )
    assert np.array_equal(in_memory(plain.built)(x)[0], in_memory(rounded.built)(x)[0])
    assert "no integers" in rounded.program.in_floats[0][0]


@pytest.mark.parametrize("dtype", CODES)
def test_rows_of_a_table_of_codes(dtype: DType) -> None:
    codes, scales = some_codes(1200, 2, 32)

    def make(b: Builder, x: OutPort) -> OutPort:
        table = b.Reshape(coded(b, codes, dtype, scales, DType.F16), b.const([1200, 64], DType.I64))
        return b.Gather(table, b.Convert(x, destination_type=DType.I32), b.const(0, DType.I64), batch_dims=0)

    x = np.array([3, 1199, 0, 17], np.float32)
    expected = (np.array(LEVELS[dtype], np.float32)[codes] * scales.astype(np.float32)).reshape(1200, 64)[x.astype(int)]
    for target in ("x86-64-v3", "native", "x86-64-v2"):
        made = stages(graph_of(make, (4,)), CompileOptions(level=None, target=target))
        assert made.program.constant_bytes < 1200 * (32 + 2 * 4) + 4096
        assert np.array_equal(in_memory(made.built)(x)[0], expected)


def test_an_odd_number_of_codes_keeps_a_byte_each() -> None:
    codes, scales = some_codes(300, 1, 255)

    def make(b: Builder, x: OutPort) -> OutPort:
        w = b.Reshape(coded(b, codes, DType.NF4, scales, DType.F32), b.const([300, 255], DType.I64))
        return b.MatMul(x, w, transpose_b=True)

    made = stages(graph_of(make, (1, 255)), CompileOptions(level=None, target="x86-64-v3"))
    assert made.program.constant_bytes < 1.2 * codes.size
    assert is_right(made, (np.array(LEVELS[DType.NF4])[codes] * scales).reshape(300, 255).T, 1)


def test_bits_are_equal_for_any_number_of_threads() -> None:
    made = product(WEIGHTS["unsigned parts"].reshape(DEEP, WIDE), 1)
    (x,) = values((1, DEEP))
    one, two = (in_memory(made.built, threads=n)(x)[0] for n in (1, 2))
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("bits", [4, 8])
def test_matrices_of_experts_lie_as_they_are_in_the_file(bits: int) -> None:
    count, wide, deep, part = 3, 26, 1024, 32  # enough elements that the constant is deferred
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 1 << bits, (count, wide, deep // part, part)).astype(np.uint8)
    zeros = rng.integers(3, 12, (count, wide, deep // part, 1)).astype(np.uint8)
    scales = factors(count, wide, deep // part, 1)
    ends = [2, 2, 5]

    def make(b: Builder, x: OutPort) -> OutPort:
        numbers, least = (b.Convert(b.const(a, DType.U8), destination_type=DType.F32) for a in (whole, zeros))
        w = b.Multiply(b.Subtract(numbers, least), b.const(scales, DType.F32))
        return b.GroupedMatMul(x, b.Reshape(w, b.const([count, wide, deep], DType.I64)), b.const(ends, DType.I64))

    (x,), w = values((6, deep)), ((whole.astype(np.float64) - zeros) * scales).reshape(count, wide, deep)
    wanted = np.stack([w[n] @ row for n, row in zip([0, 0, 2, 2, 2], x, strict=False)])
    for target in ("x86-64-v2", "x86-64-v3", "native"):
        made = stages(graph_of(make, (6, deep)), CompileOptions(level=None, target=target))
        assert made.program.constant_bytes < whole.size * bits / 8 + scales.size * 8 + 4096
        found = in_memory(made.built)(x)[0]
        assert np.abs(found[:5] - wanted).max() < 1e-6 * np.abs(wanted).max()
        assert not found[5].any()
