"""Callbacks on an executor of their own, and numbers of requests."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runtime
from aot.runtime.errors import CancelledError, UsageError
from tests.programs import built, chain

X = np.ones(1000, np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> runtime.CompiledModel:
    path = tmp_path_factory.mktemp("chain") / "m.so"
    built(chain()).write_shared(path)
    return runtime.load(path, threads=1)


def test_requests_are_numbered(model: runtime.CompiledModel) -> None:
    first, second = model.create_infer_request(), model.create_infer_request()
    assert second.id == first.id + 1


def test_a_slow_callback_keeps_no_thread_from_inferring(model: runtime.CompiledModel) -> None:
    inferring, callbacks = runtime.Executor(1), runtime.Executor(1, "callbacks")
    slow, other = model.create_infer_request(inferring, callbacks), model.create_infer_request(inferring)
    go, names = threading.Event(), list[str]()
    slow.set_callback(lambda _: (go.wait(30), names.append(threading.current_thread().name)))
    slow.start_async(X)
    other.start_async(X)
    assert other.wait(30)
    assert not slow.wait(0)
    go.set()
    assert slow.wait(30)
    assert names == ["callbacks"] and (slow.results[0] == 4).all()


def test_a_callback_waits_for_a_request_whose_callback_is_queued_behind_it(model: runtime.CompiledModel) -> None:
    inferring, callbacks = runtime.Executor(2), runtime.Executor(1)
    first, second = (model.create_infer_request(inferring, callbacks) for _ in range(2))
    order = list[str]()
    first.set_callback(lambda _: (second.start_async(X), second.wait(), order.append("first")))
    second.set_callback(lambda _: order.append("second"))
    for _ in range(20):
        first.start_async(X)
        assert first.wait(30) and second.wait(30)
    assert order == ["second", "first"] * 20


def test_errors_of_callbacks_and_waiting_in_its_own(model: runtime.CompiledModel) -> None:
    request = model.create_infer_request(callbacks=runtime.Executor())
    request.set_callback(lambda _: 1 / 0)
    request.start_async(X)
    with pytest.raises(ZeroDivisionError):
        request.wait(30)
    request.set_callback(lambda _: request.wait(1))
    request.start_async(X)
    with pytest.raises(UsageError, match="must be called outside of the callback"):
        request.wait(30)


def test_a_cancelled_one_calls_back_too(model: runtime.CompiledModel) -> None:
    inferring, called, go = runtime.Executor(1), list[object](), threading.Event()
    inferring.submit(lambda: go.wait(30))
    request = model.create_infer_request(inferring, runtime.Executor())
    request.set_callback(lambda _: called.append(type(request.error)))
    request.start_async(X)
    request.cancel()
    go.set()
    with pytest.raises(CancelledError):
        request.wait(30)
    assert called == [CancelledError]
