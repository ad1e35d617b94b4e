"""Write the models of this folder, and what ONNX Runtime gives for some rows: pipelines as converters write them.

python tests/frontends/onnx/tabular/make.py [folder]      needs scikit-learn, skl2onnx, onnxmltools, lightgbm, xgboost
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from lightgbm import LGBMClassifier, LGBMRegressor
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as Floats
from skl2onnx import to_onnx
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier, XGBRegressor

OPSETS = {"": 17, "ai.onnx.ml": 3}
FEATURES, TRAINED, SHOWN = 6, 200, 37
RNG = np.random.default_rng(7)
X = RNG.standard_normal((TRAINED, FEATURES)).astype(np.float32)
X[:, 5] = RNG.integers(0, 4, TRAINED)
TWO = (X[:, 0] * X[:, 1] + X[:, 5] > 1.5).astype(np.int64)
THREE = np.digitize(X[:, 0] + X[:, 2] ** 2, [0.3, 1.4])
NAMES = np.array(["low", "middle", "high"])[THREE]
VALUES = (2 * X[:, 0] - X[:, 1] * X[:, 2] + X[:, 5]).astype(np.float32)
HOLES = np.where(RNG.random(X.shape) < 0.1, np.float32(np.nan), X)

SKLEARN: dict[str, tuple[Any, Any]] = {
    "logistic": (make_pipeline(StandardScaler(), LogisticRegression()), TWO),
    "logistic_names": (make_pipeline(MinMaxScaler(), LogisticRegression()), NAMES),
    "linear": (make_pipeline(RobustScaler(), LinearRegression()), np.stack([VALUES, -VALUES], 1)),
    "sgd": (SGDClassifier(loss="log_loss", random_state=0), THREE),
    "linear_svc": (LinearSVC(), TWO),
    "svc_rbf": (SVC(probability=True, random_state=0), THREE),
    "svc_two": (SVC(probability=True, random_state=0), TWO),
    "svc_linear": (SVC(kernel="linear"), NAMES),
    "svc_poly": (SVC(kernel="poly", degree=2, coef0=1.0), TWO),
    "svc_sigmoid": (SVC(kernel="sigmoid", gamma=0.1), THREE),
    "svr": (SVR(), VALUES),
    "one_class": (OneClassSVM(nu=0.2), VALUES),
    "tree": (DecisionTreeClassifier(max_depth=4), NAMES),
    "forest": (RandomForestClassifier(6, max_depth=4, random_state=0), THREE),
    "forest_two": (RandomForestClassifier(6, max_depth=3, random_state=0), TWO + 1),
    "forest_values": (RandomForestRegressor(4, max_depth=4, random_state=0), np.stack([VALUES, VALUES**2], 1)),
    "extra_trees": (ExtraTreesRegressor(4, max_depth=5, random_state=0), VALUES),
    "boosting": (GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0), THREE),
    "boosting_two": (GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0), TWO),
    "histogram": (HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=12), TWO),
    "ada": (AdaBoostClassifier(n_estimators=5, random_state=0), THREE),
    "isolation": (IsolationForest(n_estimators=6, max_samples=40, random_state=0), VALUES),
    "neighbours": (KNeighborsClassifier(4), THREE),
    "neighbour_values": (KNeighborsRegressor(3), VALUES),
    "bayes": (GaussianNB(), NAMES),
    "means": (KMeans(4, n_init=1, random_state=0), VALUES),
    "network": (MLPClassifier((8,), max_iter=30, random_state=0), THREE),
    "components": (make_pipeline(PCA(3, random_state=0), LogisticRegression()), TWO),
    "polynomial": (make_pipeline(PolynomialFeatures(2), LinearRegression()), VALUES),
    "normalised": (make_pipeline(Normalizer("l1"), LogisticRegression()), THREE),
    "bins": (make_pipeline(KBinsDiscretizer(4, encode="ordinal"), LogisticRegression()), TWO),
    "binary": (make_pipeline(Binarizer(threshold=0.2), LogisticRegression()), TWO),
    "gauss": (GaussianProcessRegressor(), VALUES),
    "columns": (
        make_pipeline(
            ColumnTransformer([("n", StandardScaler(), [0, 1, 2]), ("c", OneHotEncoder(handle_unknown="ignore"), [5])]),
            LogisticRegression(),
        ),
        TWO,
    ),
}
HOLED = {
    "imputed": (make_pipeline(SimpleImputer(), RandomForestRegressor(4, max_depth=4, random_state=0)), VALUES),
    "histogram_holes": (HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=8), THREE),
}


def models() -> dict[str, tuple[Any, np.ndarray]]:
    """Each model and rows to show it."""
    shown = RNG.standard_normal((SHOWN, FEATURES)).astype(np.float32)
    shown[:, 5] = RNG.integers(-1, 5, SHOWN)
    holes = np.where(RNG.random(shown.shape) < 0.2, np.float32(np.nan), shown)
    inputs = [("x", Floats([None, FEATURES]))]
    found: dict[str, tuple[Any, np.ndarray]] = {}
    for name, (model, target) in SKLEARN.items():
        found[name] = to_onnx(model.fit(X, target), X[:1], target_opset=OPSETS), shown
    for name, (model, target) in HOLED.items():
        found[name] = to_onnx(model.fit(HOLES, target), X[:1], target_opset=OPSETS), holes
    light = {"n_estimators": 8, "num_leaves": 9, "verbose": -1, "min_child_samples": 5}
    for name, model, data, target in (
        ("lightgbm", LGBMClassifier(**light), HOLES, TWO),
        ("lightgbm_three", LGBMClassifier(**light), X, THREE),
        ("lightgbm_values", LGBMRegressor(**light), HOLES, VALUES),
    ):
        fitted = model.fit(data, target)
        found[name] = convert_lightgbm(fitted, initial_types=inputs, target_opset=15, zipmap=False), holes
    categories = LGBMRegressor(**light).fit(X, VALUES, categorical_feature=[5])
    found["lightgbm_categories"] = convert_lightgbm(categories, initial_types=inputs, target_opset=15), shown
    for name, model, target in (
        ("xgboost", XGBClassifier(n_estimators=6, max_depth=3), TWO),
        ("xgboost_three", XGBClassifier(n_estimators=4, max_depth=3), THREE),
        ("xgboost_values", XGBRegressor(n_estimators=6, max_depth=4), VALUES),
    ):
        found[name] = convert_xgboost(model.fit(HOLES, target), initial_types=inputs, target_opset=15), holes
    return found


def integers_for_booleans(make: Any) -> Any:
    """skl2onnx 1.20 writes booleans as integer attributes, which onnx 1.23 refuses."""

    def made(key: str, value: Any, *rest: Any, **more: Any) -> Any:
        listed = isinstance(value, list | tuple) and any(isinstance(v, bool | np.bool_) for v in value)
        return make(key, [int(v) for v in value] if listed else value, *rest, **more)

    return made


def main(folder: Path) -> None:
    expected: dict[str, np.ndarray] = {}
    for name, (model, rows) in models().items():
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        expected[f"{name}.x"] = rows
        values = session.run(None, {session.get_inputs()[0].name: rows})
        for output, value in zip(session.get_outputs(), values, strict=True):
            if isinstance(value, list):  # what ZipMap makes: a dictionary for each row
                value = np.array([list(row.values()) for row in value], np.float32)
            expected[f"{name}.y.{output.name}"] = value.astype("U") if value.dtype == object else value
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    onnx.helper.make_attribute = integers_for_booleans(onnx.helper.make_attribute)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
