"""Random trials: inference and compiled code against the reference."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aot.compilation.driver import compile_model
from aot.options import CompileOptions
from aot.runtime.errors import UnsupportedError
from tests.properties.compiled import network, wrong
from tests.properties.drawing import Draw, Trial, random_draw, with_run_time_sizes

FAMILIES = ("elementwise", "gathering", "moving", "windowed", "mixing", "detecting")
MAKERS: list[Callable[[Draw], Trial]] = [
    maker for family in FAMILIES for maker in importlib.import_module(f"tests.properties.{family}").TRIALS
]
FAST = CompileOptions(level=None)

each_maker = pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
few = settings(max_examples=4, suppress_health_check=list(HealthCheck))


@each_maker
@few
@given(data=st.data())
def test_inference_says_what_the_reference_gives(maker: Callable[[Draw], Trial], data: st.DataObject) -> None:
    trial = maker(Draw(lambda low, high: data.draw(st.integers(low, high))))
    expected = trial.expected()
    for known in (trial, with_run_time_sizes(trial)):
        try:
            types = known.op.outputs(*known.operands())
        except UnsupportedError:  # says which size must be known
            assert known.dynamic
            continue
        assert [t.rank for t in types] == [a.ndim for a in expected]
        for t, a in zip(types, expected, strict=True):
            known_sizes = [n == m for n, m in zip(t.shape, a.shape, strict=True) if isinstance(n, int)]
            assert all(known_sizes), f"{t} against {a.shape}"


@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_code_gives_what_the_reference_gives(family: str) -> None:
    """One trial of each maker, all of a family in one network, which is compiled once."""
    makers = importlib.import_module(f"tests.properties.{family}").TRIALS
    trials = [maker(random_draw(2 + k)) for k, maker in enumerate(makers)]
    graph, fed = network(trials)
    model = compile_model(graph, FAST, threads=1)
    results = model(*fed)
    failed = wrong(trials, [np.asarray(results[n]) for n in range(len(model.outputs))])
    assert not failed, "\n".join(failed)
