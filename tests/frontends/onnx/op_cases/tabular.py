"""Operations of domain ai.onnx.ml, and counts of n-grams."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.numpy_helper import from_array

from tests.frontends.onnx.case import Case, case, known, row
from tests.frontends.onnx.models import Array

RNG = np.random.default_rng(3)
ROWS: Array = RNG.standard_normal((23, 4)).astype(np.float32)
HOLES = np.where(RNG.random(ROWS.shape) < 0.3, np.float32(np.nan), ROWS)
WHOLE = (ROWS * 2).astype(np.int64)
MISSING = np.where(np.isnan(HOLES), HOLES, np.round(HOLES))
COEFFICIENTS = [0.3, -0.2, 0.9, 0.1, -0.5, 0.4, 0.2, -0.8, 0.6, 0.7, -0.1, -0.3]
THREE = {"coefficients": COEFFICIENTS, "intercepts": [0.1, 0.2, -0.3]}
ONE = {"coefficients": COEFFICIENTS[:4], "intercepts": [0.1]}
CENTRES = [float(v) for v in np.random.default_rng(8).normal(size=5 * 4)]
PAIRS: dict[str, Any] = {
    "coefficients": COEFFICIENTS[:10],
    "support_vectors": CENTRES,
    "rho": [0.1, -0.2, 0.3],
    "vectors_per_class": [2, 1, 2],
    "kernel_type": "RBF",
    "kernel_params": [0.2, 0.0, 3.0],
}
PAIR = {**PAIRS, "coefficients": COEFFICIENTS[:5], "rho": [0.05], "vectors_per_class": [3, 2]}
CHANCES = {"prob_a": [-1.5, -1.0, -2.0], "prob_b": [0.1, -0.1, 0.2]}
CHANCE = {"prob_a": [-1.5], "prob_b": [0.1]}
PLAIN = {"kernel_params": [0.0, 0.0, 0.0]}
CLASSIFIERS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    *(("LinearClassifier", 3, {**THREE, "post_transform": t}) for t in ("NONE", "SOFTMAX", "LOGISTIC")),
    *(("LinearClassifier", 2, {**ONE, "post_transform": t}) for t in ("NONE", "LOGISTIC")),
    ("SVMClassifier", 3, PAIRS),
    ("SVMClassifier", 3, {**PAIRS, "kernel_type": "POLY", "kernel_params": [0.3, 1.0, 3.0]}),
    ("SVMClassifier", 3, {**PAIRS, "kernel_type": "SIGMOID", "post_transform": "SOFTMAX"}),
    ("SVMClassifier", 3, {**PAIRS, **CHANCES}),
    ("SVMClassifier", 2, PAIR),
    ("SVMClassifier", 2, {**PAIR, "post_transform": "LOGISTIC"}),
    ("SVMClassifier", 2, {**PAIR, **CHANCE}),
    ("SVMClassifier", 3, {"coefficients": COEFFICIENTS, "rho": [0.2], "kernel_type": "LINEAR", **PLAIN}),
    ("SVMClassifier", 2, {"coefficients": COEFFICIENTS[:8], "rho": [0.2], **PLAIN}),
)
STUMPS = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2],
    "nodes_featureids": [1, 0, 0, 2, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    "nodes_values": [0.25, 0.0, 0.0, -0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
}
LEAVES = {
    "treeids": [0, 0, 0, 0, 1, 1],
    "nodeids": [1, 1, 2, 2, 1, 2],
    "ids": [0, 1, 0, 1, 1, 0],
    "weights": [1.0, 0.5, -0.25, 2.0, -0.5, 0.75],
}


def ml(kind: str, x: Any, *more: Any, **attrs: Any) -> Case:
    return case(f"ai.onnx.ml.{kind}", x, *more, tolerance=2e-5, **attrs)


def leaves(prefix: str) -> dict[str, Any]:
    return STUMPS | {f"{prefix}_{name}": values for name, values in LEAVES.items()}


def grams(**attrs: Any) -> Case:
    return case(
        "TfIdfVectorizer", row(RNG.integers(0, 4, (3, 9))), max_skip_count=2, min_gram_length=1, max_gram_length=2,
        ngram_counts=[0, 3], ngram_indexes=[2, 1, 0, 3, 4], pool_int64s=[1, 2, 3, 1, 2, 3, 0], open=False, **attrs,
    )  # fmt: skip


CASES = [
    ml("Scaler", row(ROWS), offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 2.0, -1.0, 3.0]),
    ml("Scaler", (ROWS * 9).astype(np.int64), offset=[1.0], scale=[0.25]),
    ml("Scaler", ROWS.astype(np.float64), offset=[0.1], scale=[3.0]),
    ml("Normalizer", np.abs(ROWS), norm="MAX"),
    ml("Normalizer", ROWS, norm="MAX"),
    ml("Normalizer", np.where(ROWS > 0, ROWS, 0), norm="L1"),
    ml("Normalizer", ROWS.astype(np.float64), norm="L2"),
    ml("Normalizer", ROWS * 0, norm="L2"),
    ml("Imputer", row(HOLES), imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan")),
    ml("Imputer", np.round(ROWS), imputed_value_floats=[7.0], replaced_value_float=1.0),
    ml("Imputer", WHOLE, imputed_value_int64s=[7], replaced_value_int64=1),
    ml("OneHotEncoder", WHOLE, cats_int64s=[-1, 0, 1, 3], zeros=1),
    ml("OneHotEncoder", ROWS * 2, cats_int64s=[-1, 0, 1], zeros=1),
    ml("FeatureVectorizer", row(ROWS), row(ROWS[:, :1]), inputdimensions=[4, 1]),
    ml("FeatureVectorizer", row((ROWS * 5).astype(np.int64)), inputdimensions=[4]),
    ml(
        "LabelEncoder", WHOLE, version=2, keys_int64s=[1, -1, 0, 1], values_floats=[0.5, 1.5, 2.5, 9.0],
        default_float=-7.0,
    ),
    ml("LabelEncoder", WHOLE[:, 0], version=2, keys_int64s=[1, -1, 0], values_strings=["one", "minus", "zero"]),
    ml("LabelEncoder", MISSING, version=2, keys_floats=[1.0, float("nan"), 0.0], values_int64s=[10, 11, 12]),
    ml(
        "LabelEncoder", MISSING, keys_tensor=from_array(np.array([1, np.nan, 0], np.float32)),
        values_tensor=from_array(np.array([5, 6, 7], np.int64)), default_tensor=from_array(np.array([8], np.int64)),
    ),
    ml("CategoryMapper", WHOLE[:, 0], cats_int64s=[1, 0], cats_strings=["one", "zero"], default_string="none"),
    ml("Binarizer", ROWS, threshold=0.3),
    ml("Binarizer", ROWS),
    ml("ArrayFeatureExtractor", ROWS, known([2, 0])),
    ml("ArrayFeatureExtractor", ROWS[0], known([[1]])),
    ml(
        "LinearRegressor", row(ROWS), coefficients=COEFFICIENTS[:8], targets=2, intercepts=[1.0, -1.0],
        post_transform="SOFTMAX",
    ),
    ml("LinearRegressor", row(ROWS), coefficients=[1.0, 2.0, 3.0, 4.0], post_transform="LOGISTIC"),
    ml("SVMRegressor", row(ROWS), coefficients=[1.0, 2.0, 3.0, 4.0], rho=[0.5], **PLAIN),
    ml(
        "SVMRegressor", row(ROWS), coefficients=[1.0, -0.5], rho=[-0.1], kernel_type="RBF",
        kernel_params=[0.3, 0.0, 0.0], support_vectors=[0.1 * k for k in range(8)], n_supports=2, one_class=1,
    ),
    *(
        ml(kind, row(ROWS), outputs=2, **attrs, **names)
        for kind, count, attrs in CLASSIFIERS
        for names in ({"classlabels_strings": ["a", "b", "c"][:count]}, {"classlabels_ints": [5, 3, 9][:count]})
    ),
    ml("TreeEnsembleRegressor", row(ROWS), version=3, n_targets=2, base_values=[0.5, -1.0], **leaves("target")),
    ml(  # ONNX Runtime leaves the base value of a target out where no leaf has a weight for it
        "TreeEnsembleRegressor", row(ROWS), version=3, n_targets=3, base_values=[0.5, -1.0, 2.0], by_evaluator=True,
        **leaves("target"),
    ),
    ml("TreeEnsembleRegressor", row(ROWS), version=3, n_targets=2, aggregate_function="MAX", **leaves("target")),
    *(
        ml(
            "TreeEnsembleClassifier", row(ROWS), version=3, outputs=2, post_transform=how, classlabels_int64s=[4, 7],
            **leaves("class"),
        )
        for how in ("NONE", "LOGISTIC")
    ),
    ml(
        "TreeEnsemble", row(ROWS), n_targets=2, aggregate_function=1, tree_roots=[0], nodes_featureids=[1],
        nodes_modes=from_array(np.array([0], np.uint8)), nodes_splits=from_array(np.array([0.25], np.float32)),
        nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[1], nodes_falseleafs=[1],
        leaf_targetids=[0, 1], leaf_weights=from_array(np.array([1.5, -0.5], np.float32)),
    ),
    grams(mode="TF"),
    grams(mode="IDF", weights=[1.0, 2.0, 3.0, 0.5, 2.5]),
    grams(mode="TFIDF", weights=[1.0, 2.0, 3.0, 0.5, 2.5]),
]  # fmt: skip
