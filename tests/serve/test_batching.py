"""Requests that are inferred together have the bits that they have alone, and only those that may be are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import runtime
from aot.serve import batching
from tests.dynamic.networks import compiled
from tests.dynamic.test_variables import adding
from tests.serve.conftest import listening
from tests.waiting import until

# Making a client takes longer than most tests.
CLIENT = httpx.Client(timeout=120, limits=httpx.Limits(max_keepalive_connections=0))


def ask(port: int, model: str, **arrays: Any) -> Any:
    inputs = [
        {"name": n, "datatype": "FP32", "shape": list(a.shape), "data": a.reshape(-1).tolist()}
        for n, a in arrays.items()
    ]
    return CLIENT.post(f"http://127.0.0.1:{port}/v2/models/{model}/infer", json={"inputs": inputs}, timeout=120)


def array_of(response: Any, output: int = 0) -> Any:
    found = response.raise_for_status().json()["outputs"][output]
    return np.array(found["data"], np.float32).reshape(found["shape"])


@contextmanager
def held(served: Any, monkeypatch: pytest.MonkeyPatch, ask_first: Callable[[], Any]) -> Iterator[Any]:
    """The model's inferences wait until the block ends, so that requests gather behind the first one."""
    go, infer = threading.Event(), served._infer

    def slow(inputs: Any) -> Any:
        assert go.wait(20)
        return infer(inputs)

    monkeypatch.setattr(served, "_infer", slow)
    with ThreadPoolExecutor(1) as client:
        try:
            first = client.submit(ask_first)
            until(lambda: served._running == 1 and served.waiting == 0)
            yield first
        finally:
            go.set()


@pytest.mark.parametrize(
    ("model", "limit", "most"),
    [
        ("digits", 64, 16),
        ("pair", 0, 16),
        ("softmax", 0, 1),
        ("square", None, 1),
        ("labels", None, 1),
        ("types", 0, 16),
    ],
)
def test_batch_limit_follows_from_the_model(
    models: Path, digits: Path, model: str, limit: int | None, most: int
) -> None:
    loaded = runtime.load(digits if model == "digits" else models / f"{model}.so")
    assert batching.batch_limit(loaded.manifest, loaded.inputs, loaded.outputs) == limit
    with listening(models, digits, max_batch=16) as server:
        assert server.repository.find(model).max_batch == most


def test_a_row_that_depends_on_others_is_found(models: Path) -> None:
    """A softmax over rows has the shapes of one over columns."""
    assert batching.depends_on_other_rows(runtime.load(models / "softmax.so"), 16)
    assert not batching.depends_on_other_rows(runtime.load(models / "pair.so"), 16)


def test_rows_have_the_bits_they_have_alone(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = runtime.load(digits)
    images = [np.random.default_rng(i).standard_normal((1 + i % 3, 1, 8, 8)).astype(np.float32) for i in range(24)]
    with listening(digits, max_batch=16, jobs=1) as server:
        served = server.repository.find("digits")
        with ThreadPoolExecutor(24) as clients:
            with held(served, monkeypatch, lambda: ask(server.port, "digits", image=images[0])) as first:
                waiting = [clients.submit(ask, server.port, "digits", image=x) for x in images[1:]]
                until(lambda: served.waiting == 23)
            answers = [array_of(w.result()) for w in (first, *waiting)]
        assert served.metrics.inferences == sum(len(x) for x in images)
        assert served.metrics.executions < 10
    for x, found in zip(images, answers, strict=True):
        assert found.tobytes() == model(x)[0].tobytes()


def test_a_wrong_request_of_a_batch_is_alone_in_its_error(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes of x and y that do not agree are found by the model, which runs the batch."""
    with listening(models, max_batch=16, jobs=1) as server:
        served = server.repository.find("pair")
        one, two = np.ones((1, 4), np.float32), np.ones((2, 4), np.float32)
        with ThreadPoolExecutor(8) as clients:
            with held(served, monkeypatch, lambda: ask(server.port, "pair", x=one, y=one)):
                right = [clients.submit(ask, server.port, "pair", x=one, y=one * i) for i in range(6)]
                wrong = clients.submit(ask, server.port, "pair", x=one, y=two)
                until(lambda: served.waiting == 7)
            assert [array_of(w.result())[0, 0] for w in right] == [1 + i for i in range(6)]
            assert wrong.result().status_code == 400
            assert "got 2" in wrong.result().json()["error"]


def test_the_first_request_waits_for_others(digits: Path) -> None:
    x = np.ones((1, 1, 8, 8), np.float32)
    with listening(digits, max_batch=3, batch_wait=60.0) as server:
        begin = time.monotonic()
        with ThreadPoolExecutor(3) as clients:
            list(clients.map(lambda _: array_of(ask(server.port, "digits", image=x)), range(3)))
        assert time.monotonic() - begin < 55  # a full batch waits no longer
        assert server.repository.find("digits").metrics.executions == 1


def test_a_full_queue_refuses_at_once_and_a_time_out_ends(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((1, 1, 8, 8), np.float32)
    with listening(digits, queue=2, jobs=1, timeout=2.0) as server:
        served = server.repository.find("digits")
        with (
            ThreadPoolExecutor(3) as clients,
            held(served, monkeypatch, lambda: ask(server.port, "digits", image=x)) as first,
        ):
            others = [clients.submit(ask, server.port, "digits", image=x) for _ in range(2)]
            until(lambda: served.waiting == 2)
            refused = ask(server.port, "digits", image=x)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert {w.result().status_code for w in (first, *others)} == {504}
        until(lambda: served.waiting == 0)
        assert ask(server.port, "digits", image=x).status_code == 200


def test_a_variable_begins_anew_in_each_request(tmp_path: Path) -> None:
    """The state of one client must not reach another."""
    counter = compiled(adding(1.0))  # v = v + x, at first 10 x
    counter.export_model(tmp_path / "counter.so")
    request = counter.create_infer_request()
    x = np.ones((1, 3), np.float32)
    assert [float(request.infer(x)[0][0, 0]) for _ in range(3)] == [11, 12, 13]
    with listening(tmp_path, max_batch=4) as server:
        assert [array_of(ask(server.port, "counter", p=x))[0, 0] for _ in range(3)] == [11, 11, 11]
