"""Sizes as LLVM code give what Python's integers give."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm
import pytest

from aot.codegen.ir.loops import Const, Expr, Var, prim
from aot.codegen.llvm.driver.shape_functions import function_text
from aot.codegen.llvm.driver.size_code import SizeCode
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.object.optimize import compile_module

N, M = Var("n"), Var("m")
VALUES = (-1000, -8, -7, -1, 0, 1, 6, 7, 8, 1 << 40)


def compiled(size: Expr) -> Callable[[int, int], int]:
    code = SizeCode({"n": "%n", "m": "%m"})
    value = code.operand(size)
    text = function_text("define i64 @f(i64 %n, i64 %m) nounwind {", code.lines, f"ret i64 {value}")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    jit = llvm.create_lljit_compiler(use_jit_link=True)
    object_ = compile_module(text, parse_target("native"), None)
    tracker = llvm.JITLibraryBuilder().add_object_img(object_).export_symbol("f").link(jit, "size")
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(tracker["f"])
    return lambda n, m: call(n, m) if tracker else 0  # the code lives as long as the tracker


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MEANING: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a - (a // b if b else 0) * b if b else 0,
    "div": truncated,
    "rem": lambda a, b: a - truncated(a, b) * b if b else 0,
}


@pytest.mark.parametrize("fn", MEANING)
@pytest.mark.parametrize("divisor", [1, 7, 64, -7, None], ids=str)
def test_divisions_of_sizes_round_down(fn: str, divisor: int | None) -> None:
    call = compiled(prim(fn, N, M if divisor is None else Const(divisor)))
    for n in VALUES:
        for m in VALUES if divisor is None else (divisor,):
            assert call(n, m) == MEANING[fn](n, m), (n, m)
