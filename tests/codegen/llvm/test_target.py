"""The machine as code is made for it: no feature but what is there and what the loader can look for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from codegen.ir.definition import Definition
from codegen.ir.loops import Reduce, Var, dense
from codegen.llvm.emit.kernel import emit
from codegen.llvm.host import host, parse_target
from codegen.llvm.object.optimize import assembly
from codegen.nest.nest import apply
from codegen.schedules.choose import choose
from codegen.target import Host, Target
from runtime.machine import missing_features

SERVER = "x86_64-unknown-linux-gnu", "sapphirerapids"
AVX2 = ("avx", "avx2", "bmi", "bmi2", "cmov", "f16c", "fma", "lzcnt", "popcnt", "sse", "sse2", "sse4.2", "64bit")
AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
SUM = "define void @f(ptr %x, ptr %y) { %a = load <16 x float>, ptr %x\n store <16 x float> %a, ptr %y\n ret void }"


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
def test_what_the_name_of_a_processor_implies_is_not_used_where_it_is_not_there(hidden: bool) -> None:
    """As in virtual machines without AVX-512 on processors that have it."""
    absent, unseen = ((), AVX512) if hidden else (AVX512, ())
    target = native((*AVX2, *unseen), absent, unseen)
    assert (target.lanes_bytes, target.registers) == (32, 16)
    text = assembly(SUM, target)
    assert "ymm" in text
    assert "zmm" not in text


def test_what_is_made_for_this_machine_runs_on_it() -> None:
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
    assert here.cores == len(os.sched_getaffinity(0))
    assert parse_target("native") == Target.native(here)


def test_a_named_target_does_not_depend_on_llvm() -> None:
    """The schedules and the lowering passes need a target, and no LLVM."""
    code = "import sys, codegen.schedules.choose, aot.lowering.pipeline; print('llvmlite' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, timeout=600) == "False\n"
