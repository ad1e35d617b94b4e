"""The page of TensorFlow Lite's operations."""

from __future__ import annotations

from pathlib import Path

from aot.frontends.tflite.table import builtins, families, markdown

ROOT = Path(__file__).parents[3]


def test_page_of_operations_is_up_to_date() -> None:
    """`python -m aot.frontends.tflite.table > docs/use/models/tflite-ops.md` makes it."""
    assert (ROOT / "docs" / "use" / "models" / "tflite-ops.md").read_text() == markdown()


def test_most_builtins_are_read() -> None:
    assert len({k for kinds in families().values() for k in kinds} & builtins()) >= 130
