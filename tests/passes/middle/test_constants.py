"""Folding, merging of equal nodes, dead code."""

from __future__ import annotations

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.passes.middle.fold_constants import FoldConstants, fold_constants
from aot.passes.middle.merge_equal_nodes import merge_equal_nodes
from aot.passes.middle.remove_dead_code import remove_dead_code
from aot.runtime.abi import DType
from tests.passes.check import after, graph_of, operations, weights


def test_nodes_that_depend_on_constants_alone_are_folded() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Add(x, b.Exp(b.Add(b.const([1, 2, 3], DType.F32), 1.0)))

    assert after([fold_constants], make, (2, 3)) == ["Add"]


def test_large_weights_are_folded_when_they_do_not_grow() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(x, b.Convert(b.const(weights(400, 400), DType.F16), destination_type=DType.F32))

    assert after([fold_constants], make, (1, 400)) == ["MatMul"]


def test_growth_has_a_budget() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Add(x, b.Add(b.const(weights(300, 1), DType.F32), b.const(weights(1, 300), DType.F32)))

    assert after([FoldConstants(limit=1 << 18)], make, (300, 300)) == ["Add", "Add"]
    assert after([FoldConstants(limit=1 << 20)], make, (300, 300)) == ["Add"]


def test_state_and_randomness_are_not_folded() -> None:
    def make(b: Builder) -> OutPort:
        return b.ReadValue_3(b.const([1, 2], DType.F32), variable_id="v")

    assert after([fold_constants, merge_equal_nodes], make) == ["ReadValue"]


def test_equal_nodes_become_one() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.Add(b.Multiply(x, np.ones(3)), b.Multiply(x, np.ones(3)))

    assert after([merge_equal_nodes], make, (2, 3)) == ["Multiply", "Add"]


def test_attributes_and_zeros_of_either_sign_keep_nodes_apart() -> None:
    def clamps(b: Builder, x: OutPort) -> OutPort:
        return b.Add(b.Clamp(x, min=0.0, max=1.0), b.Clamp(x, min=0.0, max=2.0))

    def zeros(b: Builder, x: OutPort) -> OutPort:
        one = b.const(1, DType.F32)
        return b.Add(b.Divide(one, b.Multiply(x, 0.0)), b.Divide(one, b.Multiply(x, -0.0)))

    assert after([merge_equal_nodes], clamps, (2, 3)) == ["Clamp", "Clamp", "Add"]
    assert after([merge_equal_nodes], zeros, (2, 3)).count("Multiply") == 2


def test_dead_code() -> None:
    graph = graph_of(lambda b, x: (b.Sin(b.Cos(x)), b.Abs(x))[1], (2, 3))
    assert remove_dead_code(graph)
    assert operations(graph) == ["Abs"]
    assert len(graph.parameters) == 1
    assert not remove_dead_code(graph)
