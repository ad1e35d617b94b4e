"""Tables of ai.onnx.ml that contradict themselves are refused: the error names the layer, the rule and the value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from aot.frontends.onnx.tabular.tree_nodes import Branches, Weights, forest
from aot.runtime.errors import AotError, ModelError, UnsupportedError
from aot.tools.check import check
from tests.frontends.onnx.models import run, save
from tests.frontends.onnx.tabular.test_tabular import ROWS, single

STUMP: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}
CHAIN = 5000
DEEP = {
    "nodes_treeids": [0] * (2 * CHAIN + 1),
    "nodes_nodeids": list(range(2 * CHAIN + 1)),
    "nodes_featureids": [0] * (2 * CHAIN + 1),
    "nodes_modes": [*["BRANCH_LEQ", "LEAF"] * CHAIN, "LEAF"],
    "nodes_values": [0.0] * (2 * CHAIN + 1),
    "nodes_truenodeids": [*(k + 1 for k in range(2 * CHAIN)), 0],
    "nodes_falsenodeids": [*(k + 2 for k in range(2 * CHAIN)), 0],
}
WRONG: dict[str, tuple[dict[str, Any], type[AotError], str]] = {
    "lengths": ({"nodes_values": [0.5]}, ModelError, "equal lengths, got .*nodes_values 1"),
    "weights": ({"target_weights": [1.0]}, ModelError, "equal lengths, got .*target_weights 1"),
    "child": ({"nodes_truenodeids": [7, 0, 0]}, ModelError, "got node 7 of tree 0"),
    "itself": ({"nodes_truenodeids": [0, 0, 0]}, ModelError, "one parent at most, got several of node 0"),
    "twice": (
        {"nodes_falsenodeids": [1, 0, 0], "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"]},
        ModelError,
        "one parent at most",
    ),
    "same": ({"nodes_nodeids": [0, 1, 1]}, ModelError, "different numbers, got 1 twice"),
    "mode": ({"nodes_modes": ["BRANCH_MAYBE", "LEAF", "LEAF"]}, ModelError, "got 'BRANCH_MAYBE'"),
    "feature": ({"nodes_featureids": [4, 0, 0]}, ModelError, "nodes_featureids must be in 0..3, got 4"),
    "negative": ({"nodes_featureids": [-1, 0, 0]}, ModelError, "nodes_featureids must be in 0..3, got -1"),
    "large": ({"nodes_featureids": [1 << 33, 0, 0]}, ModelError, "nodes_featureids must be in 0..3, got 8589934592"),
    "target": ({"target_ids": [0, 1]}, ModelError, "target must be in 0..0, got 1"),
    "targets": ({"n_targets": 1 << 40}, UnsupportedError, "1 to 1048576 targets are supported, got 1099511627776"),
    "none": ({"n_targets": 0}, UnsupportedError, "targets are supported, got 0"),
    "wide": ({"n_targets": 1 << 20, "target_ids": [0, (1 << 20) - 1]}, UnsupportedError, "too many targets for 2"),
    "base": ({"base_values": [1.0, 2.0]}, ModelError, "base_values must have none or 1 numbers, got 2"),
    "aggregate": ({"aggregate_function": "MEDIAN"}, UnsupportedError, "must be one of AVERAGE.*got 'MEDIAN'"),
    "transform": ({"post_transform": "TANH"}, UnsupportedError, "must be one of NONE.*got 'TANH'"),
    "missing": ({"nodes_missing_value_tracks_true": [1]}, ModelError, "equal lengths"),
    "deep": (DEEP, UnsupportedError, "trees of at most 4096 levels are supported"),
    "empty": ({k: [] for k in STUMP if k.startswith("nodes_")}, ModelError, "nodes_"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tables_of_trees_are_refused(tmp_path: Path, name: str) -> None:
    changed, error, text = WRONG[name]
    attributes = {k: v for k, v in {**STUMP, **changed}.items() if v != []}
    path = save(tmp_path, single("TreeEnsembleRegressor", ["y"], {"x": ROWS}, **attributes))
    with pytest.raises(error, match=text) as caught:
        run(path, ROWS)
    assert "layer" in "".join((str(caught.value), *getattr(caught.value, "__notes__", ())))


def tensor(values: Any, dtype: type) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.array(values, dtype))


FIFTH: dict[str, Any] = {
    "tree_roots": [0],
    "nodes_featureids": [0],
    "nodes_modes": tensor([0], np.uint8),
    "nodes_splits": tensor([0], "f4"),
    "nodes_truenodeids": [0],
    "nodes_trueleafs": [1],
    "nodes_falsenodeids": [1],
    "nodes_falseleafs": [1],
    "leaf_targetids": [0, 0],
    "leaf_weights": tensor([1, 2], "f4"),
}
FIFTHS: dict[str, tuple[dict[str, Any], str]] = {
    "root": ({"tree_roots": [3]}, "tree_roots must be in 0..0, got 3"),
    "leaf": ({"nodes_falsenodeids": [2]}, "leaves must be in 0..1, got 2"),
    "node": ({"nodes_trueleafs": [0], "nodes_truenodeids": [5]}, "nodes must be in 0..0, got 5"),
    "cycle": ({"nodes_trueleafs": [0]}, "one parent at most, got several of node 0"),
    "mode": ({"nodes_modes": tensor([9], np.uint8)}, "nodes_modes must be in 0..6, got 9"),
    "members": ({"nodes_modes": tensor([6], np.uint8), "membership_values": tensor([1], "f4")}, "a NaN for each of 1"),
    "aggregate": ({"aggregate_function": 4}, "aggregate_function must be in 0..3, got 4"),
    "transform": ({"post_transform": -1}, "post_transform must be in 0..4, got -1"),
    "weights": ({"leaf_targetids": [0]}, "equal lengths, got leaf_weights 2, leaf_targetids 1"),
}


@pytest.mark.parametrize("name", FIFTHS)
def test_wrong_references_are_refused(tmp_path: Path, name: str) -> None:
    changed, text = FIFTHS[name]
    made = single("TreeEnsemble", ["y"], {"x": ROWS}, version=5, **{**FIFTH, **changed})
    with pytest.raises(ModelError, match=text):
        run(save(tmp_path, made), ROWS)


OTHERS: dict[str, tuple[str, dict[str, Any], type[AotError], str]] = {
    "scaler": ("Scaler", {"offset": [1.0, 2.0], "scale": [1.0]}, ModelError, "one number or 4, got 2"),
    "imputer": ("Imputer", {"imputed_value_floats": [1.0] * 3}, ModelError, "one number or 4, got 3"),
    "norm": ("Normalizer", {"norm": "L3"}, UnsupportedError, "got 'L3'"),
    "categories": ("OneHotEncoder", {"cats_strings": ["a"]}, ModelError, "cats_int64s is missing"),
    "keys": ("LabelEncoder", {"keys_floats": [1.0], "values_int64s": [1, 2]}, ModelError, "1 keys and 2 values"),
    "linear": ("LinearRegressor", {"coefficients": [1.0] * 3}, ModelError, "1 x 4 numbers, got 3"),
    "targets": ("LinearRegressor", {"coefficients": [1.0], "targets": 1 << 50}, ModelError, "numbers, got 1"),
    "vectors": (
        "SVMRegressor",
        {"coefficients": [1.0], "rho": [0.0], "n_supports": 1, "support_vectors": [1.0]},
        ModelError,
        "support_vectors must have 1 x 4 numbers, got 1",
    ),
    "texts": (
        "LabelEncoder",
        {"keys_tensor": onnx.helper.make_tensor("k", 8, [1], [b"a"]), "values_int64s": [1]},
        ModelError,
        "keys must have the type of the data",
    ),
    "features": ("FeatureVectorizer", {"inputdimensions": [3]}, ModelError, "must have 3 features, got 4"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_wrong_attributes_are_refused(tmp_path: Path, name: str) -> None:
    kind, attributes, error, text = OTHERS[name]
    with pytest.raises(error, match=text):
        run(save(tmp_path, single(kind, ["y"], {"x": ROWS}, 2, **attributes)), ROWS)


def test_check_accepts_a_forest(tmp_path: Path) -> None:
    assert check(save(tmp_path, single("TreeEnsembleRegressor", ["y"], {"x": ROWS}, **STUMP))) == ()


def test_a_table_may_have_64_numbers_for_each_weight() -> None:
    trees, targets = 10_000, 64
    leaves, zeros = np.arange(2 * trees), np.zeros(trees, np.int64)
    branches = Branches(zeros, zeros, zeros.astype("f4"), zeros > 0, ~leaves.reshape(trees, 2), leaves[:trees])
    weights = Weights(leaves, leaves % 2 * (targets - 1), np.ones(2 * trees, "f4"), 2 * trees, leaves // 2)
    assert forest("trees", branches, weights, targets, 0.0).weights.shape == (2 * trees, targets)
    fewer = Weights(leaves[1:], weights.targets[1:], weights.values[1:], 2 * trees, weights.trees)
    with pytest.raises(UnsupportedError, match="trees: too many targets for 19999 weights, got 64"):
        forest("trees", branches, fewer, targets, 0.0)
