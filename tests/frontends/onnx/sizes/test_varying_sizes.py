"""Operations that need a number of every size, with sizes that vary: one compiled model against ONNX Runtime."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnxruntime import InferenceSession

import aot
from aot.runtime.errors import ModelError, UsageError
from tests.frontends.onnx.models import Array, Numbers, model, save
from tests.inferred import results_of

f32 = Numbers(29).f32
Shapes = dict[str, tuple[int, ...]]
HEADS = {"q_num_heads": 4, "kv_num_heads": 2}
MICROSOFT = {"domain": "com.microsoft"}


def named(shape: tuple[int, ...], name: str, fixed: tuple[int, ...]) -> tuple[int | str, ...]:
    return tuple(n if d in fixed else f"{name}{d}" for d, n in enumerate(shape))


# kind, opset, attributes, outputs, dimensions that are known, runs
CASES: list[tuple[str, int, dict[str, Any], int, dict[str, tuple[int, ...]], list[Shapes]]] = [
    *(
        ("Flatten", 13, {"axis": axis}, 1, {}, [{"x": (2, 3, 4)}, {"x": (1, 5, 2)}, {"x": (3, 1, 1)}, {"x": (0, 3, 2)}])
        for axis in (-1, 0, 1, 2, 3)
    ),
    *(
        (
            "ConvTranspose",
            11,
            {"auto_pad": how, "strides": strides},
            1,
            {"w": (0, 1, 2, 3)},
            [{"x": (1, 2, 3, 4), "w": (2, 3, 3, 4)}, {"x": (2, 2, 5, 1), "w": (2, 3, 3, 4)}],
        )
        for how in ("SAME_UPPER", "SAME_LOWER")
        for strides in ([2, 1], [2, 3], [1, 1])
    ),
    *(
        (
            "ConvTranspose",
            11,
            {"auto_pad": how, "output_shape": [6, 7], "strides": [2, 2]},
            1,
            {"w": (0, 1, 2, 3)},
            [{"x": (1, 2, 3, 4), "w": (2, 3, 3, 3)}, {"x": (2, 2, 4, 4), "w": (2, 3, 3, 3)}],
        )
        for how in ("SAME_UPPER", "SAME_LOWER", "NOTSET")
    ),
    (
        "Attention",
        23,
        HEADS,
        1,
        {},
        [{"q": (1, 3, 16), "k": (1, 5, 8), "v": (1, 5, 8)}, {"q": (2, 2, 8), "k": (2, 4, 4), "v": (2, 4, 12)}],
    ),
    (
        "Attention",
        23,
        {},
        1,
        {},
        [
            {"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4)},
            {"q": (2, 6, 3, 8), "k": (2, 3, 1, 8), "v": (2, 3, 1, 2)},
        ],
    ),
    *(
        ("RotaryEmbedding", 23, attrs, 1, {}, [{"x": x, "c": c, "s": c} for x, c in runs])
        for attrs, runs in (
            ({"num_heads": 2}, [((1, 2, 8), (1, 2, 2)), ((3, 1, 12), (3, 1, 3))]),
            ({"num_heads": 2, "interleaved": 1}, [((1, 2, 8), (1, 2, 2)), ((3, 1, 12), (3, 1, 3))]),
            ({}, [((1, 2, 2, 4), (1, 2, 2)), ((3, 4, 1, 6), (3, 1, 3))]),
            ({"num_heads": 2, "rotary_embedding_dim": 4}, [((1, 2, 16), (1, 2, 2)), ((3, 1, 20), (3, 1, 2))]),
        )
    ),
    *(
        (
            "RotaryEmbedding",
            23,
            MICROSOFT | attrs,
            1,
            {},
            [{"x": x, "p": (*x[:1], n), "c": c, "s": c} for x, n, c in runs],
        )
        for attrs, runs in (
            ({}, [((1, 2, 8), 2, (6, 2)), ((3, 5, 12), 5, (6, 3))]),
            ({"num_heads": 2, "interleaved": 1}, [((1, 2, 8), 2, (6, 2)), ((3, 5, 12), 5, (6, 3))]),
            ({"interleaved": 1}, [((1, 2, 2, 4), 2, (6, 2)), ((3, 2, 5, 6), 5, (6, 3))]),
        )
    ),
    *(
        ("MultiHeadAttention", 23, MICROSOFT | {"num_heads": 2}, 1, {}, runs)
        for runs in (
            [{"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 5, 8)}, {"q": (2, 1, 4), "k": (2, 2, 4), "v": (2, 2, 6)}],
            [
                {"q": (1, 3, 8), "k": (1, 5, 8), "v": (1, 5, 8), "b": (24,)},
                {"q": (2, 1, 4), "k": (2, 2, 4), "v": (2, 2, 6), "b": (14,)},
            ],
            [{"q": (1, 3, 8), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4)}],
        )
    ),
    (
        "Attention",
        23,
        MICROSOFT | {"num_heads": 2},
        1,
        {},
        [{"x": (1, 3, 4), "w": (4, 24), "b": (24,)}, {"x": (2, 1, 6), "w": (6, 12), "b": (12,)}],
    ),
]


KINDS = [(kind, attrs.get("domain")) for kind, _, attrs, *_ in CASES]
COMPILED = {KINDS.index(kind) for kind in KINDS}  # the first case of each operation; others by the references


@pytest.mark.parametrize("at", range(len(CASES)), ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_one_library_takes_all_sizes(tmp_path: Path, at: int) -> None:
    """The graph after all passes means it, and inferred types hold; one of each operation is compiled."""
    kind, opset, attrs, count, fixed, runs = CASES[at]
    inputs = {n: (np.int64 if n == "p" else np.float32, named(s, n, fixed.get(n, ()))) for n, s in runs[0].items()}
    outputs = [f"y{i}" for i in range(count)]
    node = helper.make_node(kind, list(inputs), outputs, name="layer", **attrs)
    made = model([node], inputs, outputs, opset=opset, domain=attrs.get("domain", ""))
    path = save(tmp_path, made)
    optimized = aot.stages(path).optimized
    compiled = aot.compile_model(path, threads=1) if at in COMPILED else None
    session = InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for shapes in runs:
        feed = {n: np.indices(s)[1] if n == "p" else f32(*s) for n, s in shapes.items()}  # p: positions
        given = list(feed.values())
        found = results_of(optimized, given) if compiled is None else compiled(given)
        for i, wanted in enumerate(session.run(None, feed)):
            np.testing.assert_allclose(found[i], wanted, rtol=1e-4, atol=1e-5)


def parts_of(tmp_path: Path, opset: int, attrs: dict[str, Any], count: int) -> Any:
    outputs = [f"y{i}" for i in range(count)]
    node = helper.make_node("Split", ["x"], outputs, name="layer", **attrs)
    made = model([node], {"x": (np.float32, ("n", 2))}, outputs, opset=opset)
    return aot.compile_model(save(tmp_path, made), threads=1)


def test_parts_of_opset_18_are_as_long_as_the_first_but_the_last(tmp_path: Path) -> None:
    compiled = parts_of(tmp_path, 18, {"num_outputs": 3}, 3)
    for size, lengths in ((6, (2, 2, 2)), (5, (2, 2, 1)), (2, (1, 1, 0)), (0, (0, 0, 0)), (7, (3, 3, 1))):
        x = f32(size, 2)
        found = [np.asarray(compiled([x])[i]) for i in range(3)]
        assert [len(p) for p in found] == list(lengths)
        np.testing.assert_array_equal(np.concatenate(found), x)


@pytest.mark.parametrize(
    ("opset", "attrs", "count", "good", "bad"),
    [
        (18, {"num_outputs": 4}, 4, 7, 5),
        (13, {}, 2, 4, 5),
        (11, {}, 3, 6, 4),
        (11, {"split": [1, 3]}, 2, 4, 5),
        (11, {"split": [1, 3]}, 2, 4, 3),
    ],
)
def test_a_size_that_does_not_divide_is_refused(
    tmp_path: Path, opset: int, attrs: dict[str, Any], count: int, good: int, bad: int
) -> None:
    compiled = parts_of(tmp_path, opset, attrs, count)
    with pytest.raises(UsageError, match=rf"Split 'layer': .*{count} parts.* n = {bad}"):
        compiled([f32(bad, 2)])
    assert sum(len(compiled([f32(good, 2)])[i]) for i in range(count)) == good


def test_a_static_size_that_does_not_divide(tmp_path: Path) -> None:
    x: Array = f32(5)
    made = model([helper.make_node("Split", ["x"], ["a", "b"])], {"x": x}, ["a", "b"], opset=13)
    with pytest.raises(ModelError, match="Split: 5 must divide into 2"):
        aot.compile_model(save(tmp_path, made))


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_gathered_for_a_part_of_the_data(tmp_path: Path, axis: int, varying: bool) -> None:
    """Dimensions of the indices but the axis may be smaller, here also equal, empty and, along the axis, larger.

    Those of varying sizes are compiled, others run by the references.
    """
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], name="layer", axis=axis)
    call: Any = None
    session: Any = None
    for data, asked in (((3, 4, 5), (2, 3, 5)), ((3, 4, 5), (3, 4, 5)), ((3, 4, 5), (2, 0, 1)), ((4, 4, 4), (4, 4, 4))):
        shape = tuple(7 if d == axis % 3 else n for d, n in enumerate(asked))
        x, i = f32(*data), Numbers(5).rng.integers(-data[axis], data[axis], shape)
        if call is None or not varying:
            sized = {n: (a.dtype, named(a.shape, n, () if varying else (0, 1, 2))) for n, a in (("x", x), ("i", i))}
            made = model([node], sized, ["y"])
            path = save(tmp_path, made)
            optimized = aot.stages(path).optimized
            call = aot.compile_model(path, threads=1) if varying else partial(results_of, optimized)
            session = InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        assert np.array_equal(call([x, i])[0], session.run(None, {"x": x, "i": i})[0])


@pytest.mark.parametrize(
    ("varying", "rule"),
    [
        (False, "GatherElements: dimensions but the axis must be equal, got 4 and 5"),
        (True, "'layer': dimensions but the axis must be equal, got i1 and x1, with x1 = 4, i1 = 5"),
    ],
)
def test_elements_outside_of_the_data_are_refused(tmp_path: Path, varying: bool, rule: str) -> None:
    x, i = f32(3, 4), np.zeros((2, 5), np.int64)
    sized = {n: (a.dtype, named(a.shape, n, () if varying else (0, 1))) for n, a in (("x", x), ("i", i))}
    made = model([helper.make_node("GatherElements", ["x", "i"], ["y"], name="layer", axis=0)], sized, ["y"])
    with pytest.raises((ModelError, UsageError), match=rule):
        aot.compile_model(save(tmp_path, made), threads=1)([x, i])
