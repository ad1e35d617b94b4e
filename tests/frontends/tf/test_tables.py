"""Lookup tables: what constants look up is a constant, with keys and values that are texts, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.errors import AotError, CorruptError
from tests.frontends.onnx.models import run
from tests.frontends.tf.graphs import FLOAT, graph, tensor, written

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
    with pytest.raises(CorruptError):
        run(written(tmp_path, made), [10, 20])


def test_texts_that_an_inference_asks_for_are_refused(tmp_path: Path) -> None:
    made = network(asked=("AsString", "asked", "x", {"T_type": FLOAT}), default=DEFAULT, values=VALUES)
    with pytest.raises(AotError, match="string"):
        run(written(tmp_path, made), [10, 20])
