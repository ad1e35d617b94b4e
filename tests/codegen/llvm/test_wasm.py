"""WebAssembly modules: their structure, what is refused, and what they compute in Node.js: the bytes of x86-64-v2."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.llvm.build import build
from aot.codegen.llvm.header import files_for_callers, loader_files
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.graph import Graph
from aot.options import CompileOptions
from aot.runtime import abi
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import CorruptError, PlatformError, UnsupportedError, UsageError
from aot.runtime.loading.foreign.wasm import WasmFile
from aot.runtime.loading.library import read_manifest, verify
from tests.codegen.llvm.test_cross import QUANTISED
from tests.codegen.web import Call, run_in_node
from tests.lowering.quantised import data
from tests.lowering.storage.short_networks import CASES as SHORT
from tests.networks import NETWORKS
from tests.passes.check import graph_of, values
from tests.programs import chain

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "model.xml"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wasm") / "m.wasm"
    build(chain(), Target.parse("wasm")).write_shared(path)
    return path


def test_sections(module: Path) -> None:
    with module.open("rb") as stream:
        file = WasmFile(stream, "m.wasm")
        weights = np.frombuffer(file.section(abi.WEIGHTS_SECTION), np.float32)
    assert weights[16] == 2
    assert verify(module).json["triple"] == "wasm32-unknown-unknown-wasm"


def test_equal_bytes(module: Path, tmp_path: Path) -> None:
    build(chain(), Target.parse("wasm")).write_shared(tmp_path / "other.wasm")
    assert module.read_bytes() == (tmp_path / "other.wasm").read_bytes()


def test_what_is_refused(module: Path, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="is compiled for wasm, this system is linux; compile it for linux"):
        runtime.load(module)
    built = build(chain(), Target.parse("wasm"))
    with pytest.raises(UnsupportedError, match=r"wasm has libraries only, m\.wasm, got an object to link"):
        built.write_object(tmp_path / "m.o")
    with pytest.raises(UsageError, match=r"a model for wasm has m\.mjs, m\.js, got m\.h"):
        files_for_callers(Path("m.h"), built)
    with pytest.raises(UnsupportedError, match="external weights are for Linux and Android alone, got wasm"):
        stages(DIGITS, CompileOptions(target="wasm", external_weights=True))
    whole = module.read_bytes()
    for size in (4, 20, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.wasm").write_bytes(whole[:size])
        with pytest.raises(CorruptError, match="must be a whole compiled model, got"):
            read_manifest(tmp_path / "cut.wasm")


def test_the_loader_has_the_numbers_of_the_abi() -> None:
    text = loader_files(Path("m.mjs"))[Path("m.mjs")]
    assert f"[{abi.ABI_VERSION}, {abi.MANIFEST_VERSION}, {abi.ERROR_CAPACITY}]" in text
    fields = re.findall(r"`(.*?)`", text, re.DOTALL)[0].split()
    rows = [(field[0], "p" if field[1] is ctypes.c_void_p else "i") for field in abi.Table._fields_]
    assert fields == [word for row in rows for word in row]


def compiled(path: Path, model: Callable[[], Graph | Path], target: str = "wasm") -> Path:
    stages(model(), CompileOptions(target=target)).built.write_shared(path)
    return path


def quantised(name: str) -> tuple[Callable[[], Graph], list[Array]]:
    make, shape = QUANTISED[name]
    return lambda: graph_of(make, shape), [data(*shape)]


def short(name: str) -> tuple[Callable[[], Graph], list[Array]]:
    make, shape = SHORT[name]
    return lambda: graph_of(make, shape), values(shape)


def plain(name: str) -> tuple[Callable[[], Graph], list[Array]]:
    make = NETWORKS[name]
    return make, values(make().parameters[0].out_port(0).type.static_shape)


MODELS: dict[str, tuple[Callable[[], Graph | Path], list[Array]]] = {
    "digits": (lambda: DIGITS, values((1, 1, 8, 8))),
    **{name: plain(name) for name in NETWORKS},
    **{name: quantised(name) for name in QUANTISED},
    **{name: short(name) for name in ("attention", "recurrent")},
}


@pytest.mark.slow
def test_networks_compute_what_x86_computes(tmp_path: Path) -> None:
    """Byte by byte: instructions and vectors of both do the same."""
    jobs: list[tuple[str, list[Call]]] = []
    for name, (model, inputs) in MODELS.items():
        infos = read_manifest(compiled(tmp_path / f"{name}.wasm", model)).inputs
        jobs.append((f"{name}.wasm", [{info.name: x for info, x in zip(infos, inputs, strict=True)}]))
    for (name, (model, inputs)), answers in zip(MODELS.items(), run_in_node(tmp_path, jobs), strict=True):
        here = in_memory(stages(model(), CompileOptions(target="x86-64-v2")).built)(*inputs).to_tuple()
        assert isinstance(answers[0], dict), f"{name}: {answers[0]}"
        for found, wanted in zip(answers[0].values(), here, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=name)
