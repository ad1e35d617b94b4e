"""Checks a table of cases in one test: pytest takes longer for each of thousands of tests than such a case does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

MAX_ERROR_LENGTH = 600  # characters of the line of a case

Case = TypeVar("Case")


def check_each(check: Callable[[Case], object], cases: Iterable[Case], name: Callable[[Case], str] = str) -> None:
    """Call `check` with each case; AssertionError has a line for each that fails, and the cause of the first."""
    failed, count = list[tuple[str, Exception]](), 0
    for case in cases:
        count += 1
        try:
            check(case)
        except Exception as error:  # the other cases are tried, too
            failed.append((name(case), error))
    assert count, "the table has no case"
    if failed:
        lines = [f"{case}: {type(error).__name__}: {error}"[:MAX_ERROR_LENGTH] for case, error in failed]
        raise AssertionError("\n".join(lines)) from failed[0][1]
