"""Fixtures and options of all tests: lowering passes are checked one by one, and goldens can be written anew."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import aot.compilation.stages
from aot.lowering.run import LoweringReport, run_lowering

# no bound of time, which a busy machine exceeds, and the same cases in every run
settings.register_profile("aot", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("aot")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the goldens that differ, and fail")
    parser.addoption("--quick", action="store_true", help="one case of each test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --quick, run one case of each parametrised test, the middle one; a full run has the others."""
    if not config.getoption("--quick"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {id(c[len(c) // 2]) for c in cases.values()}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking through modules and 19 000 tests, which stay, again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let plugins that are imported for the summary see all objects again."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def verified_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every compilation in a test checks its steps after each lowering pass, as `aot compile --verify` does."""

    def run(*args: Any, **options: Any) -> list[LoweringReport]:
        return run_lowering(*args, **options | {"verify": True})

    monkeypatch.setattr(aot.compilation.stages, "run_lowering", run)
