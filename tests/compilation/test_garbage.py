"""The garbage collector while a model is compiled, and after it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from aot.compilation.limits.budget import Budget, budgeted
from aot.compilation.limits.garbage import NEW_OBJECTS


class Stage:
    budget = Budget()

    @budgeted
    def threshold(self) -> int:
        return gc.get_threshold()[0]

    @budgeted
    def nested(self) -> int:
        return Stage().threshold

    @budgeted
    def failing(self) -> int:
        raise ValueError(gc.get_threshold()[0])


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("usual", "inside"), [(700, NEW_OBJECTS), (0, 0), (NEW_OBJECTS + 1, NEW_OBJECTS + 1)])
def test_a_stage_raises_the_threshold_and_gives_it_back(usual: int, inside: int) -> None:
    gc.set_threshold(usual, 7, 9)
    assert Stage().threshold == inside and gc.get_threshold() == (usual, 7, 9)
    assert Stage().nested == inside and gc.get_threshold() == (usual, 7, 9)
    with pytest.raises(ValueError, match=str(inside)):
        _ = Stage().failing
    assert gc.get_threshold() == (usual, 7, 9)
