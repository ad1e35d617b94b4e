"""Pipelines of scikit-learn, LightGBM and XGBoost, and the operations of ai.onnx.ml that they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import aot
from aot.options import CompileOptions
from tests.archives import arrays_of
from tests.frontends.onnx.models import Array, model, run, save

FAST = CompileOptions(level=None)
ML = "ai.onnx.ml"
TABULAR = Path(__file__).parent
EXPECTED = arrays_of(TABULAR / "expected.npz")
RNG = np.random.default_rng(3)
ROWS: Array = RNG.standard_normal((23, 4)).astype(np.float32)
HOLES = np.where(RNG.random(ROWS.shape) < 0.3, np.float32(np.nan), ROWS)
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
VALUES = (-1.0, -0.0, 0.0, 0.5, 2.0, float("inf"), -float("inf"))


def close(found: Array, expected: Array) -> bool:
    """Labels are equal; scores differ by a few roundings of f32."""
    if expected.dtype.kind in "iU":
        return np.array_equal(found.astype(expected.dtype), expected)
    return (
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and np.allclose(found, expected, 2e-5, 5e-6, equal_nan=True)
    )


@pytest.mark.parametrize("name", sorted(path.stem for path in TABULAR.glob("*.onnx")))
def test_pipelines_give_what_onnx_runtime_gives(name: str) -> None:
    """By the references of the opset; the test below compiles trees, `tests/opset` other operations."""
    found = run(TABULAR / f"{name}.onnx", EXPECTED[f"{name}.x"])
    agree(name, found)


def agree(name: str, found: Iterable[Any]) -> None:
    names = [key for key in EXPECTED if key.startswith(f"{name}.y.")]
    for value, key in zip(found, names, strict=True):
        assert close(np.asarray(value), EXPECTED[key]), key


@pytest.mark.parametrize("name", ["forest", "lightgbm_values", "lightgbm_three", "xgboost_values"])
def test_rows_of_trees_have_equal_bits_in_any_batch_and_with_any_threads(name: str, tmp_path: Path) -> None:
    x = EXPECTED[f"{name}.x"]
    aot.compile_model(TABULAR / f"{name}.onnx", FAST).export_model(tmp_path / "m.so")
    one, two = (aot.runtime.load(tmp_path / "m.so", threads=n) for n in (1, 2))
    last = len(one.outputs) - 1
    agree(name, one(x).to_tuple())
    rows = np.tile(x, (4, 1))
    whole = one(rows)[last]
    for count in (1, 3, 4, 5, 31, 33, len(rows)):
        for model_ in (one, two):
            parts = [model_(rows[at : at + count])[last] for at in range(0, len(rows), count)]
            assert np.concatenate(parts).tobytes() == whole.tobytes(), count


def single(
    kind: str, outputs: list[str], inputs: dict[str, Array], version: int = 3, **attributes: Any
) -> onnx.ModelProto:
    """A model of one node; sizes of rows vary."""
    node = helper.make_node(kind, list(inputs), outputs, domain=ML, name="layer", **attributes)
    made = model([node], {n: (x.dtype, ("n", *x.shape[1:])) for n, x in inputs.items()}, outputs, domain=ML)
    made.opset_import[1].version = version
    return made


def compare(folder: Path, made: onnx.ModelProto, *inputs: Array) -> None:
    """The references of what a model is converted to, and ONNX Runtime."""
    oracle = pytest.importorskip("tests.frontends.onnx.oracle")
    path = save(folder, made)
    found, expected = run(path, *inputs), oracle.expected(path, *inputs)
    for a, b in zip(found, expected, strict=True):
        assert close(a, np.asarray(b, "U") if b.dtype == object else b), f"{a}\n{b}"


def random_trees(
    rng: np.random.Generator, modes: tuple[str, ...], prefix: str, targets: int, dense: bool
) -> dict[str, Any]:
    """Attributes of an ensemble whose thresholds are values that rows have."""
    nodes: dict[str, list[Any]] = {
        k: []
        for k in (
            "treeids",
            "nodeids",
            "featureids",
            "modes",
            "values",
            "truenodeids",
            "falsenodeids",
            "missing_value_tracks_true",
        )
    }
    leaves: dict[str, list[Any]] = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(5):
        size = int(rng.integers(3, 8))
        for at in range(2 * size + 1):
            inner = at < size
            mode, below = (str(rng.choice(modes)), 2 * at + 1) if inner else ("LEAF", 0)
            row = (
                tree,
                at,
                int(rng.integers(4)),
                mode,
                float(rng.choice(VALUES)),
                below,
                below + inner,
                int(rng.integers(2)),
            )
            for values, value in zip(nodes.values(), row, strict=True):
                values.append(value)
            for target in range(targets) if dense else [tree % targets]:
                if not inner:
                    for values, value in zip(leaves.values(), (tree, at, target, float(rng.normal())), strict=True):
                        values.append(value)
    return {f"nodes_{k}": v for k, v in nodes.items()} | {f"{prefix}_{k}": v for k, v in leaves.items()}


def hit(rng: np.random.Generator, dtype: type = np.float32) -> Array:
    return rng.choice(np.array([*VALUES, np.nan, 0.25, 1e-42], dtype), (29, 4))


@pytest.mark.oracle
@pytest.mark.parametrize("modes", [*((m,) for m in MODES), MODES], ids=lambda m: m[0] if len(m) == 1 else "all")
@pytest.mark.parametrize(("targets", "aggregate"), [(1, "SUM"), (3, "SUM"), (1, "AVERAGE"), (3, "MIN"), (1, "MAX")])
def test_regressors_of_trees_follow_all_modes(
    tmp_path: Path, modes: tuple[str, ...], targets: int, aggregate: str
) -> None:
    rng = np.random.default_rng(len(modes) + targets)
    attributes = random_trees(rng, modes, "target", targets, dense=aggregate != "SUM")
    base = {"base_values": [0.5, -1.0, 2.0][:targets]}
    x = hit(rng)
    made = single(
        "TreeEnsembleRegressor", ["y"], {"x": x}, n_targets=targets, aggregate_function=aggregate, **attributes, **base
    )
    compare(tmp_path, made, x)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_rows_of_other_types_are_compared_as_onnx_runtime_compares_them(tmp_path: Path, dtype: type) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-2, 3, (31, 4)).astype(dtype) if dtype is not np.float64 else hit(rng, np.float64)
    attributes = random_trees(rng, MODES, "class", 3, dense=True)
    made = single("TreeEnsembleClassifier", ["l", "p"], {"x": x}, classlabels_strings=["a", "b", "c"], **attributes)
    compare(tmp_path, made, x)


@pytest.mark.oracle
def test_doubles_of_tensors_are_compared_in_doubles(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    attributes = random_trees(rng, ("BRANCH_LEQ", "BRANCH_GT"), "target", 1, dense=True)
    close_by = 0.1 + np.arange(len(attributes["nodes_values"])) * 1e-12
    for name, values in (("nodes_values", close_by), ("target_weights", attributes["target_weights"])):
        tensor = onnx.numpy_helper.from_array(np.array(values, np.float64), name)
        del attributes[name]
        attributes[f"{name}_as_tensor"] = tensor
    x = 0.1 + rng.integers(-3, 40, (33, 4)) * 1e-12
    compare(tmp_path, single("TreeEnsembleRegressor", ["y"], {"x": x}, n_targets=1, **attributes), x)


@pytest.mark.oracle
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize(
    ("names", "used", "base"),
    [
        (3, 3, None),
        (3, 2, None),
        (3, 3, [0.1, 0.2, 0.3]),
        (2, 1, None),
        (2, 1, [0.3]),
        (2, 1, [0.1, 0.2]),
        (2, 2, None),
        (2, 2, [0.2]),
        (2, 2, [0.2, 0.4]),
        (1, 1, None),
        (1, 1, [0.5]),
    ],
)
@pytest.mark.parametrize("positive", [False, True])
def test_classifiers_of_trees_label_as_onnx_runtime(
    tmp_path: Path, transform: str, names: int, used: int, base: list[float] | None, positive: bool
) -> None:
    rng = np.random.default_rng(names + used)
    attributes = random_trees(rng, ("BRANCH_LEQ",), "class", used, dense=used == 2 and names == 2)
    if positive:
        attributes["class_weights"] = [abs(w) / 5 for w in attributes["class_weights"]]
    x = hit(rng)
    more = {} if base is None else {"base_values": base}
    made = single(
        "TreeEnsembleClassifier",
        ["l", "p"],
        {"x": x},
        post_transform=transform,
        classlabels_int64s=[10, 11, 12][:names],
        **attributes,
        **more,
    )
    compare(tmp_path, made, x)


def member_model(x: Array) -> onnx.ModelProto:
    """Two trees: x0 in {1, 2, 2.5, 7} or not, then x1 <= 0; and a tree of one leaf for everything."""
    tensor, real = onnx.numpy_helper.from_array, x.dtype
    return single(
        "TreeEnsemble",
        ["y"],
        {"x": x},
        version=5,
        n_targets=2,
        aggregate_function=1,
        post_transform=0,
        tree_roots=[0, 2],
        nodes_featureids=[0, 1, 0],
        nodes_modes=tensor(np.array([6, 0, 0], np.uint8)),
        nodes_splits=tensor(np.array([0, 0, 0], real)),
        nodes_truenodeids=[1, 0, 3],
        nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[2, 1, 3],
        nodes_falseleafs=[1, 1, 1],
        leaf_targetids=[0, 1, 0, 1],
        leaf_weights=tensor(np.array([1.5, 2, 3, -0.5], real)),
        membership_values=tensor(np.array([7, 1, 2, 2.5, np.nan], real)),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_members_of_sets_are_found(tmp_path: Path, dtype: type) -> None:
    """ONNX's definition of TreeEnsemble, worked out by hand: ONNX Runtime expands sets, and refuses some."""
    x = np.array([[1, 0], [1, 1], [2.5, -1], [7, 2], [3, 0], [np.nan, 0], [0.999999, 0]], dtype)
    (found,) = run(save(tmp_path, member_model(x)), x)
    assert found.tolist() == [[1.5, -0.5], [0, 1.5], [1.5, -0.5], [0, 1.5], [3, -0.5], [3, -0.5], [3, -0.5]]
    assert found.dtype == dtype
