"""Columns of tables become inputs: rows in blocks, flat rows, arrays of arrays, models of a fixed batch."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import aot
from aot.runtime.errors import UsageError
from aot.runtime.predictor import Predictor, _load_pyfunc, predict_batch

TEXTS = {
    "any": "m (float[n,2,3] x) => (float[n,2,3] y) { y = Add(x, x) }",
    "four": "m (float[4,2,3] x) => (float[4,2,3] y) { y = Add(x, x) }",
    "two": "m (float[n,2] x, int64[n] k) => (float[n,2] y, int64[n] l) { y = Add(x, x) l = Add(k, k) }",
    "scalar": "m (float[n] x, float s) => (float[n] y) { y = Add(x, s) }",
    "other": "m (float[n] x, float[k] z) => (float[n] y) { y = Add(x, x) }",
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libraries")
    for name, text in TEXTS.items():
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
        aot.compile_model(model, output=folder / f"{name}.so")
    return folder


def rows(count: int) -> Any:
    return np.arange(count * 6, dtype=np.float32).reshape(count, 2, 3)


@pytest.mark.parametrize("model", ["any", "four"])
@pytest.mark.parametrize("count", [0, 1, 4, 5, 9])
@pytest.mark.parametrize("form", ["arrays", "flat", "doubles", "integers", "objects", "lists"])
def test_forms_of_columns(libraries: Path, model: str, count: int, form: str) -> None:
    x = rows(count)
    objects = np.empty(count, object)
    objects[:] = list(x.reshape(count, 6))
    forms: dict[str, Any] = {"arrays": x, "flat": x.reshape(count, 6), "doubles": x.astype(np.float64)}
    forms |= {"integers": x.astype(np.int32), "objects": objects, "lists": x.tolist()}
    predictor = Predictor(libraries / f"{model}.so", rows=3)
    found = predictor.add_columns({"x": forms[form], "id": np.arange(count)})
    assert list(found) == ["x", "id", "y"]
    np.testing.assert_array_equal(found["y"], x + x)


def test_tables_and_several_inputs(libraries: Path) -> None:
    predictor = _load_pyfunc(str(libraries / "two.so"))
    x, k = np.ones((5, 2), np.float32), np.arange(5)
    columns = {"x": SimpleNamespace(to_numpy=lambda: x), "k": SimpleNamespace(to_numpy=lambda: k)}

    class Table(SimpleNamespace):
        def __getitem__(self, name: str) -> Any:
            return columns[name]

    for given in (Table(columns=["x", "k"]), {"x": x, "k": k}):
        found = predictor.predict(given)
        assert (found["y"] == 2).all() and found["l"].tolist() == [0, 2, 4, 6, 8]
    columns |= {"0": columns["x"], "1": columns["k"]}
    assert sorted(predictor.predict(Table(columns=["0", "1"]))) == ["l", "y"]  # MLflow's names without a signature
    with pytest.raises(UsageError, match="must be a column 'x', got 1, 0"):
        predictor.predict(Table(columns=["1", "0"]))
    both = predict_batch(libraries / "two.so")()(x, k)
    assert sorted(both) == ["l", "y"]
    assert predict_batch(libraries / "two.so", "l")()(x, k).tolist() == [0, 2, 4, 6, 8]


def test_it_is_pickled_as_path_and_hash(libraries: Path) -> None:
    predictor = Predictor(libraries / "any.so", threads=1, rows=2)
    data = pickle.dumps(predictor)
    assert len(data) < 600
    np.testing.assert_array_equal(pickle.loads(data)({"x": rows(5)})["y"], 2 * rows(5))


@pytest.mark.parametrize(
    ("model", "batch", "says"),
    [
        ("any", {"z": rows(1)}, "must be a column 'x', got z"),
        ("any", {"x": rows(1)[:, :1]}, r"expected f32\[n,2,3\]"),
        ("any", {"x": rows(1).reshape(1, 6)[:, :5]}, "a row of 'x' must have 6 numbers"),
        ("any", {"x": np.array(["a"])}, "must be f32"),
        ("any", {"x": rows(1).astype(complex)}, "must be f32"),
        ("any", {"x": [[1, 2], [3]]}, "rows of 'x' must have equal sizes"),
        ("two", {"x": np.ones((2, 2)), "k": np.arange(3)}, r"equal numbers of rows, got \[2, 3\]"),
        ("two", {"x": np.ones((2, 2)), "k": np.ones(2)}, "'k' must be i64"),
    ],
)
def test_columns_that_do_not_fit(libraries: Path, model: str, batch: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Predictor(libraries / f"{model}.so")(batch)


@pytest.mark.parametrize(("model", "says"), [("scalar", "got a scalar"), ("other", "as many rows as each other")])
def test_models_without_rows(libraries: Path, model: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Predictor(libraries / f"{model}.so")
    with pytest.raises(UsageError, match="rows must be 1 or more"):
        Predictor(libraries / "any.so", rows=0)
