"""Lookup tables of constants and of files, with keys and values that are numbers or texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from aot.runtime.errors import AotError, BudgetError, CorruptError, ModelError, UnsupportedError
from tests.frontends.onnx.models import run
from tests.frontends.tf.graphs import FLOAT, graph, messages, saved_model, tensor, written

INT64, STRING = 9, 7


def const(name: str, dtype: int, shape: list[int], **fields: Any) -> tuple[Any, ...]:
    return ("Const", name, {"dtype": dtype, "value": tensor(dtype, shape, **fields)})


def network(*, asked: Any, default: Any, values: Any) -> Any:
    """y = x + table[asked], where the table has the keys b and a."""
    types = {"key_dtype_type": STRING, "value_dtype_type": FLOAT}
    return graph(
        ("HashTableV2", "table", {**types, "shared_name": b"words"}),
        const("keys", STRING, [2], string_val=[b"b", b"a"]),
        values,
        ("LookupTableImportV2", "fill", "table", "keys", "values"),
        asked,
        default,
        ("LookupTableFindV2", "found", "table", "asked", "default", "^fill", {"Tin_type": STRING, "Tout_type": FLOAT}),
        ("AddV2", "y", "x", "found", {"T_type": FLOAT}),
    )


VALUES = const("values", FLOAT, [2], float_val=[2.0, 1.0])
ASKED = const("asked", STRING, [2], string_val=[b"a", b"z"])
DEFAULT = const("default", FLOAT, [], float_val=[-1.0])


def test_texts_that_are_looked_up_by_constants_fold(tmp_path: Path) -> None:
    made = network(asked=ASKED, default=DEFAULT, values=VALUES)
    assert run(written(tmp_path, made), [10, 20])[0].tolist() == [11, 19]


@pytest.mark.parametrize(
    "changed",
    [
        {"values": const("values", FLOAT, [1], float_val=[2.0])},
        {"default": const("default", FLOAT, [3], float_val=[0.0])},
    ],
    ids=["too few values", "a default of another shape"],
)
def test_tables_that_do_not_fit_are_damage(tmp_path: Path, changed: dict[str, Any]) -> None:
    made = network(**{"asked": ASKED, "default": DEFAULT, "values": VALUES, **changed})
    with pytest.raises(ModelError):
        run(written(tmp_path, made), [10, 20])


def test_texts_that_an_inference_asks_for_are_refused(tmp_path: Path) -> None:
    made = network(asked=("AsString", "asked", "x", {"T_type": FLOAT}), default=DEFAULT, values=VALUES)
    with pytest.raises(AotError, match="string"):
        run(written(tmp_path, made), [10, 20])


# ---- texts of an inference


TEXTS = ["a", "", "b", "ab", "z", "b\0", "ä"]


def asking(*fill: Any, values: int, default: Any) -> Any:
    """y = table[x] of texts `asked`, the input."""
    types = {"key_dtype_type": STRING, "value_dtype_type": values}
    made = graph(
        ("Placeholder", "asked", {"dtype": STRING, "shape": [-1]}),
        ("HashTableV2", "table", {**types, "shared_name": b"words"}),
        *fill,
        default,
        ("LookupTableFindV2", "y", "table", "asked", "default", {"Tin_type": STRING, "Tout_type": values}),
    )
    del made.node[0]  # x
    return made


def test_texts_of_an_inference_are_looked_up(tmp_path: Path) -> None:
    keys = const("keys", STRING, [5], string_val=[b"b", b"a", b"", "ä".encode(), b"abc"])
    values = const("values", INT64, [5], int64_val=[10, 11, 12, 13, 14])
    fill = ("LookupTableImportV2", "fill", "table", "keys", "values")
    made = asking(keys, values, fill, values=INT64, default=const("default", INT64, [], int64_val=[-1]))
    model = aot.compile_model(written(tmp_path, made))
    assert model(np.array(TEXTS, object))["y"].tolist() == [11, 12, 10, -1, -1, -1, 13]
    assert model(np.array([], object))["y"].tolist() == []


def test_values_may_be_texts(tmp_path: Path) -> None:
    keys = const("keys", STRING, [2], string_val=[b"b", b"a"])
    values = const("values", STRING, [2], string_val=["bé".encode(), b""])
    fill = ("LookupTableImportV2", "fill", "table", "keys", "values")
    made = asking(keys, values, fill, values=STRING, default=const("default", STRING, [], string_val=[b"?"]))
    found = aot.compile_model(written(tmp_path, made))(np.array(TEXTS, object))["y"]
    assert found.tolist() == ["", "?", "bé", "?", "?", "?", "?"]


def test_other_operations_on_texts_are_refused(tmp_path: Path) -> None:
    made = graph(
        ("Placeholder", "asked", {"dtype": STRING, "shape": [-1]}),
        ("StringToHashBucketFast", "y", "asked", {"num_buckets": 8}),
    )
    del made.node[0]
    with pytest.raises(AotError, match="in 'y': StringToHashBucketFast: strings are compared, joined, split"):
        aot.compile_model(written(tmp_path, made))


# ---- tables of files


def filled_from(
    folder: Path,
    content: bytes | None,
    *,
    name: str = "words.txt",
    values: int = INT64,
    variable: bool = False,
    **attrs: int | bytes,
) -> Path:
    """A SavedModel that looks texts up in an asset, whose path a variable may hold."""
    held = (
        ("VarHandleOp", "held", {"shared_name": b"held"}),
        ("AssignVariableOp", "assign", "held", "path"),
        ("ReadVariableOp", "read", "held", "^assign", {"dtype": STRING}),
    )
    columns = {"key_index": -2, "value_index": -1, **attrs}
    fill = (*held, ("InitializeTableFromTextFileV2", "fill", "table", "read" if variable else "path", columns))
    empty = {"int64_val": [-1]} if values == INT64 else {"float_val": [-1.0]}
    default = const("default", values, [], **empty)
    made = asking(const("path", STRING, [], string_val=[b"/data/words.txt"]), *fill, values=values, default=default)
    saved_model(folder, made, inputs=["asked"])
    model = messages.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    meta = model.meta_graphs[0]
    meta.signature_def["serving_default"].inputs["asked"].dtype = STRING
    meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "fill"
    meta.asset_file_def.add(filename=name).tensor_info.name = "path:0"
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    if content is not None:
        (folder / "assets").mkdir()
        (folder / "assets" / "words.txt").write_bytes(content)
    return folder


LINES = b"b\r\na\nz\n"
COLUMNS = b"a,x,1.5\nb,y,-2e1\n,,.25"
PAIRS: dict[str, tuple[bytes, dict[str, Any], list[float]]] = {
    "numbers of lines": (LINES, {}, [1, -1, 0, -1, 2, -1, -1]),
    "first lines": (LINES, {"vocab_size": 2}, [1, -1, 0, -1, -1, -1, -1]),
    "numbers that begin with 5": (LINES, {"offset": 5}, [6, -1, 5, -1, 7, -1, -1]),
    "columns": (
        COLUMNS,
        {"key_index": 0, "value_index": 2, "delimiter": b",", "offset": 5, "values": FLOAT},
        [1.5, 0.25, -20, -1, -1, -1, -1],
    ),
}


@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_lines_of_an_asset_fill_a_table(name: str, variable: bool, tmp_path: Path) -> None:
    content, attrs, wanted = PAIRS[name]
    found = aot.compile_model(filled_from(tmp_path / "m", content, variable=variable, **attrs))(
        np.array(TEXTS, object)
    )["y"]
    assert found.tolist() == wanted


HOSTILE: dict[str, tuple[bytes | None, dict[str, Any], str]] = {
    "a path that goes up": (LINES, {"name": "../saved_model.pb"}, "an asset must be a file in the folder assets"),
    "a path from the root": (LINES, {"name": "/etc/passwd"}, "an asset must be a file in the folder assets"),
    "a path that goes up later": (LINES, {"name": "a/../../x"}, "an asset must be a file in the folder assets"),
    "no name": (LINES, {"name": ""}, "an asset must be a file in the folder assets"),
    "no file": (None, {}, "the asset 'words.txt' must be a file in the folder assets, got none"),
    "the folder": (LINES, {"name": "."}, "the asset '.' must be a file in the folder assets, got none"),
    "too few lines": (LINES, {"vocab_size": 5}, "it must have 5 lines, got 3"),
    "an empty line": (b"a\n\nb\n", {}, "got the empty line 1"),
    "numbers of lines as floats": (LINES, {"values": FLOAT}, "numbers of lines must be i64, got f32"),
    "no such column": (LINES, {"value_index": 1}, "line 0 must have column 1, got 1 columns"),
    "a negative column": (LINES, {"value_index": -7}, "line 0 must have column -7"),
    "no number": (b"a\t1_0\n", {"key_index": 0, "value_index": 1}, "must hold numbers, got '1_0'"),
    "a number that is too large": (b"a\t99999999999999999999\n", {"key_index": 0, "value_index": 1}, "too large"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_assets_that_lie_are_refused(name: str, tmp_path: Path) -> None:
    content, attrs, rule = HOSTILE[name]
    with pytest.raises(CorruptError, match=rule):
        aot.read_model(filled_from(tmp_path / "m", content, **attrs))


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    folder = filled_from(tmp_path / "m", LINES)
    (tmp_path / "secret.txt").write_bytes(b"a")
    (folder / "assets" / "words.txt").unlink()
    (folder / "assets" / "words.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(CorruptError, match="got none"):
        aot.read_model(folder)


def test_large_assets_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aot.frontends.tf.files.assets.MAX_BYTES", 3)
    with pytest.raises(BudgetError, match="at most 3 bytes, got 7"):
        aot.read_model(filled_from(tmp_path / "m", LINES))


def test_files_that_are_no_assets_are_unsupported(tmp_path: Path) -> None:
    folder = filled_from(tmp_path / "m", LINES)
    model = messages.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    del model.meta_graphs[0].asset_file_def[:]
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    with pytest.raises(UnsupportedError, match=r"from assets of a SavedModel, got .'/data/words.txt'.: make"):
        aot.compile_model(folder)
