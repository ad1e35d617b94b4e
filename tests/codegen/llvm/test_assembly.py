"""Machine code of products: their inner loops keep the whole register tile in registers, on every target."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

import aot.compilation.session
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Reduce, Var, dense
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.object.optimize import assembly
from aot.codegen.nest.nest import apply
from aot.codegen.target import Target
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from benchmarks.mca.loops import inner_loops
from tests.lowering.check import conv, weights
from tests.passes.check import graph_of

# multiply-adds, and how a stack slot is spelled: %rbp is a plain register
TARGETS = {"x86-64-v3": ("vfmadd", r"\(%rsp"), "x86-64-v4": ("vfmadd", r"\(%rsp"), "aarch64": ("fmla", r"\[sp")}
NETWORKS: dict[str, tuple[Callable[[Builder, OutPort], OutPort], tuple[int, ...]]] = {
    "matmul": (lambda b, x: b.MatMul(x, weights(b, 128, 192)), (96, 128)),
    "3x3 by 2": (lambda b, x: conv(b, x, 96, stride=2), (1, 64, 28, 28)),
    "strassen": (lambda b, x: b.MatMul(x, weights(b, 512, 512)), (128, 512)),
    "winograd": (lambda b, x: conv(b, x, 64), (1, 64, 28, 28)),
}
CPUS = ("skylake-avx512", "rocketlake", "sapphirerapids", "znver4", "znver5")
DENSE = 0.4  # of all instructions are multiply-adds; in transforms, which are written out, fewer


def loops(text: str) -> list[list[str]]:
    """The instructions of each innermost loop."""
    return [[*loop.body] for loop in inner_loops(text)]


def products(text: str, target: str) -> list[tuple[int, list[str]]]:
    """Innermost loops that are mostly multiply-adds: how many of these they have, and what they do with the stack."""
    multiply, stack = TARGETS[target]
    found: list[tuple[int, list[str]]] = []
    for loop in loops(text):
        count = sum(x.startswith(multiply) for x in loop)
        if count >= DENSE * len(loop):
            found.append((count, [x for x in loop if re.search(stack, x)]))
    return found


@pytest.mark.parametrize(
    ("target", "height", "width"),
    [("x86-64-v3", 6, 16), ("x86-64-v3", 3, 24), ("x86-64-v4", 14, 32), ("x86-64-v4", 9, 48), ("aarch64", 8, 12)],
)
def test_register_tiles_fit(target: str, height: int, width: int) -> None:
    here = parse_target(target)
    lanes = here.lanes_bytes // 4
    i, j, k = Var("i", 8 * height), Var("j", 4 * width), Var("k", 64)
    x, w, y = dense("x", 8 * height, 64), dense("w", 64, 4 * width), dense("y", 8 * height, 4 * width)
    tiles = (Tile("i", height), Tile("j", width, Tail.CUT))
    plan = Schedule(order=("i", "j", "k"), tile=tiles, lanes=("j", lanes), pack=(Pack("w", (1, 0), 1, width),))
    kernel = apply("product", Definition(y, (i, j), Reduce("add", (k,), x[i, k] * w[k, j])), plan, (x, w, y))
    function = emit(kernel, target=here)
    text = "\n".join([function.text().replace("define internal", "define"), *sorted(function.declarations)])
    assert products(assembly(text, here, None), target) == [(height * width // lanes, [])]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_products_of_networks_stay_in_registers(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, shape = NETWORKS[name]
    if name == "strassen" and target != "aarch64":
        monkeypatch.setattr(Target, "near_l3", True)  # where it is chosen
    found = products(stages(graph_of(make, shape), CompileOptions(target=target)).asm(), target)
    assert max(count for count, _ in found) >= 8
    assert [slots for _, slots in found if slots] == []


@pytest.mark.parametrize(("cpu", "name"), [pair for n, pair in enumerate(product(CPUS, NETWORKS)) if n % 3 != 1])
def test_products_stay_in_registers_whatever_the_processor_is_called(
    name: str, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM's models of processors differ in how far they draw loads forward."""
    make, shape = NETWORKS[name]
    target = replace(Target.parse("x86-64-v4"), cpu=cpu, l1=48 << 10, l2=2 << 20)
    monkeypatch.setattr(aot.compilation.session, "parse_target", lambda *_: target)
    found = products(stages(graph_of(make, shape), CompileOptions(target="native")).asm(), "x86-64-v4")
    assert max(count for count, _ in found) >= 8
    assert [slots for _, slots in found if slots] == []


@pytest.mark.parametrize(
    ("target", "first", "second"),
    [("x86-64-v3", "vfmsub", "vfnmadd"), ("aarch64-v8", "fmla", "fmls"), ("riscv64-v", "vfms", "vfnms")],
)
def test_the_first_of_two_products_is_fused(target: str, first: str, second: str) -> None:
    """All machines round c * d before they subtract it from a * b, so results have the same bits."""

    def make(b: Builder, *x: OutPort) -> OutPort:
        return b.Subtract(b.Multiply(x[0], x[1]), b.Multiply(x[2], x[3]))

    text = stages(graph_of(make, *[(64,)] * 4), CompileOptions(target=target)).asm()
    assert re.search(rf"\t{first}", text)
    assert not re.search(rf"\t{second}", text)
