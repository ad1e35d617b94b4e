"""The figure of the README is drawn from the stored tables, and is up to date."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.figure import ENGINES, ROOT, SHOWN, TABLES, draw, milliseconds, networks

FOUND = networks(TABLES.read_text(), 1)


def test_figure_is_up_to_date() -> None:
    """`python -m benchmarks.figure` makes it."""
    assert (ROOT / "docs" / "figure.svg").read_text() == draw(FOUND, 1)


@pytest.mark.parametrize(
    ("cell", "expected"), [("0.0282 (0.0292)", 0.0282), ("1.5 + 0.3", 1.8), ("193 + 42.3", 235.3), ("–", None)]
)
def test_cells_are_milliseconds(cell: str, expected: float | None) -> None:
    assert milliseconds(cell) == (None if expected is None else pytest.approx(expected))


def test_a_bar_for_each_measurement() -> None:
    measured = [time for n in FOUND for time in (*n.run, *n.start) if time is not None]
    bars = ElementTree.fromstring(draw(FOUND, 1)).findall("{http://www.w3.org/2000/svg}rect")
    assert [n.name for n in FOUND] == list(SHOWN)
    assert len(bars) == len(measured) + len(ENGINES)
    assert all(n.run[0] and n.start[0] for n in FOUND)


def test_table_that_is_missing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table has the column 'ours ms'"):
        networks("# nothing", 1)
