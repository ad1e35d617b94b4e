"""Kernels that are kept: no byte of a library depends on them, and what did not change is not compiled again."""

from __future__ import annotations

import json
import pickle
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Const, Kernel, Load, Size, Var, dense, prim
from aot.codegen.ir.schedule import Schedule, Tile
from aot.codegen.llvm.build import Built
from aot.codegen.llvm.object import kernel_module, workers
from aot.codegen.llvm.object.kernel_module import facts_from, facts_json
from aot.codegen.llvm.object.size_json import size_from, size_json
from aot.codegen.llvm.object.store import Store
from aot.codegen.nest import scheduled_kernel
from aot.codegen.nest.nest import apply
from aot.codegen.nest.scheduled_kernel import ScheduledKernel, ScheduledWorks, facts_of, kernel_digest
from aot.compilation.driver import stages
from aot.compilation.kernel_cache import VARIABLE, kernel_store, user_folder
from aot.ir.graph import Graph
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests import networks

N, M = Var("size0", None), Var("size1", 65)
SCHEDULES = ((Schedule(),), (Schedule(parallel="i"),), (Schedule(tile=(Tile("i", 2),)),))


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first buffer of each kernel that is emitted."""
    found: list[str] = []
    emit = kernel_module.emit

    def told(kernel: Any, **options: Any) -> Any:
        found.append(kernel.buffers[0].name)
        return emit(kernel, **options)

    monkeypatch.setattr(kernel_module, "emit", told)
    return found


def library(folder: Path | str, out: Path, graph: Graph | None = None) -> bytes:
    """The bytes of a library compiled with the kernels in `folder`."""
    options = CompileOptions(target="x86-64-v3", kernel_cache=Path(folder))
    stages(graph if graph is not None else networks.text(), options).built.write_shared(out)
    return out.read_bytes()


def three_processors() -> set[int]:
    return {0, 1, 2}


def half(folder: Path) -> None:
    for path in sorted(folder.glob("*/*"))[::2]:
        path.unlink()


def damage(folder: Path) -> None:
    for path in folder.glob("*/*"):
        path.write_bytes(path.read_bytes()[:-1] + b"x")


def others(folder: Path) -> None:
    folder.chmod(0o777)


@pytest.mark.parametrize("change", [half, damage, others])
def test_bytes_do_not_depend_on_what_is_kept(tmp_path: Path, change: Callable[[Path], None]) -> None:
    folder, out = tmp_path / "kernels", tmp_path / "m.so"
    without = library("off", out)
    assert library(folder, out) == without, "cold"
    assert library(folder, out) == without, "warm"
    change(folder)
    assert library(folder, out) == without


@pytest.mark.parametrize("processes", [0, 2])
def test_bytes_do_not_depend_on_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    without = library("off", tmp_path / "m.so")
    monkeypatch.setattr(workers, "WORTH_STARTING", 0)
    monkeypatch.setattr(workers, "MAX_PROCESSES", processes)
    monkeypatch.setattr(workers.processor, "allowed_processors", three_processors)
    assert library(tmp_path / "kernels", tmp_path / "m.so") == without
    half(tmp_path / "kernels")
    assert library(tmp_path / "kernels", tmp_path / "m.so") == without


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    def built() -> bytes:
        made = stages(networks.text(), CompileOptions(kernel_cache=tmp_path / "kernels")).built
        assert isinstance(made, Built)
        return made.code

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        full = built()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    kept = Store(tmp_path / "kernels")
    assert not kept.damaged() and all(entry.bytes <= 1000 for entry in kept.entries())
    assert built() == full


def test_other_weights_have_the_same_kernels(tmp_path: Path, emitted: list[str]) -> None:
    library(tmp_path / "kernels", tmp_path / "m.so")
    count = len(emitted)
    assert count > 5
    graph = networks.text()
    for node in graph.nodes.values():
        if (
            isinstance(node.constant_data, np.ndarray)
            and node.constant_data.dtype == np.float32
            and node.constant_data.size > 100
        ):
            node.constant_data = node.constant_data * 2
    library(tmp_path / "kernels", tmp_path / "m.so", graph)
    assert len(emitted) == count


def test_loops_are_made_for_those_who_ask_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    apply = scheduled_kernel.apply

    def told(name: str, *args: Any) -> Kernel:
        made.append(name)
        return apply(name, *args)

    monkeypatch.setattr(scheduled_kernel, "apply", told)
    first = library(tmp_path / "kernels", tmp_path / "m.so")
    assert len(made) > 5
    made.clear()
    assert library(tmp_path / "kernels", tmp_path / "m.so") == first
    assert not made
    loops = [stages(networks.text(), kernel_cache=folder).text("loops") for folder in (tmp_path / "kernels", "off")]
    assert made and loops[0] == loops[1]


def test_works_of_one_form_are_told_apart() -> None:
    x, y, i = dense("x0", 8), dense("y0", 8), Var("i", 8)
    works = [Definition(y, (i,), Load(x, (i,)) * Const(factor, DType.F32)) for factor in (0.0, -0.0, 1.0)]
    works.append(replace(works[0], axes=(Var("i", 4),)))
    kernels = [ScheduledKernel("", ScheduledWorks((w,), s, (x, y))) for w in works for s in SCHEDULES]
    assert len({kernel_digest(k) for k in kernels}) == len(set(kernels)) == len(works) * len(SCHEDULES)


def test_kernels_are_equal_without_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled_kernel, "apply", None)
    x, y, i = dense("x0", 8), dense("y0", 8), Var("i", 8)
    one, other = (
        ScheduledKernel(n, ScheduledWorks((Definition(y, (i,), x[i] * 2.0),), (Schedule(),), (x, y))) for n in "ab"
    )
    assert one != other and one == other.named("a") == pickle.loads(pickle.dumps(one))
    assert kernel_digest(one) == kernel_digest(other) == kernel_digest(pickle.loads(pickle.dumps(one)))


def test_loops_and_facts_are_those_of_apply() -> None:
    x, y, i = dense("x0", N), dense("y0", N), Var("i", N)
    works, schedules = (Definition(y, (i,), x[i] * 2.0),), (Schedule(tile=(Tile("i", 4),), parallel="i"),)
    kernel = ScheduledKernel("k", ScheduledWorks(works, schedules, (x, y), (N,)))
    applied = apply("k", works, schedules, (x, y), (N,))
    assert (kernel.name, kernel.sizes, kernel.buffers, kernel.body) == applied.parts()
    assert facts_of(kernel) == facts_of(applied)
    sent = facts_from({"facts": json.loads(json.dumps(facts_json(facts_of(applied), (N,))))}, (N,))
    assert sent == facts_of(applied)


def test_a_kernel_of_another_target_is_another_one(tmp_path: Path, emitted: list[str]) -> None:
    for target, new in (("x86-64-v2", True), ("x86-64-v3", True), ("x86-64-v2", False)):
        emitted.clear()
        _ = stages(networks.text(), CompileOptions(target=target, kernel_cache=tmp_path / "kernels")).built
        assert bool(emitted) == new


def test_kernel_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_folder() == tmp_path / "aot" / "kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_folder() == Path.home() / ".cache" / "aot" / "kernels"
    for variable, chosen, folder in (
        ("off", None, None),
        ("/a", None, "/a"),
        ("/a", "/b", "/b"),
        ("/a", "off", None),
        ("off", "/b", "/b"),
    ):
        monkeypatch.setenv(VARIABLE, variable)
        found = kernel_store(None if chosen is None else Path(chosen))
        assert (None if found is None else str(found.folder)) == folder
    monkeypatch.delenv(VARIABLE)
    found = kernel_store()
    assert found is not None and found.folder == user_folder()


@pytest.mark.parametrize("size", [0, 4096, N, N * 4 + 63, prim("max", (N + 15) // 16 * 64, M * N), prim("min", N, 8)])
def test_sizes_are_kept(size: Size) -> None:
    assert size_from(size_json(size, (N, M)), (N, M)) == size
