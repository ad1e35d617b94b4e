"""Sequences, branches and loops: cases of several nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx.parser
from onnx import NodeProto

from tests.frontends.onnx.case import Case, case, known
from tests.frontends.onnx.models import Numbers

N = Numbers(12)
A = N.f32(2, 3)


def nodes(text: str) -> Sequence[NodeProto]:
    """Return the nodes of a text: `y0 = Add(x0, x1)`."""
    return onnx.parser.parse_graph(f"g (float x0) => (float y0) {{ {text} }}").node


def several(op: str, text: str, *inputs: Any, **more: Any) -> Case:
    return case(op, *inputs, nodes=nodes(text), **more)


SPLIT = "s = SplitToSequence<axis = 1>(x0)  zero = Constant<value_int = 0>()  one = Constant<value_int = 1>() "
JOINED = " y0 = ConcatFromSequence<axis = 1>(t)"

CASES = [
    several("SequenceAt", SPLIT + "y0 = SequenceAt(s, one)", A),
    several("SequenceLength", SPLIT + "y0 = SequenceLength(s)", A),
    several("SequenceErase", SPLIT + "t = SequenceErase(s, zero)" + JOINED, A),
    several("SequenceInsert", SPLIT + "a = SequenceAt(s, one)  t = SequenceInsert(s, a, zero)" + JOINED, A),
    several("SequenceConstruct", "t = SequenceConstruct(x0, x1)" + JOINED, A, A),
    several("SequenceEmpty", "e = SequenceEmpty<dtype = 1>()  t = SequenceInsert(e, x0)" + JOINED, A),
    several("SplitToSequence", "t = SplitToSequence<axis = 0, keepdims = 0>(x0)" + JOINED, N.f32(2, 3, 4), open=False),
    several(
        "ConcatFromSequence", "t = SequenceConstruct(x0, x1) y0 = ConcatFromSequence<axis = 0, new_axis = 1>(t)", A, A,
        open=False,
    ),
    *(
        several(
            "If",
            "y0 = If(x1) <then_branch = a () => (float[2, 3] p) { p = Neg(x0) },"
            " else_branch = b () => (float[2, 3] q) { q = Exp(x0) }>",
            A, np.array(flag), open=False,
        )
        for flag in (False, True)
    ),
    several(
        "Loop",
        "go = Constant<value = bool {1}>() zero = Sub(x0, x0)"
        " y0, y1 = Loop(x1, go, zero) <body = b (int64 i, bool c, float[2, 3] s)"
        " => (bool d, float[2, 3] t, float[2, 3] o) { d = Identity(c) t = Add(s, x0) o = Mul(t, t) }>",
        A, known(3), outputs=2, open=False,
    ),
    several(
        "Scan",
        "z = Constant<value = float[3] {0, 0, 0}>()"
        " y0, y1 = Scan<num_scan_inputs = 1, scan_input_directions = [1],"
        " body = b (float[3] s, float[3] e) => (float[3] t, float[3] o) { t = Add(s, e) o = Identity(t) }>(z, x0)",
        A, outputs=2, open=False,
    ),
    several("Optional", "o = Optional(x0) y0 = OptionalGetElement(o)", A),
    several("OptionalGetElement", "y0 = OptionalGetElement(x0)", A),
    several("OptionalHasElement", "o = Optional(x0) y0 = OptionalHasElement(o)", A),
]  # fmt: skip
