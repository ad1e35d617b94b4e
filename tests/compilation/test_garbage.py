"""The garbage collector while a model is compiled, and after it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from aot.compilation.limits.budget import Budget, run_within
from aot.compilation.limits.garbage import NEW_OBJECTS


def threshold() -> int:
    return run_within(Budget(), lambda: gc.get_threshold()[0])


def failing() -> int:
    raise ValueError(gc.get_threshold()[0])


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("usual", "inside"), [(700, NEW_OBJECTS), (0, 0), (NEW_OBJECTS + 1, NEW_OBJECTS + 1)])
def test_a_stage_raises_the_threshold_and_gives_it_back(usual: int, inside: int) -> None:
    gc.set_threshold(usual, 7, 9)
    assert threshold() == inside and gc.get_threshold() == (usual, 7, 9)
    assert run_within(Budget(), threshold) == inside and gc.get_threshold() == (usual, 7, 9)
    with pytest.raises(ValueError, match=str(inside)):
        run_within(Budget(), failing)
    assert gc.get_threshold() == (usual, 7, 9)
