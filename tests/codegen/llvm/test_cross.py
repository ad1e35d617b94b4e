"""Shared libraries for another machine: linked by whichever linker there is, run by an emulator where there is one."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.ir.traverse import Work
from aot.codegen.llvm.build import Built, build
from aot.codegen.llvm.header import header_text
from aot.codegen.llvm.levels import Levels, join
from aot.codegen.llvm.linking.linker import Linker, find_linker
from aot.codegen.llvm.object import optimize
from aot.codegen.platforms import LINUX
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.lowering.program.build_program import ProgramBuilder
from aot.options import CompileOptions
from aot.runtime.abi import QUERY_PREFIX, DType
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import PlatformError
from aot.runtime.loading.elf import ElfFile
from aot.runtime.loading.library import read_manifest
from aot.runtime.machines.aarch64 import AARCH64
from tests.compilers import compiler
from tests.lowering.check import conv
from tests.lowering.check import weights as plain
from tests.lowering.numbers.test_group_sums import KINDS, ROUNDED
from tests.lowering.numbers.test_group_sums import data as rounded_data
from tests.lowering.quantized import F32, I8, IMAGE, U8, convolution, data, quantized, weights
from tests.networks import NETWORKS, functions
from tests.passes.check import Make, graph_of
from tests.programs import chain

Ran = subprocess.CompletedProcess[str]
RUNNER = Path(__file__).parents[1] / "network.c"
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "model.xml"
MODELS: dict[str, Callable[[], Graph | Path]] = {**NETWORKS, "functions": functions, "digits": lambda: DIGITS}


def linker() -> Linker:
    try:
        return find_linker("aarch64")
    except PlatformError:
        pytest.skip("needs ld.lld, a cross linker, or the package ziglang (extra cross)")


def test_library_for_another_machine(tmp_path: Path) -> None:
    build(chain(), Target.parse("aarch64")).write_shared(tmp_path / "m.so", linker=linker())
    with (tmp_path / "m.so").open("rb") as stream:
        file = ElfFile(stream, "m.so")
        symbols = file.dynamic_symbols()
        weights = np.frombuffer(file.section(".aot.weights"), np.float32)
    assert (file.machine, weights[16]) == (183, 2)
    assert [s.name for s in symbols if s.defined] == [f"aot_query_{read_manifest(tmp_path / 'm.so').tag}"]
    assert {s.name for s in symbols if not s.defined} <= set(LINUX.functions)


def program(
    made: Built | Levels, folder: Path, source: Path = RUNNER
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A C program with the model inside, which an emulator runs on the given processor with the given arguments."""
    machine = made.machine.name
    emulator = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    if emulator is None:
        pytest.skip("needs qemu-user")
    made.write_object(folder / "network.o")
    (folder / "network.h").write_text(header_text(made))
    options = ["-static", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I.", f"-DQUERY={QUERY_PREFIX}{made.tag}"]
    command = [*compiler(f"{machine}-linux-gnu-gcc"), *options, str(source), "network.o", "-pthread", "-o", "network"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    def run(cpu: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [emulator, "-cpu", cpu, "./network", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    return run


def packed(inputs: Sequence[Array]) -> bytes:
    """Return the inputs as `network.c` reads them."""
    parts: list[bytes] = []
    for x in inputs:
        parts += [struct.pack(f"<{x.ndim + 2}q", x.ndim, *x.shape, x.nbytes), x.tobytes()]
    return b"".join(parts)


def emulated(made: Built | Levels, folder: Path, inputs: Sequence[Array], cpu: str = "max", threads: int = 3) -> bytes:
    """Return the bytes of the outputs of a model that has no state, of a C program under an emulator of its machine."""
    (folder / "in").write_bytes(packed(inputs))
    ran = program(made, folder)(cpu, "in", "out", str(threads))
    assert ran.returncode == 0, ran.stderr
    return one_of(3, (folder / "out").read_bytes())


def one_of(calls: int, data: bytes) -> bytes:
    """Return the outputs of the first of several calls, which must be those of all."""
    first = data[: len(data) // calls]
    assert data == calls * first
    return first


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_network_runs_under_an_emulator(name: str, tmp_path: Path) -> None:
    """Results equal those on this machine, but for rounding."""
    model = MODELS[name]
    here = in_memory(stages(model(), CompileOptions()).built, threads=2)
    dice = np.random.default_rng(3)
    inputs = [dice.standard_normal(info.shape).astype(np.float32) for info in here.inputs]
    data = emulated(stages(model(), CompileOptions(target="aarch64")).built, tmp_path, inputs)
    for expected in here(*inputs).to_tuple():
        found = np.frombuffer(data[: expected.nbytes], expected.dtype).reshape(expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        data = data[expected.nbytes :]
    assert not data


@pytest.mark.slow
def test_maxima_keep_nan_under_an_emulator(tmp_path: Path) -> None:
    """One instruction each on aarch64, which may change the sign of a zero."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Maximum(b.Minimum(x, b.Multiply(b.Abs(x), b.const(0.5, F32))), b.Multiply(x, b.const(-0.5, F32)))
        most = b.ReduceMax(x, b.const([0], DType.I64), keep_dims=True)
        return b.Concat(b.Relu(x), b.Clamp(y, min=-2.0, max=2.0), y, most, axis=0)

    x = np.resize(np.float32([np.nan, -1.5, 0.0, np.inf, 7.25, -np.inf, -0.0, 3.0, -9.0]), 38)
    here = in_memory(stages(graph_of(make, x.shape), CompileOptions()).built)(x).to_tuple()[0]
    made = stages(graph_of(make, x.shape), CompileOptions(target="aarch64"))
    found = np.frombuffer(emulated(made.built, tmp_path, [x]), np.float32)
    np.testing.assert_array_equal(found, here)
    assert np.isnan(found).sum() > 2
    assert "fmax\tv" in made.asm()


TOLD = """
#include "network.h"
#include <stdio.h>
int main(void) {
    const struct aot_model *model = QUERY(AOT_ABI);
    return model ? !fwrite(model->manifest, (size_t)model->manifest_bytes, 1, stdout) : 2;
}
"""
PROCESSORS = {"aarch64-v8": "cortex-a53", "aarch64-v8.2": "cortex-a76", "aarch64-v8.6": "max"}  # emulated, by level
LEVELS = tuple(PROCESSORS)


def test_each_level_runs_on_a_processor() -> None:
    assert tuple(AARCH64.levels) == LEVELS


@pytest.mark.slow
def test_the_processor_is_asked_for_its_level(tmp_path: Path) -> None:
    """Under an emulator, as processors of three generations; none of the upper two levels runs on the first one."""
    made = [build(chain(), Target.parse(name), options={"target": name}) for name in LEVELS]
    (tmp_path / "told.c").write_text(TOLD)
    run = program(join(LEVELS, made), tmp_path, tmp_path / "told.c")
    for level, cpu in PROCESSORS.items():
        assert json.loads(run(cpu).stdout)["options"]["target"] == level
    upper = program(join(LEVELS[1:], made[1:]), tmp_path, tmp_path / "told.c")
    assert (upper("cortex-a53").returncode, upper("cortex-a76").returncode) == (2, 0)


@pytest.mark.slow
def test_levels_compute_the_same_bytes(tmp_path: Path) -> None:
    image = np.load(DIGITS.parent / "seven.npy")
    made = stages(DIGITS, CompileOptions(target=",".join(LEVELS))).built
    found = {cpu: emulated(made, tmp_path, [image], cpu) for cpu in PROCESSORS.values()}
    assert len(set(found.values())) == 1


def matmul(b: Builder, x: OutPort) -> OutPort:
    return b.MatMul(quantized(b, x), weights(b, 40, 70), transpose_b=True)


def bytes_above_zero(b: Builder, x: OutPort) -> OutPort:
    """Weights of 0 to 255, which are less a number of each output where they are multiplied, and padding that is 0."""
    numbers = np.random.default_rng(0).integers(0, 256, (20, 16, 3, 3)).astype(np.uint8)
    w = b.Multiply(b.Convert(b.const(numbers, U8), destination_type=F32), b.const(0.003, F32))
    return b.Convolution(quantized(b, x, 0), w, strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))


QUANTISED: dict[str, tuple[Make, tuple[int, ...]]] = {
    "matmul": (matmul, (9, 70)),
    "convolution": (lambda b, x: convolution(b, quantized(b, x), 20), IMAGE),
    # which Winograd's transforms would make products of i16
    "data of i8": (lambda b, x: b.MatMul(quantized(b, x, 0, I8), weights(b, 36, 44), transpose_b=True), (5, 44)),
    "bytes above zero": (bytes_above_zero, IMAGE),
    "fewer columns": (lambda b, x: b.MatMul(quantized(b, x), weights(b, 28, 27), transpose_b=True), (2, 27)),
    "3x3 of 32 channels": (lambda b, x: convolution(b, quantized(b, x), 32), (1, 32, 12, 12)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cpu", "level"),
    [(name, "max", "aarch64-v8.6") for name in QUANTISED]
    + [(name, "cortex-a76", "aarch64-v8.2") for name in ("matmul", "bytes above zero", "3x3 of 32 channels")],
)
def test_products_of_bytes_are_equal_on_all_machines(name: str, cpu: str, level: str, tmp_path: Path) -> None:
    """Sums of integers are exact, whichever instruction adds them."""
    make, shape = QUANTISED[name]
    here = in_memory(stages(graph_of(make, shape), CompileOptions()).built)(data(*shape))
    made = stages(graph_of(make, shape), CompileOptions(target=level))
    assert made.groups.count("dots=") == 1
    found = set(re.findall(r"\b\w?s(?:dot|mmla)\b", made.asm()))
    assert found == {"usmmla" if level == "aarch64-v8.6" else "sdot"}
    assert emulated(made.built, tmp_path, [data(*shape)], cpu) == b"".join(y.tobytes() for y in here.to_tuple())


@pytest.mark.slow
def test_bytes_are_those_of_any_effort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its least effort, LLVM keeps masks of shuffles as constants of each kernel, and a linker merges equal ones."""
    make, shape = QUANTISED["convolution"]
    found: list[bytes] = []
    for effort in (0, optimize.EFFORT):
        monkeypatch.setattr(optimize, "EFFORT", effort)
        made = stages(graph_of(make, shape), CompileOptions(target="aarch64-v8.2"))
        found.append(emulated(made.built, tmp_path, [data(*shape)], "cortex-a76"))
    assert found[0] == found[1]


SHORT: dict[str, tuple[Make, tuple[int, ...]]] = {
    "matmul": (lambda b, x: b.MatMul(x, plain(b, 70, 44)), (9, 70)),
    "few columns": (lambda b, x: b.MatMul(x, plain(b, 33, 27)), (5, 33)),
    "convolution": (lambda b, x: conv(b, x, 20), (1, 32, 9, 11)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cpu", "level"),
    [*((name, "max", "aarch64-v8.6") for name in SHORT), ("few columns", "cortex-a53", "aarch64-v8")],
)
def test_products_of_bf16_are_equal_on_all_machines(name: str, cpu: str, level: str, tmp_path: Path) -> None:
    """BFMLALB and BFMLALT multiply and add without rounding between, as FMLA does: even and odd chains."""
    make, shape = SHORT[name]
    here = in_memory(stages(graph_of(make, shape), CompileOptions(precision="bf16")).built)(data(*shape))
    made = stages(graph_of(make, shape), CompileOptions(precision="bf16", target=level))
    assert ("bfmlalb" in made.asm(), "bfmlalt" in made.asm()) == (level == "aarch64-v8.6",) * 2
    assert emulated(made.built, tmp_path, [data(*shape)], cpu) == b"".join(y.tobytes() for y in here.to_tuple())


@pytest.mark.slow
@pytest.mark.parametrize(("cpu", "level"), [("cortex-a76", "aarch64-v8.2"), ("max", "aarch64-v8.6")])
@pytest.mark.parametrize("kind", ["u4 in 64", "Q8_0"])
def test_products_of_groups_are_equal_on_all_machines(kind: str, cpu: str, level: str, tmp_path: Path) -> None:
    """Weights of language models: on -v8.2 instructions multiply signed bytes only, so those of 8 bits are less 128."""
    w = KINDS[kind]
    x, shape = rounded_data(7, w.length), (7, w.length)

    def make(b: Builder, x: OutPort) -> OutPort:
        return w.product(b, b.Abs(x))

    here = in_memory(stages(graph_of(make, shape), replace(ROUNDED, target="native")).built)(x)
    made = stages(graph_of(make, shape), replace(ROUNDED, target=level))
    assert made.groups.count("dots=") == 1
    assert emulated(made.built, tmp_path, [x], cpu) == b"".join(y.tobytes() for y in here.to_tuple())


@pytest.mark.slow
def test_blocks_of_a_single_row(tmp_path: Path) -> None:
    """A tile of one row, as the last one of a dynamic number of rows, has zeros for the second row of its blocks."""
    make, shape = QUANTISED["data of i8"]
    here = in_memory(stages(graph_of(make, shape), CompileOptions()).built)(data(*shape))
    made = stages(graph_of(make, shape), CompileOptions(target="aarch64-v8.6"))

    def pick(work: Work, target: Target, constants: frozenset[str]) -> Schedule:
        plan = choose(work, target, constants)
        return replace(plan, tile=(Tile("i", 4, Tail.CUT), *plan.tile[1:])) if plan.in_blocks else plan

    program = ProgramBuilder(made.optimized, made.steps, made.target, pick).build()
    assert made.groups.count("words of 1 by 8 bytes] dots=k") == 1
    found = emulated(build(program, made.target), tmp_path, [data(*shape)])
    assert found == b"".join(y.tobytes() for y in here.to_tuple())
