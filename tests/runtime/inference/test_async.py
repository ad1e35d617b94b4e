"""Requests that run in the background: waiting, giving up, callbacks, queues, pipelines, arrays of other libraries."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.runtime.errors import BusyError, CancelledError, UsageError
from aot.runtime.inference.executor import Executor
from aot.runtime.pipeline import Pipeline
from tests.waiting import until

X = np.arange(1000, dtype=np.float32)


@pytest.fixture(scope="module")
def model(chain_so: Path) -> runtime.CompiledModel:
    return runtime.load(chain_so, threads=2)


class Gate:
    """An executor's thread that is held until it is opened."""

    def __init__(self) -> None:
        self.executor, self.gate = Executor(), threading.Event()
        self.executor.submit(lambda: self.gate.wait(10))

    def open(self) -> None:
        self.gate.set()


class Exporter:
    """Tensor of another library: it has DLPack's two methods alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_start_and_wait(model: runtime.CompiledModel) -> None:
    request = model.create_infer_request()
    assert request.wait()
    x = X.copy()
    request.start_async(x)
    x[:] = 0  # it was copied
    assert request.wait(10) and request.wait_for(1)
    np.testing.assert_array_equal(request.results[0], X * 32)
    np.testing.assert_array_equal(request.get_output_tensor(), X * 32)


def test_a_busy_request_refuses(model: runtime.CompiledModel) -> None:
    gate = Gate()
    request = model.create_infer_request(gate.executor)
    request.start_async(X)
    assert not request.wait(0.01)
    for call in (
        lambda: request.infer(X),
        request.start_async,
        lambda: request.set_input_tensor(0, X),
        lambda: request.set_output_tensor(0, None),
        request.reset_state,
        lambda: request.set_callback(None),
    ):
        with pytest.raises(BusyError, match="one inference at a time"):
            call()
    gate.open()
    assert request.wait()
    np.testing.assert_array_equal(request.infer(2 * X)[0], X * 64)


def test_a_waiting_inference_can_be_cancelled(model: runtime.CompiledModel) -> None:
    gate = Gate()
    request = model.create_infer_request(gate.executor)
    request.cancel()
    request.start_async(X)
    request.cancel()
    gate.open()
    with pytest.raises(CancelledError):
        request.wait()
    request.start_async(X)
    assert request.wait()


def test_a_callback_may_start_the_next_inference(model: runtime.CompiledModel) -> None:
    request, seen = model.create_infer_request(), []

    def again(most: int) -> None:
        seen.append(request.results[0][1])
        if len(seen) < most:
            request.start_async(seen[-1] * X)

    request.set_callback(again, 3)
    request.start_async(X)
    assert request.wait(10)
    assert seen == [32, 32**2, 32**3]


def test_errors_surface_at_wait(model: runtime.CompiledModel) -> None:
    request = model.create_infer_request()
    with pytest.raises(UsageError, match="expected f32"):
        request.start_async(X[:3])
    request.start_async()  # nothing is set
    with pytest.raises(UsageError, match="needs an array"):
        request.wait()

    def fail(word: str) -> None:
        raise KeyError(word)

    request.set_callback(fail, "spam")
    request.start_async(X)
    with pytest.raises(KeyError, match="spam"):
        request.wait()
    request.set_callback(None)
    request.start_async(X)
    assert request.wait()


def test_tensors_in_place(model: runtime.CompiledModel) -> None:
    request = model.create_infer_request()
    request.get_input_tensor()[:] = X
    np.testing.assert_array_equal(request.infer()[0], X * 32)
    with pytest.raises(UsageError, match="the index must be below 1, got 1"):
        request.get_input_tensor(1)


def test_dlpack_both_ways(model: runtime.CompiledModel) -> None:
    aligned = model(X)[0]
    request = model.create_infer_request()
    np.testing.assert_array_equal(request.infer(Exporter(aligned))[0], X * 32 * 32)
    assert np.shares_memory(request.get_input_tensor(), aligned)
    own = model(X)[0]
    request.set_output_tensor(0, own)
    request.infer(X)
    assert np.shares_memory(np.from_dlpack(request.get_output_tensor()), own)


def test_a_queue_runs_all_inferences(model: runtime.CompiledModel) -> None:
    queue, found = runtime.AsyncInferQueue(model, 3), {}
    queue.set_callback(lambda request, userdata: found.update({userdata: request.results[0]}))
    assert len(queue) == len(list(queue)) == 3 and queue.is_ready()
    for i in range(50):
        queue.start_async(X * i, i)
    queue.wait_all()
    assert sorted(found) == list(range(50))
    for i, array in found.items():
        np.testing.assert_array_equal(array, X * i * 32)
    assert queue[0].results and 0 <= queue.get_idle_request_id() < 3


def test_queue_errors(model: runtime.CompiledModel) -> None:
    queue = runtime.AsyncInferQueue(model, 2)
    queue.set_callback(lambda request, userdata: 1 // userdata)  # type: ignore[operator]
    for i in (1, 0, 2):
        queue.start_async(X, i)
    with pytest.raises(ZeroDivisionError):
        queue.wait_all()
    queue.wait_all()
    with pytest.raises(UsageError):
        queue.start_async([X, X])
    queue.start_async(X, 1)
    queue.wait_all()
    with pytest.raises(UsageError, match="must not be negative, got -1"):
        runtime.AsyncInferQueue(model, -1)


def test_queue_holds_back(model: runtime.CompiledModel) -> None:
    queue, gate = runtime.AsyncInferQueue(model, 2), threading.Event()
    queue.set_callback(lambda request, userdata: gate.wait(5))
    queue.start_async(X)
    queue.start_async(X)
    assert not queue.is_ready()
    third = threading.Thread(target=queue.start_async, args=(X,))
    third.start()
    third.join(0.05)
    assert third.is_alive()
    gate.set()
    third.join(10)
    queue.wait_all()
    assert queue.is_ready()


def test_pipeline_stages_overlap(model: runtime.CompiledModel) -> None:
    pre, infer, post = Executor(), Executor(), Executor()
    met = threading.Barrier(2, timeout=120)  # passed only if two stages run at once

    def prepare(i: int) -> np.ndarray:
        if i in (1, 3):
            met.wait()
        return X * i

    def finish(outputs: runtime.Outputs) -> float:
        value = float(outputs[0][1])
        if value in (0, 64):
            met.wait()
        return value

    pipeline = Pipeline((pre, prepare), (infer, model), (post, finish), jobs=3)
    assert list(pipeline.map(range(4))) == [0, 32, 64, 96]


def test_pipeline_errors(model: runtime.CompiledModel) -> None:
    pipeline = Pipeline((Executor(), lambda i: 1 // i), (Executor(), lambda x: X * x), jobs=1)
    for _ in range(3):  # a failed value leaves its room
        with pytest.raises(ZeroDivisionError):
            pipeline.submit(0).result(10)
    np.testing.assert_array_equal(pipeline.submit(1).result(10), X)
    with pytest.raises(UsageError, match="got 0 and 4"):
        Pipeline()


def test_asynchronous_in_a_forked_child(model: runtime.CompiledModel) -> None:
    request = model.create_infer_request()
    request.start_async(X)
    request.wait()
    child = os.fork()
    if not child:
        request.start_async(2 * X)
        good = request.wait(10) and (request.results[0] == X * 64).all()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_executor_threads_are_reused() -> None:
    executor, names = Executor(2), set()
    done = threading.Semaphore(0)

    def task() -> None:
        names.add(threading.get_ident())
        done.release()

    for _ in range(20):
        executor.submit(task)
        assert done.acquire(timeout=120)
        time.sleep(0.001)
    assert len(names) <= 2
    with pytest.raises(UsageError, match="got 0"):
        Executor(0)


def test_an_idle_thread_ends_and_another_one_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aot.runtime.inference.executor._IDLE_SECONDS", 0.01)
    executor, done = Executor(name="idle"), threading.Semaphore(0)
    for _ in range(2):
        executor.submit(done.release)
        assert done.acquire(timeout=60)
        until(lambda: not any(thread.name == "idle" for thread in threading.enumerate()))


def test_threads_end_with_their_executor() -> None:
    executor, done = Executor(2, name="counted"), threading.Semaphore(0)
    for _ in range(4):
        executor.submit(done.release)
    for _ in range(4):
        assert done.acquire(timeout=120)
    del executor
    until(lambda: not any(thread.name == "counted" for thread in threading.enumerate()))
