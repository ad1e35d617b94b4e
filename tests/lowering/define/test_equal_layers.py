"""Definitions of equal layers, made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from aot.codegen.ir.loops import Expr
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.ir.op import ComputeOp
from aot.ir.operand import Input, Operand
from aot.ir.types import Array, TensorType
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.passes.check import graph_of

F32 = DType.F32
NINE = np.arange(9, dtype=np.float32)


@dataclass(frozen=True)
class Plus(ComputeOp):
    """x plus the first number of the other input, of which the definition has the number or a load."""

    reads: bool = False
    made: ClassVar[list[bool]] = []

    def infer(self, x: Operand, _: Operand) -> TensorType:
        return x.type

    def reference(self, x: Array, other: Array) -> Array:
        return x + other[0]

    def compute(self, _: TensorType, x: Input, other: Input) -> Callable[..., Expr]:
        self.made.append(self.reads)
        value = other.value
        if not self.reads or value is None:
            return lambda i: x(i) + other(0)
        return lambda i: x(i) + float(value[0])


@dataclass(frozen=True)
class PlusFirst(Plus):
    """The same without a look at the number."""

    def compute(self, _: TensorType, x: Input, other: Input) -> Callable[..., Expr]:
        self.made.append(self.reads)
        return lambda i: x(i) + other(0)


def check(make: Callable[[Builder, OutPort], OutPort], *, made: int) -> None:
    graph = graph_of(make, (9,))
    Plus.made.clear()
    model = in_memory(stages(graph, CompileOptions(level=None)).built, 1)
    assert len(Plus.made) == made
    x = np.random.default_rng(0).uniform(-1, 1, 9).astype(np.float32)
    np.testing.assert_array_equal(model([x])[0], interpret(graph_of(make, (9,)), (x,))[0])


def test_equal_layers_have_one_definition() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        one = b(PlusFirst(), b.Cos(x), b.const(NINE + 1, F32))
        other = b(PlusFirst(), b.Sin(one), b.const(NINE + 2, F32))
        return b.Add(other, b(PlusFirst(), other, other))  # its two inputs are one

    check(make, made=2)


def test_numbers_that_an_operation_reads_are_its_own() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        one = b(Plus(reads=True), b.Cos(x), b.const(NINE + 1, F32))
        return b(Plus(reads=True), b.Sin(one), b.const(NINE + 2, F32))

    check(make, made=2)


def test_small_constants_are_told_apart() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        for n in (1, 2, 1):
            x = b(PlusFirst(), b.Sin(x), b.const(np.float32([n]), F32))
        return x

    check(make, made=2)
