"""Parts of a model: compiled by several processes, joined as one object."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from aot.codegen.ir.loops import Expr, For, Kernel, Prim, Store, Var, dense
from aot.codegen.ir.program import Program
from aot.codegen.llvm.build import build
from aot.codegen.llvm.driver.module import pool_module
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.linking.elf_writer import RELA, RELOCATION, SECTION_SYMBOL
from aot.codegen.llvm.linking.relocatable import taken_apart
from aot.codegen.llvm.object import optimize, workers
from aot.codegen.llvm.object.combine import combine
from aot.codegen.llvm.object.kernel_module import Head, KernelModule
from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.llvm.object.parts import compiled_once
from aot.codegen.llvm.object.workers import Workers
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError
from tests import networks
from tests.programs import chain

SHF_MERGE = 0x10
NATIVE = parse_target("native")
X, Y, AXIS = dense("x", 100), dense("y", 100), Var("i", 100)
CALLER = (
    "declare hidden i32 @twice(i32)\n"
    "define i32 @f(i32 %x) nounwind {\n%y = call i32 @twice(i32 %x)\n%z = add i32 %y, 1\nret i32 %z\n}\n"
)
CALLED = (
    "@table = internal constant [2 x i32] [i32 2, i32 3]\n"
    "define hidden i32 @twice(i32 %x) nounwind {\n%i = and i32 %x, 1\n%p = getelementptr i32, ptr @table, i32 %i\n"
    "%t = load i32, ptr %p\n%y = mul i32 %x, %t\nret i32 %y\n}\n"
)


def run(code: bytes, value: int) -> int:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    jit = llvm.create_lljit_compiler(use_jit_link=True)
    tracker = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("f").link(jit, "combined")
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(tracker["f"])(value)


@pytest.mark.parametrize("order", [(CALLER, CALLED), (CALLED, CALLER)], ids=["caller first", "called first"])
def test_objects_are_joined(order: tuple[str, str]) -> None:
    code = combine([(compile_module(text, NATIVE, None), {}) for text in order])
    assert [run(code, n) for n in (4, 5)] == [9, 16]


MIXED = """
define hidden <16 x i8> @{name}(<16 x i8> %a, <16 x i8> %b) nounwind {{
%x = shufflevector <16 x i8> %a, <16 x i8> %b, <16 x i32> <{first}>
%y = shufflevector <16 x i8> %x, <16 x i8> %b, <16 x i32> <{second}>
ret <16 x i8> %y
}}
"""


@pytest.mark.parametrize("target", ["aarch64-v8", "x86-64-v2", "x86-64-v3"])
def test_constants_of_several_kernels_may_be_merged(target: str) -> None:
    """A linker keeps equal constants once: bytes behind a symbol, other than that of a section, may then be others."""
    dice = np.random.default_rng(0)
    texts: list[str] = []
    for name in ("f", "g"):
        first, second = (", ".join(f"i32 {n}" for n in dice.permutation(32)[:16]) for _ in range(2))
        texts.append(MIXED.format(name=name, first=first, second=second))
    parts = taken_apart(combine([(compile_module(text, Target.parse(target), None), {}) for text in texts]))
    symbols = [fields for _, fields in parts.symbol_rows()]
    merged = {i for i, row in enumerate(parts.rows) if row[2] & SHF_MERGE}
    found: list[tuple[int, int]] = []  # type of a symbol and bytes behind it, without what an instruction is long
    for row in (r for r in parts.rows if r[1] == RELA):
        for _, info, addend in RELOCATION.iter_unpack(parts.contents(row)):
            _, kind, _, section, _, _ = symbols[info >> 32]
            found += [(kind, addend if target.startswith("aarch64") else addend + 4)] if section in merged else []
    assert len(found) >= 4
    assert all(kind == SECTION_SYMBOL or behind == 0 for kind, behind in found)


def test_a_symbol_is_defined_once() -> None:
    code = compile_module(CALLED, NATIVE, None)
    with pytest.raises(InternalError, match="a symbol is defined once, got twice twice"):
        combine([(code, {}), (code, {})])


LOOP = """
define hidden void @f(ptr %p, i64 %n, i64 %s) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %m = mul i64 %i, %s
  %a = getelementptr i32, ptr %p, i64 %m
  store i32 1, ptr %a
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}
"""


def test_passes_are_left_out_for_one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that steps by a dynamic size adds it where LLVM reduces strength, and multiplies where it does not."""
    monkeypatch.setattr(optimize, "EFFORT", 3)
    target = Target.parse("x86-64-v4")
    before = compile_module(LOOP, target, 1)
    assert compile_module(LOOP, target, None) != before
    assert compile_module(LOOP, target, 1) == before


@pytest.fixture(scope="module")
def program() -> Program:
    return stages(networks.text()).program


def test_the_number_of_processes_changes_nothing(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTH_STARTING", 0)
    monkeypatch.setattr(workers.processor, "allowed_processors", lambda: {0, 1, 2})
    made: list[bytes] = []
    for processes in (0, 1, 2):
        monkeypatch.setattr(workers, "MAX_PROCESSES", processes)
        made.append(build(program, NATIVE).code)
    assert made[0] == made[1] == made[2]


def test_the_pool_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def told(text: str, target: Target, level: int | None) -> bytes:
        texts.append(text)
        return compile_module(text, target, level)

    monkeypatch.setattr(optimize, "compile_module", told)  # others have it by name
    compiled_once.cache_clear()
    one, other = (in_memory(build(chain(calls=calls), NATIVE)) for calls in (2, 3))
    assert texts == [pool_module(NATIVE)]
    x = np.ones(1000, np.float32)
    assert np.array_equal(one(x)[0] * 2, other(x)[0])


def test_kernels_are_local(program: Program) -> None:
    built = build(program, NATIVE)
    symbols = dict(taken_apart(built.code).symbol_rows())
    for kernel in program.kernels:
        assert symbols[kernel.name][1] >> 4 == 0


@pytest.fixture
def starts_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first kernel start a process."""
    monkeypatch.setattr(workers, "WORTH_STARTING", 0)


def module_of(value: Expr) -> KernelModule:
    """The module of a kernel that stores a value for each of 100 indices `AXIS`."""
    return KernelModule(Kernel("k", (), (X, Y), (For(AXIS, (Store(Y, (AXIS,), value),)),)), NATIVE, 1, flushes=False)


def in_processes(modules: Sequence[KernelModule], processes: int) -> tuple[list[list[Head | bytes]], list[int]]:
    """The results of kernels that other processes compile, and exit codes of these."""
    with Workers(processes) as compiling:
        tasks = [compiling.submit(module) for module in modules]
        results: list[list[Head | bytes]] = [[task.head.result(60), task.code.result(60)] for task in tasks]
    return results, [process.returncode for process in compiling.running]


@pytest.mark.usefixtures("starts_soon")
def test_kernels_are_compiled_by_other_processes(program: Program) -> None:
    """Kernels with loops, and those of a network, of works and schedules."""
    modules = [module_of(X[AXIS] * float(n)) for n in range(20)]
    modules += [KernelModule(kernel.named(""), NATIVE, None, flushes=False) for kernel in program.kernels]
    results, codes = in_processes(modules, 2)
    assert results == [list(module.results()) for module in modules]
    assert codes == [0, 0]


@pytest.mark.usefixtures("starts_soon")
@pytest.mark.parametrize("processes", [0, 1])
def test_an_error_of_any_process_is_told(processes: int) -> None:
    with pytest.raises(InternalError, match="no rule for nonsense of f32"), Workers(processes) as compiling:
        compiling.wait(compiling.submit(module_of(Prim("nonsense", (X[AXIS],), DType.F32))).code)
    assert all(process.poll() is not None for process in compiling.running)


class Fatal(KernelModule):
    """A kernel that ends the process which receives it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return signal.raise_signal, (signal.SIGKILL,)


@pytest.mark.usefixtures("starts_soon")
def test_a_process_that_ends_is_told() -> None:
    fatal, other = Fatal(module_of(X[AXIS]).kernel, NATIVE, 1, flushes=False), module_of(X[AXIS] + 1.0)
    with Workers(1) as compiling:
        task = compiling.submit(fatal)
        assert task.code.exception(60) is not None
        with pytest.raises(InternalError, match="a process that compiles has ended, got exit code -9"):
            compiling.wait(task.head)
        assert [compiling.wait(compiling.submit(other).code)] == [list(other.results())[-1]]  # by this process


@pytest.mark.usefixtures("starts_soon")
def test_answers_that_cannot_be_read_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(process: object, task: object) -> bool:
        raise ValueError("unsupported pickle protocol: 60")

    monkeypatch.setattr(workers, "_received", unreadable)
    with Workers(1) as compiling:
        task = compiling.submit(module_of(X[AXIS]))
        assert isinstance(task.code.exception(60), InternalError)
    assert [process.poll() for process in compiling.running] == [-signal.SIGKILL]


@pytest.mark.usefixtures("starts_soon")
@pytest.mark.parametrize("text", ["hello", "czech"])  # `c` begins the name of a class, which continues after the line
def test_text_that_python_prints_at_its_start_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"print({text!r}, flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    modules = [module_of(X[AXIS] * float(n)) for n in range(2)]
    results, codes = in_processes(modules, 1)
    assert results == [list(module.results()) for module in modules]
    assert codes == [0]


@pytest.mark.usefixtures("starts_soon")
def test_a_kernel_too_deep_to_be_sent_is_compiled_here() -> None:
    value: Expr = X[AXIS]
    for _ in range(150):
        value = value + 1.0
    module = module_of(value)
    with Workers(1) as compiling:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(300)
        try:
            task = compiling.submit(module)
        finally:
            sys.setrecursionlimit(before)
        assert not compiling.running and compiling.wait(task.code) == list(module.results())[-1]


@pytest.mark.usefixtures("starts_soon")
def test_nothing_of_the_working_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("codegen", "llvmlite", "numpy", "pickle", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(__file__)")
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as of `python -c`, whose working folder was another one
    monkeypatch.chdir(tmp_path)
    module = module_of(X[AXIS])
    assert in_processes([module], 1) == ([list(module.results())], [0])


@pytest.mark.usefixtures("starts_soon")
def test_parts_compile_without_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false-python")
    module = module_of(X[AXIS])
    with Workers(2) as compiling:
        tasks = [compiling.submit(module) for _ in range(2)]
        assert [compiling.wait(task.code) for task in tasks] == [list(module.results())[-1]] * 2
    assert not compiling.running
