"""`machine_facts` reads features, caches and limits from the files of Linux."""

from __future__ import annotations

from pathlib import Path

import pytest

from aot.runtime.machine_facts import machine_facts


@pytest.fixture
def system(tmp_path: Path) -> Path:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name : Zen 5\nflags : fpu avx2 amx_bf16 fma\n")
    for n, (level, kind, size) in enumerate([(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2M")]):
        (tmp_path / f"index{n}").mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (tmp_path / f"index{n}" / name).write_text(f"{value}\n")
    (tmp_path / "memory.max").write_text("1000000\n")
    return tmp_path


def test_facts_are_those_of_the_system(system: Path) -> None:
    found = machine_facts(system / "cpuinfo", system, system)
    assert (found.processor, found.features) == ("Zen 5", ("amx_bf16", "avx2", "fma", "fpu"))
    assert (found.caches, found.memory_limit) == ({"L1": 48 << 10, "L2": 2 << 20}, 1000000)
    assert "Zen 5" in str(found) and "amx_bf16 avx2 fma\n" in str(found) and "L2 2048 KiB" in str(found)
    assert found.threads >= 1 and found.memory > 1 << 20 and found.page >= 4096


def test_a_system_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    found = machine_facts(tmp_path / "none", tmp_path, tmp_path)
    assert (found.processor, found.features, found.caches, found.memory_limit) == ("", (), {}, None)
    assert "unknown processor" in str(found) and "not told" in str(found)
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_facts(cgroup=tmp_path).memory_limit is None
