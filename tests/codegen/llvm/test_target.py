"""The machine as code is made for it: no feature but what is there and what the loader can look for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import onnx
import pytest

import aot
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Reduce, Var, dense
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.host import host, parse_target
from aot.codegen.llvm.object.features import features_used
from aot.codegen.llvm.object.optimize import assembly
from aot.codegen.machines.x86_64 import X86_64
from aot.codegen.nest.nest import apply
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Host, Target
from aot.runtime.describe import manifest_text, notes
from aot.runtime.loading.library import read_manifest
from aot.runtime.machine import missing_features
from aot.runtime.machines.x86_64 import X86_64 as ARCHITECTURE

SERVER = "x86_64-unknown-linux-gnu", "sapphirerapids"
AVX2 = ("avx", "avx2", "bmi", "bmi2", "cmov", "f16c", "fma", "lzcnt", "popcnt", "sse", "sse2", "sse4.2", "64bit")
ARM = ("neon", "fp-armv8", "lse")
AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
SUM = "define void @f(ptr %x, ptr %y) { %a = load <16 x float>, ptr %x\n store <16 x float> %a, ptr %y\n ret void }"

BYTES = "define void @f(ptr %x, ptr %y) {{ %a = load <64 x i8>, ptr %x\n {0}\n store <64 x i8> %b, ptr %y\n ret void }}"
COUNT = (
    BYTES.format("%b = call <64 x i8> @llvm.ctpop.v64i8(<64 x i8> %a)")
    + "\ndeclare <64 x i8> @llvm.ctpop.v64i8(<64 x i8>)"
)
TURNED = ", ".join(f"i32 {63 - k}" for k in range(64))
TURN = BYTES.format(f"%b = shufflevector <64 x i8> %a, <64 x i8> poison, <64 x i32> <{TURNED}>")
SHIFT = BYTES.format("%b = lshr <64 x i8> %a, splat (i8 3)")
ADD = BYTES.format("%b = add <64 x i8> %a, %a")
OWN = (*AVX2, *AVX512, "avx512vnni", "avx512vbmi", "avx512vpopcntdq", "avx512bitalg", "gfni", "sha", "aes", "vaes")


def native(has: Iterable[str], lacks: Iterable[str], hidden: Iterable[str]) -> Target:
    """The target of a server processor of which the system hides features from those who look for them."""
    known = dict.fromkeys(has, True) | dict.fromkeys(lacks, False)
    return Target.native(Host(*SERVER, known, frozenset(hidden), (48 << 10, 2 << 20, 32 << 20), cores=2))


def test_a_feature_that_the_loader_cannot_find_is_not_used() -> None:
    """Linux has no name for avx10.1, which says nothing that the names of AVX-512 do not."""
    target = native((*AVX2, *AVX512, "avx10.1"), (), ("avx10.1",))
    assert "avx10.1" not in target.isa_features
    assert target.lanes_bytes == 64
    assert "-avx10.1" in target.llvm_features
    assert "zmm" in assembly(SUM, target)


@pytest.mark.parametrize("hidden", [False, True])
def test_features_that_the_machine_lacks_are_not_used(hidden: bool) -> None:
    """Virtual machines may lack AVX-512 on processors whose name implies it."""
    absent, unseen = ((), AVX512) if hidden else (AVX512, ())
    target = native((*AVX2, *unseen), absent, unseen)
    assert (target.lanes_bytes, target.registers) == (32, 16)
    text = assembly(SUM, target)
    assert "ymm" in text
    assert "zmm" not in text


def test_native_target_has_the_features_of_this_machine() -> None:
    target = parse_target("native")
    assert missing_features(target.isa_features) == []
    assert set(target.features) | set(target.without) == set(host().features)


@pytest.mark.parametrize(
    ("cpu", "rows", "hint"),
    [
        ("znver5", 64, "prefetcht0"),
        ("znver4", 14, "prefetcht1"),
        ("sapphirerapids", 64, "prefetcht1"),
        ("x86-64", 64, "prefetcht1"),
    ],
)
def test_lines_are_fetched_into_the_cache_that_has_room_for_them(cpu: str, rows: int, hint: str) -> None:
    """Few rows use a panel so soon that more of the next one is on its way than the nearest cache has room for."""
    i, j, k = Var("i", rows), Var("j", 256), Var("k", 256)
    x, w, y = dense("x", rows, 256), dense("w", 256, 256), dense("y", rows, 256)
    target = replace(Target.parse("x86-64-v4"), cpu=cpu)
    work = Definition(y, (i, j), Reduce("add", (k,), x[i, k] * w[k, j]))
    plan = choose(work, target, frozenset({"w"}))
    assert plan.prefetch == "w"
    kernel = apply("f", work, plan, (x, w, y))
    function = emit(kernel, target=target)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    assert set(re.findall(r"prefetch\w+", assembly(text, target))) == {hint}


def test_this_machine_has_caches_and_cores() -> None:
    here = host()
    assert all(0 < small <= large for small, large in pairwise(here.caches))
    assert len(os.sched_getaffinity(0)) <= here.cores
    assert parse_target("native") == Target.native(here)


@pytest.mark.parametrize("name", ["native", "x86-64-v3", "aarch64"])
def test_a_target_does_not_depend_on_what_this_process_may_use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = parse_target(name)
    for variable in ("OMP_NUM_THREADS", "PYTHON_CPU_COUNT"):
        monkeypatch.setenv(variable, "1")
    for call in ("cpu_count", "process_cpu_count"):
        monkeypatch.setattr(os, call, lambda: 1, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    for read_once in (host, parse_target):
        read_once.cache_clear()
    assert parse_target(name) == before
    assert parse_target(name, cores=16) == replace(before, cores=16)
    assert before.cores == (host().cores if name == "native" else 2)


def test_a_named_target_does_not_depend_on_llvm() -> None:
    """The schedules and the lowering passes need a target, and no LLVM."""
    code = "import sys, codegen.schedules.choose, aot.lowering.pipeline; print('llvmlite' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, timeout=600) == "False\n"


@pytest.mark.parametrize(
    ("text", "features", "instruction"),
    [
        (SUM, (), "vmovaps"),
        (ADD, (), "vpaddb"),
        (COUNT, ("avx512vpopcntdq", "avx512bitalg"), "vpopcntb"),
        (TURN, ("avx512vbmi",), "vpermb"),
        (SHIFT, ("gfni",), "vgf2p8affineqb"),
    ],
)
def test_code_for_this_machine_asks_for_what_it_uses(text: str, features: tuple[str, ...], instruction: str) -> None:
    own = native(OWN, ("avx512bf16",), ())
    made = own.using(features_used(text, X86_64))
    assert set(made.isa_features) == {*AVX2, *AVX512, *features} - {"64bit"}
    assert set(made.features) | set(made.without) == {*own.features, "avx512bf16"}
    assert made.lanes_bytes == 64 and instruction in assembly(text, own)
    named = Target.parse("x86-64-v4-amx")
    assert named.using(features_used(text, X86_64)) is named


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(", {"avx512vnni", "avxvnni"}),
        ("call <8 x i32> @llvm.x86.avx512.vpdpwssd.256(", {"avx512vnni", "avxvnni"}),
        ("call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(", {"avx512bf16"}),
        ("call void @llvm.x86.tdpbssd(i8 0, i8 1, i8 2)", {"amx-bf16", "amx-int8", "amx-tile"}),
        ("call <64 x i8> @llvm.x86.avx512.vpermi2var.qi.512(", {"avx512vbmi"}),
        ("shufflevector <16 x float> %a, <16 x float> %b", set()),
        ("lshr <16 x i32> %a, %b", set()),
    ],
)
def test_features_are_told_by_intrinsics(text: str, features: set[str]) -> None:
    assert features_used(text, X86_64) == features


def test_a_library_for_this_machine_names_levels_and_what_goes_beyond(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> m (float[64] x) => (float[64] y) { y = Add(x, x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    aot.compile_model(tmp_path / "m.onnx", output=tmp_path / "m.so")
    manifest = read_manifest(tmp_path / "m.so")
    assert set(manifest.features) <= {*ARCHITECTURE.levels["x86-64-v4"], *ARM}
    if "sse2" in manifest.features:
        assert "  runs on  x86-64-" in manifest_text(manifest, tmp_path / "m.so")


@pytest.mark.parametrize(
    ("more", "levels", "said"),
    [
        ((), ["x86-64-v4", "x86-64-v4-bf16", "x86-64-v4-amx"], ""),
        (("avx512vnni",), ["x86-64-v4-bf16", "x86-64-v4-amx"], ""),
        (
            ("avx512vbmi",),
            ["x86-64-v4-amx"],
            "asks for avx512vbmi, which not all processors of x86-64-v4 have",
        ),
        (("avx512vnni", "gfni"), [], "asks for gfni, which not all processors of x86-64-v4-bf16 have"),
        (("amx-tile", "amx-int8"), ["x86-64-v4-amx"], ""),
    ],
)
def test_levels_that_run_code(more: tuple[str, ...], levels: list[str], said: str) -> None:
    features = [*ARCHITECTURE.levels["x86-64-v4"], *more]
    assert ARCHITECTURE.levels_that_run(features) == levels
    found = notes({"machine": 62, "features": features, "options": {"target": "native"}})
    assert [line.removeprefix("the code ").partition(":")[0] for line in found] == ([said] if said else [])
    assert notes({"machine": 62, "features": features, "options": {"target": "x86-64-v4"}}) == []


FIRST_USE = """
import time
from threading import Thread
import llvmlite.binding as llvm
from llvmlite.binding import ffi
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.object.optimize import compile_module

def slowly():
    for part in ("TargetInfos", "Targets", "TargetMCs"):
        getattr(ffi.lib, f"LLVMPY_InitializeAll{part}")()
        time.sleep(0.1)

def compile_empty():
    made.append(compile_module("define void @f() { ret void }", target, None))

llvm.initialize_all_targets = slowly
made, target = [], parse_target(NAME)
threads = [Thread(target=compile_empty) for _ in range(2)]
for n, thread in enumerate(threads):
    time.sleep(0.05 * n)
    thread.start()
for thread in threads:
    thread.join()
assert len(made) == 2
"""


def test_threads_ask_for_a_target_of_another_machine_at_once() -> None:
    """LLVM ends the process for one that another thread has made known in part."""
    name = "aarch64-v8.2" if X86_64.name == parse_target("native").machine.name else "x86-64-v3"
    run = subprocess.run([sys.executable, "-c", f"NAME = {name!r}\n{FIRST_USE}"], capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
