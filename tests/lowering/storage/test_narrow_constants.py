"""Constants in fewer bits: which ones may be, where it pays, and that no result changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.ir.program import Program
from aot.codegen.llvm.host import parse_target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.lowering.context import Context
from aot.lowering.pipeline import pipeline
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.passes.check import graph_of, values

FEW, MANY = 2, 64  # rows
EXACT = (0.0, -0.0, 1.5, -65504.0, np.inf, -np.inf, 2.0**-14, 2.0**-24, -3 * 2.0**-24, 1 - 2.0**-11)


def product(
    w: Array, rows: int, target: str = "x86-64-v3", *, small: bool = False, passes: int | None = None
) -> Compilation:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(x, b.const(w, DType.F32), transpose_a=False, transpose_b=False)

    options = CompileOptions(level=None, target=target, small_weights=small, stop_after_lowering=passes)
    return stages(graph_of(make, (rows, w.shape[0])), options)


def stored(program: Program) -> set[DType]:
    """Types of the weights."""
    return {b.dtype for k in program.kernels for b in k.buffers if b.name.startswith("w")}


def weights(*special: float, dtype: str = "float16") -> Array:
    data = np.random.default_rng(0).normal(size=(64, 48)).astype(np.float32)
    data = data.astype(np.float16).astype(np.float32) if dtype == "float16" else bfloat(data)
    data.reshape(-1)[5 : 5 + len(special)] = special
    return data


def bfloat(x: Array) -> Array:
    return (x.view(np.uint32) & 0xFFFF0000).view(np.float32)


@pytest.mark.parametrize("value", EXACT)
def test_values_that_f16_has(value: float) -> None:
    assert stored(product(weights(value), FEW).program) == {DType.F16}


@pytest.mark.parametrize("value", [np.nan, 1 + 2.0**-11, 2.0**-25, 3 * 2.0**-25, 65520.0, 1e-30, 3.4e38])
def test_one_other_value_leaves_all_as_they_are(value: float) -> None:
    assert stored(product(weights(value), FEW).program) == {DType.F32}


@pytest.mark.parametrize(("value", "dtype"), [(1e30, DType.BF16), (np.inf, DType.BF16), (np.nan, DType.F32)])
def test_values_that_bf16_has(value: float, dtype: DType) -> None:
    wide = float(bfloat(np.array([value], np.float32))[0])
    assert stored(product(weights(2.0**100, wide, dtype="bfloat16"), FEW).program) == {dtype}


@pytest.mark.parametrize(
    ("target", "rows", "small", "dtype"),
    [
        ("x86-64-v2", FEW, True, DType.F32),  # no instructions for it
        ("x86-64-v3", FEW, False, DType.F16),
        ("x86-64-v3", MANY, False, DType.F32),
        ("x86-64-v3", MANY, True, DType.F16),
        ("aarch64", FEW, False, DType.F16),
        ("aarch64", MANY, False, DType.F32),
    ],
)
def test_constants_are_narrow_if_it_pays(target: str, rows: int, small: bool, dtype: DType) -> None:
    assert stored(product(weights(), rows, target, small=small).program) == {dtype}


def test_on_zen_it_always_pays() -> None:
    made = product(weights(), MANY)
    zen = replace(made.target, cpu="znver3", features=(*made.target.features, "f16c"))
    made.session = replace(made.session, target=zen)
    assert stored(made.program) == {DType.F16}


@pytest.mark.parametrize(
    ("dtype", "rows", "target"),
    [
        ("float16", 1, "native"),
        ("bfloat16", 7, "native"),
        ("float16", MANY, "x86-64-v3"),
        ("bfloat16", 1, "x86-64-v3"),
        ("bfloat16", MANY, "native"),
        ("float16", 7, "x86-64-v3"),
    ],
)
def test_results_are_the_same_bits(dtype: str, rows: int, target: str) -> None:
    w = weights(-0.0, 0.0, 2.0**-24, 2.0**-14, dtype=dtype)
    x = values((rows, w.shape[0]))
    small = in_memory(product(w, rows, target, small=True).built)(*x)[0]
    names = [p.name for p in pipeline(Context(parse_target(target)))]
    wide = product(w, rows, target, passes=names.index("narrow_constants"))
    assert stored(wide.program) == {DType.F32}
    assert small.tobytes() == in_memory(wide.built)(*x)[0].tobytes()


def test_rows_of_a_table() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        table, axis = b.const(weights(), DType.F32), b.const(np.array(0, np.int64), DType.I64)
        return b.Gather(table, b.Convert(x, destination_type=DType.I32), axis, batch_dims=0)

    x = np.array([3, 63, 0, 17], np.float32)
    made = stages(graph_of(make, (4,)), CompileOptions(level=None))
    assert DType.F16 in stored(made.program)
    assert np.array_equal(in_memory(made.built)(x)[0], weights()[x.astype(int)])


def test_the_library_of_a_compressed_model_is_half_as_large(tmp_path: Path) -> None:
    """OpenVINO saves compressed models with weights in f16, each with a conversion."""

    def make(b: Builder, x: OutPort) -> OutPort:
        w = b.const(np.random.default_rng(0).normal(size=(512, 512)), DType.F16)
        return b.MatMul(x, b.Convert(w, destination_type=DType.F32), transpose_a=False, transpose_b=False)

    made = stages(graph_of(make, (1, 512)), CompileOptions(level=None))
    path = tmp_path / "m.so"
    made.built.write_shared(path)
    assert 512 * 512 * 2 < path.stat().st_size < 512 * 512 * 3
    x = values((1, 512))
    assert np.array_equal(runtime.load(path)(*x)[0], in_memory(made.built)(*x)[0])
