"""Streams: several pools of threads on processors of their own."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from aot.runtime.errors import UsageError
from aot.runtime.inference.streams import Streams, _by_core, shares

X = np.arange(1000, dtype=np.float32)
HERE = os.sched_getaffinity(0)


@pytest.mark.parametrize(
    ("processors", "count", "expected"),
    [
        ([0, 1, 2, 3], 2, [{0, 1}, {2, 3}]),
        ([0, 4, 1, 5, 2], 2, [{0, 4}, {1, 5, 2}]),
        ([3, 7], 2, [{3}, {7}]),
        ([3, 7], 5, [{3}, {7}, {3}, {7}, {3}]),
    ],
)
def test_shares_of_processors(processors: list[int], count: int, expected: list[set[int]]) -> None:
    assert shares(processors, count) == expected


def test_processors_of_a_core_are_neighbours(tmp_path: Path) -> None:
    for processor, (socket, core) in enumerate([(0, 0), (0, 1), (1, 0), (0, 0), (0, 1), (1, 0)]):
        folder = tmp_path / f"cpu{processor}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{socket}\n")
        (folder / "core_id").write_text(f"{core}\n")
    assert _by_core(range(6), tmp_path) == [0, 3, 1, 4, 2, 5]
    assert _by_core({5, 3, 9}, tmp_path / "none") == [3, 5, 9]


@pytest.mark.parametrize("streams", [1, 2, 3])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_equal_bits_and_a_caller_that_stays_where_it_was(chain_so: Path, streams: int, threads: int) -> None:
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    expected = runtime.load(chain_so, threads=1)(x)[0].tobytes()
    model = runtime.load(chain_so, threads=threads)
    model.streams = streams
    assert (model.streams, model.threads) == (streams, max(1, threads // streams))
    found: set[bytes] = set()

    def call() -> None:
        found.update(model(x)[0].tobytes() for _ in range(20))

    callers = [threading.Thread(target=call) for _ in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    call()
    assert found == {expected}
    assert os.sched_getaffinity(0) == HERE


def test_threads_of_a_queue_are_on_the_processors_of_their_streams(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=2)
    model.set_property({"NUM_STREAMS": 2})
    queue = runtime.AsyncInferQueue(model)
    assert len(queue) == model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 2
    both = threading.Barrier(2, timeout=300)
    where: dict[int, set[int]] = {}

    def done(request: Any, userdata: object) -> None:
        np.testing.assert_array_equal(request.results[0], X * 32)
        where[threading.get_ident()] = os.sched_getaffinity(0)
        both.wait()  # so that each thread gets one of two inferences

    queue.set_callback(done)
    for k in range(10):
        queue.start_async(X, k)
    queue.wait_all()
    expected = [frozenset(share) for share in shares(_by_core(HERE), 2)]
    assert sorted(map(sorted, where.values())) == sorted(map(sorted, expected))


def test_more_jobs_than_streams(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=2)
    model.streams = 2
    queue = runtime.AsyncInferQueue(model, 5)
    found: list[int] = []
    queue.set_callback(lambda request, userdata: found.append(int(request.results[0][1]) - 32 * userdata))
    for k in range(40):
        queue.start_async(X + k, k)
    queue.wait_all()
    assert found == [32] * 40


def test_several_models_share_streams(chain_so: Path) -> None:
    one = runtime.load(chain_so, threads=2)
    one.streams = 2
    other = runtime.load(chain_so, pool=one.pool)
    with pytest.raises(UsageError, match="threads: must not be given together with a pool, got 2"):
        runtime.load(chain_so, threads=2, pool=one.pool)
    assert other.streams == 2 and other.pool is one.pool
    request = other.create_infer_request()
    request.start_async(X)
    request.wait()
    del one
    np.testing.assert_array_equal(request.results[0], other(X)[0])


def test_properties_and_pickles(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=2)
    before = model.create_infer_request()
    for given, streams in ((2, 2), (1, 1), ("AUTO", 2), (-1, 2)):
        model.set_property({"NUM_STREAMS": given})
        assert model.get_property("NUM_STREAMS") == model.streams == streams
        assert model.get_property("INFERENCE_NUM_THREADS") == 2
    model.set_property({"INFERENCE_NUM_THREADS": 6})
    assert (model.threads, model.get_property("INFERENCE_NUM_THREADS")) == (3, 6)
    again = pickle.loads(pickle.dumps(model))
    assert (again.threads, again.streams) == (3, 2)
    np.testing.assert_array_equal(before.infer(X)[0], X * 32)
    for wrong, says in ((0, "from 1 to"), (-2, "from 1 to"), ("x", "must be an integer"), (True, "must be an integer")):
        with pytest.raises(UsageError, match=says):
            model.set_property({"NUM_STREAMS": wrong})
    assert isinstance(model.pool, Streams) and model.streams == 2


def test_a_child_has_streams_of_its_own(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=2)
    model.streams = 2
    request = model.create_infer_request()
    request.start_async(X)
    request.wait()
    child = os.fork()
    if not child:
        code = 1
        try:
            request.start_async(X)
            code = not (request.wait(60) and np.array_equal(request.results[0], model(X)[0]))
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
