"""A plugin of pytest: writes down which lines each test touches."""

from __future__ import annotations

import os
from collections.abc import Generator

import coverage
import pytest

from benchmarks.faults import RECORD

SOURCES = [folder for folder in ("aot", "codegen", "runtime") if os.path.isdir(folder)]
_cover = coverage.Coverage(os.environ[RECORD], data_suffix=True, source=SOURCES)


def pytest_configure() -> None:
    _cover.start()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lines belong to the test that runs; those of imports belong to none."""
    _cover.switch_context(item.nodeid)
    result = yield
    _cover.switch_context("")
    return result


def pytest_unconfigure() -> None:
    _cover.stop()
    _cover.save()
