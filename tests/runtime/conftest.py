"""Compiled models that the runtime's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import built, chain, varying


@pytest.fixture(scope="session")
def chain_so(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chain") / "chain.so"
    built(chain(calls=5)).write_shared(path)
    return path


@pytest.fixture(scope="session")
def varying_so(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("varying") / "varying.so"
    built(varying()).write_shared(path)
    return path
