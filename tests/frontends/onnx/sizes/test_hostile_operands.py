"""Inputs of ONNX operations that tell sizes, places or axes, with values that nobody means.

Compiled code gives what ONNX Runtime gives, or an error that names the layer; it touches nothing outside its tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession, SessionOptions

import aot
from aot.options import CompileOptions
from aot.runtime.errors import UnsupportedError, UsageError
from tests.frontends.onnx.models import Array, Numbers, i64, model, save
from tests.hostile import Call, are_sizes_open, faults, hostile

FAST = CompileOptions(level=None)
f32 = Numbers(23).f32
X = f32(3, 4)
IMAGE = f32(1, 2, 4, 6)
Case = tuple[str, int, list[Array | None], dict[str, Any], tuple[int, ...], int]  # .., asked inputs, outputs


def number(value: float, dtype: Any = np.int64) -> Array:
    return np.array(value, dtype)


def scales(*values: float) -> Array:
    return np.array(values, np.float32)


# `tests/opset/test_hostile_operands.py` has operations whose conversion is a rename: Gather, ScatterND, RoiAlign ...
CASES: list[Case] = [
    ("Split", 13, [X, i64(1, 3)], {"axis": 1}, (1,), 2),
    ("Split", 18, [X, i64(1, 2)], {"axis": 0}, (1,), 2),
    ("Expand", 13, [f32(5), i64(1)], {}, (1,), 1),
    ("Expand", 13, [f32(1, 4), i64(3, 1)], {}, (1,), 1),
    ("Reshape", 14, [X, i64(2, 6)], {}, (1,), 1),
    ("Reshape", 14, [X, i64(2, 6)], {"allowzero": 1}, (1,), 1),
    ("Squeeze", 13, [f32(1, 3, 1), i64(0)], {}, (1,), 1),
    ("Unsqueeze", 13, [X, i64(1)], {}, (1,), 1),
    ("Slice", 13, [X, i64(0), i64(3), i64(1), i64(1)], {}, (1, 2, 3, 4), 1),
    ("Slice", 13, [X, i64(0, 1), i64(3, 2), i64(0, 1), i64(1, 2)], {}, (3, 4), 1),
    ("Slice", 13, [X, i64(3), i64(-9)], {}, (1, 2), 1),
    ("Pad", 18, [X, i64(1, 0, 0, 2), scales(0)[0]], {}, (1,), 1),
    ("Pad", 18, [X, i64(1, 1), scales(0)[0], i64(1)], {}, (1, 3), 1),
    ("Pad", 18, [X, i64(1, 0, 0, 2)], {"mode": "reflect"}, (1,), 1),
    ("Pad", 19, [X, i64(1, 0, 0, 2)], {"mode": "wrap"}, (1,), 1),
    ("Compress", 11, [X, np.array([True, False, True])], {"axis": 0}, (1,), 1),
    ("TopK", 11, [X, i64(2)], {}, (1,), 2),
    ("OneHot", 11, [i64(0, 2), number(3), scales(0, 1)], {}, (0, 1), 1),
    ("Range", 11, [number(0), number(5), number(1)], {}, (0, 1, 2), 1),
    ("Range", 11, [number(0, np.float32), number(5, np.float32), number(1, np.float32)], {}, (0, 1, 2), 1),
    ("ConstantOfShape", 9, [i64(2, 3)], {}, (0,), 1),
    ("ReduceSum", 13, [f32(2, 3, 2), i64(1, 2)], {}, (1,), 1),
    ("ReduceSum", 13, [f32(2, 3, 2), i64(1)], {"keepdims": 0}, (1,), 1),
    ("ReduceMax", 18, [X, i64(1)], {}, (1,), 1),
    ("ReduceLogSumExp", 18, [X, i64(1)], {"keepdims": 0}, (1,), 1),
    ("Trilu", 14, [X, number(1)], {}, (1,), 1),
    ("CenterCropPad", 18, [f32(3, 8), i64(5, 9)], {}, (1,), 1),
    ("Resize", 19, [IMAGE, None, None, i64(1, 2, 8, 3)], {"mode": "linear"}, (3,), 1),
    ("Resize", 19, [IMAGE, None, None, i64(8, 3)], {"mode": "cubic", "axes": [2, 3], "antialias": 1}, (3,), 1),
    ("Resize", 19, [IMAGE, None, scales(1, 1, 2, 0.5)], {"mode": "nearest"}, (2,), 1),
    ("Resize", 19, [IMAGE, None, scales(2, 0.5)], {"mode": "linear", "axes": [2, 3], "antialias": 1}, (2,), 1),
    (
        "Resize",
        19,
        [IMAGE, scales(0, 0, 0.2, 0.1, 1, 1, 0.9, 0.8), None, i64(1, 2, 3, 5)],
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
        (3,),
        1,
    ),
    ("Upsample", 9, [IMAGE, scales(1, 1, 2, 0.5)], {}, (1,), 1),
    ("DFT", 20, [f32(2, 6, 5, 1), number(4), number(1)], {}, (1, 2), 1),
    ("STFT", 17, [f32(2, 40, 1), number(8), f32(16)], {}, (1,), 1),
    ("STFT", 17, [f32(2, 40, 1), number(8), None, number(16)], {}, (1, 3), 1),
    ("Col2Im", 18, [f32(2, 6, 16), i64(5, 4), i64(2, 1)], {}, (1, 2), 1),
    ("HannWindow", 17, [number(9)], {}, (0,), 1),
    ("MelWeightMatrix", 17, [number(8), number(16), number(8192), *scales(0, 4096)], {}, (0, 1, 2, 3, 4), 1),
    ("AffineGrid", 20, [f32(2, 2, 3), i64(2, 3, 4, 5)], {}, (1,), 1),
    (
        "MaxUnpool",
        22,
        [f32(1, 1, 2, 2), i64(5, 7, 13, 15).reshape(1, 1, 2, 2), i64(1, 1, 5, 6)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        (1, 2),
        1,
    ),
    ("NonMaxSuppression", 11, [np.abs(f32(1, 3, 4)), f32(1, 2, 3), i64(1), scales(0.5), scales(0)], {}, (2, 3, 4), 1),
    (
        "LSTM",
        14,
        [f32(3, 2, 2), f32(1, 8, 2), f32(1, 8, 2), None, np.array([3, 2], np.int32)],
        {"hidden_size": 2},
        (4,),
        1,
    ),
    ("TensorScatter", 24, [f32(2, 3, 4, 5), f32(2, 3, 2, 5), i64(1, 2)], {"axis": -2}, (2,), 1),
]
# what they take is said, though ONNX Runtime refuses it
DEFINED = {
    "LSTM",
    "OneHot",
    "Pad",
    "Resize",
    "Upsample",
    "MelWeightMatrix",
    "AffineGrid",
    "NonMaxSuppression",
    "TensorScatter",
}
STATIC = {"MaxUnpool"}  # with sizes as inputs, the data have sizes that are known
ALONE = {"MaxUnpool"}  # outside of the data others compute something else
# those that DEFINED leaves open
NEVER: list[Case] = [
    ("Resize", 19, [IMAGE, None, None, i64(1, 2, -1, 3)], {}, (), 1),
    *(("Resize", 19, [IMAGE, None, scales(1, 1, bad, 1)], {}, (), 1) for bad in (np.nan, np.inf, -1.0, 0.0)),
    *(("Upsample", 9, [IMAGE, scales(1, 1, bad, 1)], {}, (), 1) for bad in (np.nan, np.inf, -1.0, 0.0)),
    ("Pad", 18, [X, i64(-4, 0, 0, 0)], {}, (), 1),
    ("OneHot", 11, [i64(0, 2), number(-1), scales(0, 1)], {}, (), 1),
    ("MelWeightMatrix", 17, [number(-1), number(16), number(8192), *scales(0, 4096)], {}, (), 1),
    ("Compress", 11, [X, np.array([True, False, True, False])], {"axis": 0}, (), 1),
]


def network(case: Case, dynamic: bool) -> ModelProto:
    """Return a model of the case; `dynamic`: sizes of data are left open."""
    kind, opset, inputs, attrs, asked, count = case
    given = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs) if x is not None}
    vary = {n for n, x in given.items() if dynamic and x.dtype.kind == "f" and int(n[1:]) not in asked}
    sized = {n: (x.dtype, _shape(n, x, n in vary)) for n, x in given.items()}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(count)]
    return model([helper.make_node(kind, names, outputs, name="layer", **attrs)], sized, outputs, opset=opset)


def caller(path: Path, count: int) -> Call:
    """Return a function from inputs to results, by compiled code."""
    compiled = aot.compile_model(path, FAST, threads=1)

    def call(feed: Sequence[Array]) -> list[Array]:
        results = compiled(list(feed))
        return [np.asarray(results[i]) for i in range(count)]

    return call


SIZED = [(case, are_sizes_open([c[0] for c in CASES], n)) for n, case in enumerate(CASES)]
NAMES = [f"{i}-{case[0]}-{'open' if is_open else 'known'}" for i, (case, is_open) in enumerate(SIZED)]


@pytest.mark.parametrize(("case", "is_open"), SIZED, ids=NAMES)
def test_wrong_operands_are_errors_and_read_nothing(tmp_path: Path, case: Case, is_open: bool) -> None:
    kind, _, inputs, _, asked, count = case
    names = [f"x{i}" for i, x in enumerate(inputs) if x is not None]
    good = [np.asarray(x) for x in inputs if x is not None]
    if kind in STATIC:
        with pytest.raises(UnsupportedError, match="must be known"):
            caller(save(tmp_path, network(case, dynamic=True)), count)
    reference = _reference(network(case, dynamic=False))
    call = caller(save(tmp_path, network(case, dynamic=is_open and kind not in STATIC)), count)

    def oracle(feed: Sequence[Array]) -> list[Array]:
        if kind in ALONE and any(a is not b for a, b in zip(feed, good, strict=True)):
            raise ValueError("no result to compare with")
        return reference(dict(zip(names, feed, strict=True)))

    places = [names.index(f"x{k}") for k in asked]
    feeds = [[*good[:k], bad, *good[k + 1 :]] for k in places for bad in hostile(good[k])]
    found = faults(call, oracle, [good, *feeds, good], "'layer'", kind in DEFINED | ALONE)
    assert not found, "\n".join(found[:12])


@pytest.mark.parametrize("case", NEVER, ids=[f"{i}-{c[0]}" for i, c in enumerate(NEVER)])
def test_meaningless_operands_are_refused(tmp_path: Path, case: Case) -> None:
    kind, opset, inputs, attrs, _, _ = case
    given = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs) if x is not None}
    sized = {n: (x.dtype, _shape(n, x, n == "x0" or kind == "Compress")) for n, x in given.items()}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    made = model([helper.make_node(kind, names, ["y"], name="layer", **attrs)], sized, ["y"], opset=opset)
    with pytest.raises(UsageError, match=rf"{'Interpolate|Resize' if kind == 'Resize' else kind} 'layer': "):
        aot.compile_model(save(tmp_path, made), FAST, threads=1)(list(given.values()))


def _shape(name: str, x: Array, varies: bool) -> tuple[Any, ...]:
    return tuple(f"{name}_{d}" for d in range(x.ndim)) if varies else x.shape


def _reference(made: ModelProto) -> Callable[[dict[str, Array]], list[Array]]:
    """ONNX Runtime, or ONNX's own reference where that has no kernel for it."""
    options = SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4  # hostile values are errors there, too
    evaluator = ReferenceEvaluator(made)
    if made.graph.node[0].op_type == "MaxUnpool":  # ONNX Runtime reads the indices as those of output_shape
        return lambda feed: list(evaluator.run(None, feed))
    try:
        session = InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # each kind of refusal has a class of its own
        return lambda feed: list(evaluator.run(None, feed))
    return lambda feed: list(session.run(None, feed))
