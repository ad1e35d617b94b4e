"""Libraries for RISC-V with vectors: their structure, and the bytes of aarch64 under an emulator."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from aot.codegen.llvm.build import build
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.ir.graph import Graph
from aot.options import CompileOptions
from aot.runtime.arrays.tensors import Array
from aot.runtime.loading.elf import ElfFile
from aot.runtime.loading.library import read_manifest
from aot.runtime.machines.riscv64 import RISCV64
from aot.runtime.systems import processor
from tests.codegen.llvm.test_cross import QUANTISED, emulated, linker
from tests.lowering.numbers.short_networks import CASES as SHORT
from tests.lowering.quantized import data
from tests.networks import NETWORKS, functions
from tests.passes.check import graph_of, values
from tests.programs import chain

PROCESSORS = [f"rv64,v=true,vlen={bits},vext_spec=v1.0" for bits in (128, 256)]
FLOATS_IN_REGISTERS = 4


def test_structure(tmp_path: Path) -> None:
    build(chain(), Target.parse("riscv64")).write_shared(tmp_path / "m.so", linker=linker())
    with (tmp_path / "m.so").open("rb") as stream:
        file = ElfFile(stream, "m.so")
        names = [s.name for s in file.dynamic_symbols() if s.defined]
    assert file.machine == 243
    assert names == [f"aot_query_{read_manifest(tmp_path / 'm.so').tag}"]
    assert struct.unpack_from("<I", (tmp_path / "m.so").read_bytes(), 48)[0] & 6 == FLOATS_IN_REGISTERS


def test_features_are_read_from_the_name_of_the_instruction_set(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    for text, missing in (("rv64imafdcv_zicbom_zba", []), ("rv64gc_zba", ["v"]), ("rv64imac", ["f", "d", "v"])):
        file.write_text(f"processor\t: 0\nisa\t\t: {text}\nmmu\t\t: sv48\n")
        assert RISCV64.missing(RISCV64.features_of("riscv64"), processor.features(file)) == missing


def network(name: str) -> tuple[Graph, list[Array]]:
    if name in QUANTISED:
        make, shape = QUANTISED[name]
        return graph_of(make, shape), [data(*map(int, shape))]
    if name in (*NETWORKS, functions.__name__):
        made = functions() if name == functions.__name__ else NETWORKS[name]()
        return made, values(made.parameters[0].out_port(0).type.static_shape)
    make, shape = SHORT[name]
    return graph_of(make, shape), values(shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "threads"), [("picture", 1), ("mixed_types", 3), ("attention", 1), ("convolution", 3), ("functions", 1)]
)
def test_results_are_those_of_aarch64(name: str, threads: int, tmp_path: Path) -> None:
    """The bytes are equal on processors with vectors of 128 and of 256 bits: the code uses the first 128 bits.

    Threads wait by spinning, which an emulator makes long, so that networks of many kernels have one.
    """
    graph, inputs = network(name)
    expected = emulated(stages(graph, CompileOptions(target="aarch64-v8")).built, tmp_path, inputs, "max", threads)
    made = stages(network(name)[0], CompileOptions(target="riscv64-v")).built
    for cpu in PROCESSORS:
        assert emulated(made, tmp_path, inputs, cpu, threads) == expected
