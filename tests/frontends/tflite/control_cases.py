"""Control flow and variables."""

from __future__ import annotations

import numpy as np

from tests.frontends.tflite.case import c, f, network
from tests.frontends.tflite.models import Net, Op, Tensor, model

# ---- control flow and variables


def _counter(name: str, n: int) -> Net:
    tensors = [Tensor("n", "i32", []), Tensor("x", "f32", [2]), c(n), Tensor("go", "boolean", [])]
    return Net(tensors, [Op("LESS", [0, 2], [3])], [0, 1], [3], name)


def _step() -> Net:
    tensors = [
        Tensor("n", "i32", []),
        Tensor("x", "f32", [2]),
        c(1),
        c(1.5, np.float32),
        Tensor("m", "i32", []),
        Tensor("y", "f32", [2]),
    ]
    return Net(tensors, [Op("ADD", [0, 2], [4], "Add"), Op("MUL", [1, 3], [5], "Mul")], [0, 1], [4, 5], "step")


network(
    "while",
    model(
        Net(
            [Tensor("n", "i32", []), Tensor("x", "f32", [2]), Tensor("m", "i32", []), Tensor("y", "f32", [2])],
            [Op("WHILE", [0, 1], [2, 3], "While", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})],
            [0, 1],
            [2, 3],
        ),
        _counter("cond", 5),
        _step(),
    ),
    np.array(1, np.int32),
    f(2),
)


def _branch(kind: str) -> Net:
    tensors = [Tensor("x", "f32", [2]), c(2.0, np.float32), Tensor("y", "f32", [2])]
    return Net(tensors, [Op(kind, [0, 1], [2], kind.capitalize())], [0], [2], kind)


for truth in (True, False):
    network(
        f"if_{truth}",
        model(
            Net(
                [Tensor("c", "boolean", [1]), Tensor("x", "f32", [2]), Tensor("y", "f32", [2])],
                [Op("IF", [0, 1], [2], "If", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2})],
                [0, 1],
                [2],
            ),
            _branch("ADD"),
            _branch("MUL"),
        ),
        np.array([truth]),
        f(2),
    )
handle = {"Container": "", "SharedName": "v"}
network(
    "variable",
    model(
        Net(
            [Tensor("x", "f32", [3]), Tensor("h", "resource", [1]), Tensor("v", "f32", [3]), Tensor("y", "f32", [3])],
            [
                Op("CALL_ONCE", [], [], "CallOnce", {"InitSubgraphIndex": 1}),
                Op("VAR_HANDLE", [], [1], "VarHandle", handle),
                Op("READ_VARIABLE", [1], [2]),
                Op("ADD", [0, 2], [3], "Add"),
                Op("ASSIGN_VARIABLE", [1, 3], []),
            ],
            [0],
            [3],
        ),
        Net(
            [Tensor("h", "resource", [1]), c([1, 2, 3], np.float32)],
            [Op("VAR_HANDLE", [], [0], "VarHandle", handle), Op("ASSIGN_VARIABLE", [0, 1], [])],
            [],
            [],
            "once",
        ),
    ),
    f(3),
    runs=3,
)
