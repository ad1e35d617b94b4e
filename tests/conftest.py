"""What all tests share: lowering passes are checked one by one, and goldens can be written anew."""

from __future__ import annotations

from typing import Any

import pytest

import aot.driver
from aot.lowering.run import LoweringReport, run_lowering


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the goldens that differ, and fail")


@pytest.fixture(autouse=True)
def verified_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every compilation in a test checks its steps after each lowering pass, as `aot compile --verify` does."""

    def run(*args: Any, **options: Any) -> list[LoweringReport]:
        return run_lowering(*args, **options | {"verify": True})

    monkeypatch.setattr(aot.driver, "run_lowering", run)
