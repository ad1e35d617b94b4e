"""If whose branches give different ranks, as PyTorch exports `squeeze(dim)`: what follows equals ONNX Runtime."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper

import aot
from aot.ir.interpret import interpret
from aot.runtime.errors import BudgetError, UnsupportedError, UsageError
from tests.frontends.onnx.models import Array, i64, model, save
from tests.frontends.onnx.oracle import expected

SHAPES = [(2, 3, 4), (2, 1, 4), (1, 3, 4), (1, 1, 4)]
CONSTANTS: dict[str, Array] = {
    "0": np.array(0),
    "1": np.array(1),
    "-1": np.array(-1),
    "[0]": i64(0),
    "[1]": i64(1),
    "[2]": i64(2),
    "[-1]": i64(-1),
    "2": np.array(2),
    "[1,3]": i64(1, 3),
    "[0,2]": i64(0, 2),
    "[-1,1,4]": i64(-1, 1, 4),
    "depth": np.array(5),
    "half": np.array(0.5, np.float32),
    "values": np.array([0, 1], np.float32),
    "scale": np.arange(4, dtype=np.float32),
    "w": np.arange(20, dtype=np.float32).reshape(4, 5) / 7,
    "some": np.array([True, False, True]),
    "true": np.array(True),
    "kernel": np.arange(30, dtype=np.float32).reshape(5, 3, 2) / 30,
}


def node(kind: str, inputs: str, outputs: str, **attrs: Any) -> NodeProto:
    return helper.make_node(kind, inputs.split(), outputs.split(), **attrs)


def body(nodes: list[NodeProto], inputs: dict[str, int], outputs: dict[str, int]) -> GraphProto:
    ins = [helper.make_tensor_value_info(k, t, None if k == "state" else []) for k, t in inputs.items()]
    outs = [helper.make_tensor_value_info(k, t, None) for k, t in outputs.items()]
    return helper.make_graph(nodes, "body", ins, outs)


def branch(nodes: list[NodeProto]) -> GraphProto:
    return body(nodes, {}, {nodes[-1].output[0]: TensorProto.FLOAT})


def squeeze(x: str, r: str, axis: int = 1, swapped: bool = False) -> list[NodeProto]:
    """r = x without dimension `axis` if that is 1."""
    one, other = branch([node("Squeeze", f"{x} [{axis}]", f"{r}.t")]), branch([node("Identity", x, f"{r}.e")])
    test = [
        node("Shape", x, f"{r}.s"),
        node("Gather", f"{r}.s {axis}", f"{r}.d"),
        node("Equal", f"{r}.d 1", f"{r}.c"),
    ]
    if swapped:
        test.append(node("Not", f"{r}.c", f"{r}.n"))
        return [*test, node("If", f"{r}.n", r, then_branch=other, else_branch=one)]
    return [*test, node("If", f"{r}.c", r, then_branch=one, else_branch=other)]


def nested() -> list[NodeProto]:
    """Three ranks: an If in a branch of another one."""
    inner = branch([*squeeze("x", "in", axis=0), node("Neg", "in", "in.neg")])
    return [
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum half", "positive"),
        node("If", "positive", "r", then_branch=inner, else_branch=branch([node("Identity", "x", "same")])),
    ]


HEADS = {"squeeze": squeeze("x", "r"), "swapped": squeeze("x", "r", swapped=True), "nested": nested()}

ADDING = body(
    [
        node("Softmax", "r", "soft", axis=-1),
        node("ReduceMax", "soft", "top", keepdims=0),
        node("Add", "acc top", "acc2"),
        node("Identity", "go", "going"),
    ],
    {"i": TensorProto.INT64, "go": TensorProto.BOOL, "acc": TensorProto.FLOAT},
    {"going": TensorProto.BOOL, "acc2": TensorProto.FLOAT},
)
SQUEEZING = body(
    [
        *squeeze("x", "in"),
        node("Softmax", "in", "soft", axis=0),
        node("ReduceMax", "soft", "top", keepdims=0),
        node("Add", "acc top", "acc2"),
        node("Identity", "go", "going"),
    ],
    {"i": TensorProto.INT64, "go": TensorProto.BOOL, "acc": TensorProto.FLOAT},
    {"going": TensorProto.BOOL, "acc2": TensorProto.FLOAT},
)
CARRYING = body(
    [node("Softmax", "state", "state2", axis=-1), node("Identity", "go", "going")],
    {"i": TensorProto.INT64, "go": TensorProto.BOOL, "state": TensorProto.FLOAT},
    {"going": TensorProto.BOOL, "state2": TensorProto.FLOAT},
)

# What follows `r`: nodes from r to z.
CHAINS: dict[str, list[NodeProto]] = {
    "softmax": [node("Softmax", "r", "z", axis=-1)],
    "softmax 0": [node("Softmax", "r", "z", axis=0)],
    "log softmax": [node("LogSoftmax", "r", "z", axis=-2)],
    "hardmax": [node("Hardmax", "r", "z", axis=-1)],
    "layer norm": [node("LayerNormalization", "r scale", "z", axis=-1)],
    "lp norm": [node("LpNormalization", "r", "z", axis=-1)],
    "one hot": [node("ArgMax", "r", "a", axis=-1, keepdims=0), node("OneHot", "a depth values", "z", axis=-1)],
    "split": [node("Split", "r [1,3]", "a z", axis=-1)],
    "unsqueeze": [node("Unsqueeze", "r [-1]", "a"), node("Softmax", "a", "z", axis=1)],
    "top k": [node("TopK", "r [2]", "z a", axis=-1)],
    "gather": [node("Gather", "r [0,2]", "z", axis=-1)],
    "concat": [node("Concat", "r r", "z", axis=-1)],
    "slice": [node("Slice", "r [0] [2] [-1]", "z")],
    "cumulative": [node("CumSum", "r -1", "z")],
    "compress": [node("Compress", "r some", "z")],
    "transpose": [node("Transpose", "r", "z")],
    "matmul": [node("MatMul", "r w", "z")],
    "add": [node("Add", "r x", "z")],
    "centred": [node("ReduceSum", "r [-1]", "a"), node("Sub", "r a", "z")],
    "reduce 0": [node("ReduceSum", "r [0]", "z", keepdims=0)],
    "all": [node("ReduceMean", "r", "z", keepdims=0)],
    "all kept": [node("ReduceMax", "r", "z")],
    "size": [node("Size", "r", "z")],
    "shape": [node("Shape", "r", "z")],
    "shape start": [node("Shape", "r", "z", start=1)],
    "shape end": [node("Shape", "r", "z", end=-1)],
    "rank": [node("Shape", "r", "a"), node("Size", "a", "z")],
    "last size": [node("Shape", "r", "a"), node("Gather", "a [-1]", "b"), node("Expand", "half b", "z")],
    "reshape": [node("Shape", "r", "a"), node("Reshape", "r a", "b"), node("Softmax", "b", "z", axis=-1)],
    "filled": [node("Shape", "r", "a"), node("ConstantOfShape", "a", "z")],
    "range": [node("Size", "r", "a"), node("Range", "0 a 1", "z")],
    "non-zero": [node("NonZero", "r", "a"), node("Shape", "a", "z")],
    "sequence": [node("SequenceConstruct", "r r", "a"), node("ConcatFromSequence", "a", "z", axis=-1)],
    "joined, read inside": [
        node("ReduceSum", "r", "a", keepdims=0),
        node("Tanh", "a", "b"),
        node("Mul", "r b", "c"),
        node("Softmax", "c", "z", axis=-1),
    ],
    "chain of forks": [
        node("Softmax", "r", "a", axis=-1),
        *squeeze("a", "b", axis=0),
        node("Softmax", "b", "z", axis=-1),
    ],
    "one fork behind another": [
        *squeeze("r", "a", axis=0),
        node("Reshape", "a [-1]", "b"),
        node("Reshape", "b [-1,1,4]", "c"),
        *squeeze("c", "d", axis=0),
        node("Reshape", "d [-1]", "e"),
        node("Reshape", "e [-1,1,4]", "f"),
        node("Softmax", "f", "z", axis=-1),
    ],
    "side by side": [*squeeze("x", "a", axis=0), node("Add", "r a", "b"), node("Softmax", "b", "z", axis=-1)],
    "fork that reads the other": [
        node("ReduceSum", "r", "a", keepdims=0),
        node("Mul", "x a", "b"),
        *squeeze("b", "c", axis=0),
        node("Add", "r c", "d"),
        node("Softmax", "d", "z", axis=-1),
    ],
    "If behind": [
        node("ReduceSum", "r", "a", keepdims=0),
        node("Greater", "a half", "b"),
        node(
            "If",
            "b",
            "c",
            then_branch=branch([node("Softmax", "r", "t", axis=-1)]),
            else_branch=branch([node("Neg", "r", "e")]),
        ),
        node("LogSoftmax", "c", "z", axis=-1),
    ],
    "If of known rank behind": [
        node("Shape", "r", "a"),
        node("Size", "a", "b"),
        node("Equal", "b 1", "c"),
        node("If", "c", "d", then_branch=branch([node("Neg", "r", "t")]), else_branch=branch([node("Exp", "r", "e")])),
        node("Softmax", "d", "z", axis=-1),
    ],
    "in a loop": [node("Loop", "2 true half", "z", body=ADDING)],
    "in a loop at run time": [
        node("Shape", "x", "a"),
        node("Gather", "a 0", "b"),
        node("Loop", "b true half", "z", body=ADDING),
    ],
    "fork in a loop at run time": [
        node("Shape", "x", "a"),
        node("Gather", "a 0", "b"),
        node("Loop", "b true half", "z", body=SQUEEZING),
    ],
    "carried": [node("Loop", "2 true r", "z", body=CARRYING)],
}


def renamed(nodes: list[NodeProto], prefix: str) -> list[NodeProto]:
    """The same chain with names of its own, so that several chains follow one `r`."""
    own = {o for n in nodes for o in _made(n)}

    def rename(n: NodeProto) -> NodeProto:
        made = NodeProto()
        made.CopyFrom(n)
        for names in (made.input, made.output):
            names[:] = [f"{prefix}{name}" if name in own else name for name in names]
        for a in made.attribute:
            if a.HasField("g"):
                inner = [rename(m) for m in a.g.node]
                del a.g.node[:]
                a.g.node.extend(inner)
                for info in a.g.output:
                    info.name = f"{prefix}{info.name}" if info.name in own else info.name
        return made

    return [rename(n) for n in nodes]


def built(folder: Path, nodes: list[NodeProto], outputs: list[str]) -> Path:
    used = {i for n in nodes for i in _read(n)}
    constants = {k: v for k, v in CONSTANTS.items() if k in used}
    return save(folder, model(nodes, {"x": (np.float32, ("b", "k", 4))}, outputs, constants))


def _made(n: NodeProto) -> set[str]:
    return set(n.output) | {o for a in n.attribute for m in a.g.node for o in _made(m)}


def _read(n: NodeProto) -> set[str]:
    return set(n.input) | {i for a in n.attribute for m in a.g.node for i in _read(m)}


def inputs() -> list[Array]:
    return [(s * np.sin(np.arange(np.prod(d)))).astype(np.float32).reshape(d) for d in SHAPES for s in (1, -1)]


@pytest.mark.parametrize(("head", "part"), [*((h, p) for h in ("squeeze", "swapped") for p in range(4)), ("nested", 3)])
def test_later_layers_equal_onnx_runtime_in_either_branch(tmp_path: Path, head: str, part: int) -> None:
    names = list(CHAINS)[part::4]
    nodes = list(HEADS[head])
    for k, name in enumerate(names):
        nodes += renamed(CHAINS[name], f"{k}.")
        nodes += [node("Cast", f"{k}.z", f"cast{k}", to=TensorProto.FLOAT), node("Reshape", f"cast{k} [-1]", f"y{k}")]
    path = built(tmp_path, nodes, [f"y{k}" for k in range(len(names))])
    if head == "swapped":  # which differs before compilation alone
        call: Any = partial(interpret, aot.stages(path).optimized)
    else:
        call = aot.compile_model(path)
    for x in inputs():
        found = call([x])
        for k, want in enumerate(expected(path, x)):
            np.testing.assert_allclose(np.array(found[k]), want, atol=2e-6, err_msg=f"{names[k]} of {x.shape}")


def test_an_output_with_two_ranks_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = built(tmp_path, [*squeeze("x", "r"), node("Softmax", "r", "y", axis=-1)], ["y"])
    wanted = r"If 'r': an output .* one rank, got f32\[b,4\] .* else f32\[b,k,4\]: fix what decides it \(--dim k=N"
    with pytest.raises(UnsupportedError, match=wanted):
        aot.compile_model(path)
    made = aot.compile_model(path, aot.CompileOptions(dims=(("k", 1, 1),)))
    assert np.array(made(np.zeros((2, 1, 4), np.float32))[0]).shape == (2, 4)


def test_forks_that_double_are_bounded(tmp_path: Path) -> None:
    nodes = [node("ReduceSum", "x", "sum", keepdims=0), node("Greater", "sum half", "c")]
    for k in range(40):
        wider, same = (branch([node(kind, read, f"{kind}{k}")]) for kind, read in _steps(f"r{k}" if k else "x"))
        nodes.append(node("If", "c", f"r{k + 1}", then_branch=wider, else_branch=same))
    path = built(tmp_path, [*nodes, node("Size", "r40", "y")], ["y"])
    with pytest.raises(BudgetError, match="at most 256 conditions decide ranks"):
        aot.compile_model(path)


def _steps(x: str) -> list[tuple[str, str]]:
    return [("Unsqueeze", f"{x} [0]"), ("Identity", x)]


@pytest.mark.parametrize(
    ("follow", "fits"),
    [(node("Gemm", "r w", "y"), (2, 1, 4)), (node("Conv", "r kernel", "y"), (2, 3, 4))],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_branch_that_what_follows_does_not_fit_must_not_run(
    tmp_path: Path, follow: NodeProto, fits: tuple[int, ...], swapped: bool
) -> None:
    path = built(tmp_path, [*squeeze("x", "r", swapped=swapped), follow], ["y"])
    made = aot.compile_model(path)
    for shape in ((2, 1, 4), (2, 3, 4)):
        x = np.ones(shape, np.float32)
        if shape == fits:
            np.testing.assert_allclose(np.array(made(x)[0]), expected(path, x)[0], rtol=1e-5)
        else:
            with pytest.raises(UsageError, match="If 'r': neither what it reads nor what follows fits the branch"):
                made(x)
