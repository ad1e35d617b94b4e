"""Control between calls: sizes that calls have computed, capacities, checks, jumps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.runtime.errors import BudgetError, UsageError
from tests.programs import built, positives, powers


@pytest.fixture(scope="module")
def positives_so(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("control") / "positives.so"
    built(positives()).write_shared(path)
    return path


@pytest.fixture(scope="module")
def powers_so(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("control") / "powers.so"
    built(powers()).write_shared(path)
    return path


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 4, 5, 60])
def test_a_size_that_a_call_computes(positives_so: Path, threads: int, count: int) -> None:
    model = runtime.load(positives_so, threads=threads)
    x = np.random.default_rng(count).permutation(np.repeat(np.float32([1.5, -1]), [count, 64]))
    for _ in range(2):
        y = model(x)[0]
        np.testing.assert_array_equal(y, x[x > 0])
        assert y.shape == (count,)


def test_a_capacity_stays_raised(positives_so: Path) -> None:
    request = runtime.load(positives_so, threads=1).create_infer_request()
    many = np.ones(60, np.float32)
    for x in (many, -many, many):
        assert request.infer(x)[0].size == (x > 0).sum()
    assert list(request._space.symbols)[:3] == [60, 60, 64]


def test_a_rule_is_checked_before_the_next_call(positives_so: Path) -> None:
    model = runtime.load(positives_so, threads=1)
    with pytest.raises(UsageError, match="Select 'select': at most 100 elements are kept, got v, with v = 101"):
        model(np.ones(101, np.float32))
    np.testing.assert_array_equal(model(np.ones(3, np.float32))[0], np.ones(3))


def test_memory_is_refused_where_a_machine_has_less(positives_so: Path) -> None:
    request = runtime.load(positives_so, threads=1).create_infer_request()
    request.infer(np.ones(1, np.float32))
    request._space.symbols[2] = 1 << 39  # as if data had asked for it
    with pytest.raises(BudgetError, match="working memory must take at most"):
        request._space.enlarge(1)


def test_an_output_with_room(positives_so: Path) -> None:
    request = runtime.load(positives_so, threads=1).create_infer_request()
    room = np.zeros(8, np.float32)
    request.set_output_tensor(0, room)
    y = request.infer(np.float32([1, -1, 2]))[0]
    np.testing.assert_array_equal(y, [1, 2])
    assert np.shares_memory(y, room)
    with pytest.raises(UsageError, match=r"output 'y': must have room for 9 elements, got \(8,\)"):
        request.infer(np.ones(9, np.float32))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rounds", [0, 1, 7, -3])
def test_a_loop(powers_so: Path, threads: int, rounds: int) -> None:
    model = runtime.load(powers_so, threads=threads)
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(model(x, np.int32(rounds))[0], x * 2 ** max(rounds, 0))
