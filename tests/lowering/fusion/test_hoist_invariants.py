"""Values that are equal for all channels of an image are computed once."""

from __future__ import annotations

import pytest

from aot.codegen.ir.definition import Group
from aot.compilation.compilation import Compilation
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.opset.image.grid import Outside, SampleMode
from tests.lowering.check import compiled


def shared(made: Compilation) -> bool:
    works = [w for s in made.steps.steps for w in s.works]
    return any(isinstance(w, Group) and w.name == "shared" for w in works)


@pytest.mark.parametrize(("mode", "outside"), [*zip(SampleMode, Outside, strict=True)])
def test_places_in_a_picture(mode: SampleMode, outside: Outside) -> None:
    def make(b: Builder, x: OutPort, grid: OutPort) -> OutPort:
        return b.GridSample(x, b.Multiply(grid, 0.4), mode=mode, padding_mode=outside)

    assert shared(compiled(make, (2, 5, 6, 7), (2, 3, 11, 2)))


def test_few_channels_share_nothing() -> None:
    assert not shared(compiled(lambda b, x, grid: b.GridSample(x, grid), (2, 3, 6, 7), (2, 3, 11, 2)))


def test_cheap_invariants_are_not_hoisted() -> None:
    assert not shared(compiled(lambda b, x, mask: b.Multiply(x, b.Add(mask, 1.0)), (2, 5, 6, 16), (1, 1, 6, 16)))
