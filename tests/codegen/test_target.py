"""The machine as code is made for it: no feature but what is there and what the loader can look for."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import codegen.target
from codegen.llvm.host import host
from codegen.llvm.optimize import assembly
from codegen.target import Target
from runtime.machine import missing_features

SERVER = "x86_64-unknown-linux-gnu", "sapphirerapids"
AVX2 = ("avx", "avx2", "bmi", "bmi2", "cmov", "f16c", "fma", "lzcnt", "popcnt", "sse", "sse2", "sse4.2", "64bit")
AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
SUM = "define void @f(ptr %x, ptr %y) { %a = load <16 x float>, ptr %x\n store <16 x float> %a, ptr %y\n ret void }"


def native(monkeypatch: pytest.MonkeyPatch, has: Iterable[str], lacks: Iterable[str], hidden: Iterable[str]) -> Target:
    """The target of a server processor of which the system hides features from those who look for them."""
    known = dict.fromkeys(has, True) | dict.fromkeys(lacks, False)
    monkeypatch.setattr(codegen.target, "host", lambda: (*SERVER, known))
    monkeypatch.setattr(codegen.target, "missing_features", lambda names: [n for n in names if n in hidden])
    return Target.parse("native")


def test_a_feature_that_the_loader_cannot_find_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux has no name for avx10.1, which says nothing that the names of AVX-512 do not."""
    target = native(monkeypatch, (*AVX2, *AVX512, "avx10.1"), (), ("avx10.1",))
    assert "avx10.1" not in target.isa_features
    assert target.lanes_bytes == 64
    assert "-avx10.1" in target.llvm_features
    assert "zmm" in assembly(SUM, target)


@pytest.mark.parametrize("hidden", [False, True])
def test_what_the_name_of_a_processor_implies_is_not_used_where_it_is_not_there(
    monkeypatch: pytest.MonkeyPatch, hidden: bool
) -> None:
    """As in virtual machines without AVX-512 on processors that have it."""
    absent, unseen = ((), AVX512) if hidden else (AVX512, ())
    target = native(monkeypatch, (*AVX2, *unseen), absent, unseen)
    assert (target.lanes_bytes, target.registers) == (32, 16)
    text = assembly(SUM, target)
    assert "ymm" in text
    assert "zmm" not in text


def test_what_is_made_for_this_machine_runs_on_it() -> None:
    target = Target.parse("native")
    assert missing_features(target.isa_features) == []
    _, _, known = host()
    assert set(target.features) | set(target.without) == set(known)
