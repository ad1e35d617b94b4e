"""Checks around every test of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from aot.frontends.onnx.registry import CONVERSIONS
from aot.ir import registry


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """The built-in tables are what they were, whatever a test has loaded."""
    found: list[Mapping[Any, Any]] = [registry.all_operations(), registry._BY_TYPE, CONVERSIONS.load()]
    before = [dict(table) for table in found]
    yield
    assert found == before
