"""Checks a table of cases in one test: pytest takes longer for each of thousands of tests than such a case does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

MOST = 600  # letters of an error

Case = TypeVar("Case")


def check_each(check: Callable[[Case], object], cases: Iterable[Case], name: Callable[[Case], str] = str) -> None:
    """Call `check` with each case; AssertionError has a line for each that fails, and the cause of the first."""
    failed = list[tuple[str, Exception]]()
    for case in cases:
        try:
            check(case)
        except Exception as error:  # the other cases are tried, too
            failed.append((name(case), error))
    if failed:
        lines = [f"{case}: {type(error).__name__}: {error}"[:MOST] for case, error in failed]
        raise AssertionError("\n".join(lines)) from failed[0][1]
