"""From a graph or a file to a shared library that runs here, in another process and on other machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.llvm.host import parse_target
from aot.compilation.driver import compile_model, stages
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.runtime.errors import PlatformError
from tests.archives import arrays_of
from tests.cases import LOOSE
from tests.networks import NETWORKS
from tests.passes.check import values

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "examples" / "digits" / "model.xml"
FAST = CompileOptions(level=None)
each_network = pytest.mark.parametrize("name", NETWORKS)


def inputs_of(name: str) -> list[Array]:
    return values(*(p.out_port(0).type.static_shape for p in NETWORKS[name]().parameters))


def compiled(name: str, path: Path, options: CompileOptions = FAST) -> Path:
    stages(NETWORKS[name](), options).built.write_shared(path)
    return path


def outputs(path: Path, inputs: list[Array], threads: int = 1) -> list[Array]:
    model = runtime.load(path, threads=threads)
    found = model(*inputs)
    return [np.array(found[n]) for n in range(len(model.outputs))]


def in_fresh_process(path: Path, inputs: list[Array], folder: Path) -> list[Array]:
    """Runs the library by the runtime alone: the compiler is not imported."""
    np.savez(folder / "in.npz", *inputs)
    code = (
        "import sys, numpy as np, runtime\n"
        "given = np.load(sys.argv[2])\n"
        "model = runtime.load(sys.argv[1], threads=1)\n"
        "found = model(*(given[n] for n in given.files))\n"
        "np.savez(sys.argv[3], *(np.array(found[n]) for n in range(len(model.outputs))))\n"
        "assert not {'aot.options', 'aot.codegen', 'llvmlite', 'lxml'} & set(sys.modules)\n"
    )
    out = folder / "out.npz"
    subprocess.run([sys.executable, "-c", code, path, folder / "in.npz", out], check=True, cwd=ROOT)
    with np.load(out) as found:
        return [found[n] for n in found.files]


def same(a: list[Array], b: list[Array]) -> bool:
    return all(x.dtype == y.dtype and np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


@each_network
def test_results_are_those_of_the_references(name: str, tmp_path: Path) -> None:
    inputs = inputs_of(name)
    expected = interpret(NETWORKS[name](), inputs)
    found = outputs(compiled(name, tmp_path / "m.so"), inputs)
    for n, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert LOOSE.allows(a, b), f"output {n}"


@pytest.mark.slow
@each_network
def test_any_number_of_threads_and_any_process_give_equal_bits(name: str, tmp_path: Path) -> None:
    inputs, path = inputs_of(name), compiled(name, tmp_path / "m.so")
    one = outputs(path, inputs)
    assert same(one, outputs(path, inputs, threads=2))
    assert same(one, in_fresh_process(path, inputs, tmp_path))
    in_memory = compile_model(NETWORKS[name](), FAST, threads=1)(*inputs)
    assert same(one, [np.array(in_memory[n]) for n in range(len(one))])


@each_network
def test_a_request_may_run_again(name: str, tmp_path: Path) -> None:
    model, inputs = runtime.load(compiled(name, tmp_path / "m.so"), threads=2), inputs_of(name)
    count = len(model.outputs)
    first = [np.array(model(*inputs)[n]) for n in range(count)]
    model(*(np.zeros_like(x) for x in inputs))
    assert same(first, [np.array(model(*inputs)[n]) for n in range(count)])


@each_network
def test_results_without_passes_of_llvm_differ_by_rounding(name: str, tmp_path: Path) -> None:
    inputs = inputs_of(name)
    fast = outputs(compiled(name, tmp_path / "a.so"), inputs)
    slow = outputs(compiled(name, tmp_path / "b.so", CompileOptions(level=1)), inputs)
    assert all(LOOSE.allows(a, b) for a, b in zip(fast, slow, strict=True))


@pytest.mark.slow
def test_compiling_does_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    code = "import sys, pathlib, tests.whole.test_end_to_end as t; t.compiled(sys.argv[1], pathlib.Path(sys.argv[2]))"
    for seed in ("0", "1", "77"):
        arguments = [sys.executable, "-c", code, "picture", tmp_path / f"{seed}.so"]
        subprocess.run(arguments, check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed})
    assert len({(tmp_path / f"{seed}.so").read_bytes() for seed in ("0", "1", "77")}) == 1


@each_network
def test_compiling_twice_gives_equal_bytes(name: str, tmp_path: Path) -> None:
    a, b = compiled(name, tmp_path / "a.so"), compiled(name, tmp_path / "b.so")
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("picture", "x86-64-v2"),
        ("picture", "x86-64-v4"),
        ("text", "x86-64-v3"),
        ("text", "x86-64-v4"),
        ("mixed_types", "x86-64-v2"),
    ],
)
def test_targets_give_equal_results_within_rounding(name: str, target: str, tmp_path: Path) -> None:
    path = compiled(name, tmp_path / "m.so", CompileOptions(level=None, target=target))
    if not set(parse_target(target).isa_features) <= set(parse_target("native").features):
        with pytest.raises(PlatformError):
            runtime.load(path)
        return
    expected = interpret(NETWORKS[name](), inputs_of(name))
    found = outputs(path, inputs_of(name))
    assert all(LOOSE.allows(a, b) for a, b in zip(found, expected, strict=True))


@each_network
def test_code_for_another_machine(name: str, tmp_path: Path) -> None:
    built = stages(NETWORKS[name](), CompileOptions(level=None, target="aarch64")).built
    assert built.arch == "aarch64" and built.code[:4] == b"\x7fELF"
    assert int.from_bytes(built.code[18:20], "little") == 183  # EM_AARCH64


def test_layout_of_the_callers_data(tmp_path: Path) -> None:
    (image,) = inputs_of("picture")
    expected = outputs(compiled("picture", tmp_path / "a.so"), [image])
    turned = compiled("picture", tmp_path / "b.so", CompileOptions(level=None, layouts=(("x0", "NHWC"),)))
    found = outputs(turned, [np.ascontiguousarray(image.transpose(0, 2, 3, 1))])
    assert all(LOOSE.allows(a, b) for a, b in zip(found, expected, strict=True))


def test_every_stage_is_written_beside(tmp_path: Path) -> None:
    folder = tmp_path / "temps"
    compiled("picture", tmp_path / "m.so", CompileOptions(level=None, save_temps=folder))
    texts = {p.name: p.read_text() for p in folder.iterdir()}
    assert "= Softmax" in texts["00-imported.txt"] and "= Softmax" not in texts["10-optimized.txt"]
    assert "group input over ty" in texts["20-groups.txt"] and "for " in texts["30-loops.txt"]
    assert "define " in texts["40-code.ll"]


@pytest.mark.parametrize("name", ["picture", "text"])
def test_results_do_not_depend_on_the_number_of_rewrites(name: str) -> None:
    inputs = inputs_of(name)
    expected = interpret(NETWORKS[name](), inputs)
    whole = stages(NETWORKS[name](), FAST)
    assert whole.optimized
    total = whole.report.rewrites
    for limit in sorted({0, 1, total // 2, total}):
        options = CompileOptions(level=None, stop_after_rewrite=limit)
        found = compile_model(NETWORKS[name](), options, threads=1)(*inputs)
        assert all(LOOSE.allows(np.asarray(found[n]), b) for n, b in enumerate(expected)), f"after {limit} rewrites"


def test_the_command_line_makes_the_same_library(tmp_path: Path) -> None:
    path, other = tmp_path / "a.so", tmp_path / "b.so"
    subprocess.run([sys.executable, "-m", "aot", "compile", MODEL, "-o", path], check=True, cwd=ROOT)
    stages(MODEL, CompileOptions()).built.write_shared(other)
    assert path.read_bytes() == other.read_bytes()
    digits = arrays_of(MODEL.parent / "digits.npz")
    model = runtime.load(path)
    assert [int(model(x[None])[0].argmax()) for x in digits["images"]] == digits["labels"].tolist()
