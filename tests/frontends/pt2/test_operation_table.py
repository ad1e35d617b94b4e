"""The page of PyTorch's operations."""

from __future__ import annotations

from pathlib import Path

from aot.frontends.pt2.table import markdown, read_kinds

ROOT = Path(__file__).parents[3]


def test_page_of_operations_is_up_to_date() -> None:
    """`python -m aot.frontends.pt2.table > docs/use/models/pytorch-ops.md` makes it."""
    assert (ROOT / "docs" / "use" / "models" / "pytorch-ops.md").read_text() == markdown()


def test_many_operations_are_read() -> None:
    assert len(read_kinds()) >= 500
