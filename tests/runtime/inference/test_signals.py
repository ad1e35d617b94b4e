"""Exceptions that signal handlers raise, KeyboardInterrupt above all: requests stay usable, and endless loops end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import runtime
from aot import cli
from aot.compilation.driver import compile_model
from aot.runtime.errors import CancelledError, UsageError
from aot.runtime.inference.executor import Executor
from aot.runtime.pipeline import Pipeline
from tests.compilers import compiler

X = np.arange(1000, dtype=np.float32)
ENDLESS = 1 << 62
AGAIN = 0.05  # seconds to the next signal: Python ignores what a handler raises inside of a destructor


class Hit(Exception):
    """Exception that the signal handler raises."""


@contextmanager
def hits() -> Iterator[None]:
    """Let SIGALRM raise `Hit`. No garbage is collected, for Python ignores an exception in a finalizer, and warns."""

    def handler(number: int, frame: FrameType | None) -> None:
        raise Hit

    gc.collect()
    gc.disable()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


def interrupted(call: Callable[[], object], delay: float) -> None:
    """Repeat `call` until a signal interrupts it."""
    try:
        signal.setitimer(signal.ITIMER_REAL, delay, AGAIN)
        while True:
            call()
    except Hit:
        signal.setitimer(signal.ITIMER_REAL, 0)


def calls_of(model: runtime.CompiledModel) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Return pairs of a call to interrupt and a call that must work afterwards."""
    request, queue = model.create_infer_request(), runtime.AsyncInferQueue(model, 2)
    pipeline = Pipeline((Executor(), lambda x: x), (Executor(), model), jobs=2)

    def started() -> None:
        request.start_async(X)
        assert request.wait()

    def after() -> np.ndarray:
        assert request.wait(5)
        return request.infer(X)[0]

    def queued() -> np.ndarray:
        queue.wait_all()
        for _ in range(3):
            queue.start_async(X)
        queue.wait_all()
        return queue[0].results[0]

    return {
        "model": (lambda: model(X), lambda: model(X)[0]),
        "infer": (lambda: request.infer(X), lambda: request.infer(X)[0]),
        "start_async": (started, after),
        "queue": (lambda: queue.start_async(X), queued),
        "pipeline": (lambda: pipeline.submit(X), lambda: pipeline.submit(X).result(5)[0]),
    }


@pytest.mark.parametrize("kind", ["model", "infer", "start_async", "queue", "pipeline"])
def test_requests_are_usable_after_an_interrupt(chain_so: Path, kind: str) -> None:
    call, after = calls_of(runtime.load(chain_so, threads=1))[kind]
    with hits():
        for k in range(150):
            interrupted(call, 3e-4 + k % 30 * 1e-5)
            np.testing.assert_array_equal(after(), X * 32)


def test_waiting_in_the_own_callback_is_an_error(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=1)
    request, other = model.create_infer_request(), model.create_infer_request()
    request.set_callback(lambda _: request.wait())
    request.start_async(X)
    with pytest.raises(UsageError, match="must be called outside of the callback"):
        request.wait(5)
    request.set_callback(lambda _: (other.start_async(X), other.wait()))  # by the same, only thread
    request.start_async(X)
    assert request.wait(5)
    np.testing.assert_array_equal(other.results[0], X * 32)


@pytest.mark.parametrize("call", ["wait_all", "start_async", "get_idle_request_id"])
def test_waiting_for_a_queue_in_all_of_its_callbacks_is_an_error(chain_so: Path, call: str) -> None:
    queue = runtime.AsyncInferQueue(runtime.load(chain_so, threads=1), 2)
    both = threading.Barrier(2)

    def callback(request: object, first: object) -> None:
        if first:
            both.wait(5)
            getattr(queue, call)()

    queue.set_callback(callback)
    queue.start_async(X, True)
    queue.start_async(X, True)
    with pytest.raises(UsageError, match="when its callback returns"):
        queue.wait_all()
    queue.set_callback(None)
    queue.start_async(X)
    queue.wait_all()


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where a shell has started the tests with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adds 1 `trips` times, as long as `going`; both are inputs."""
    path = tmp_path_factory.mktemp("loop") / "loop.onnx"
    types = {"i": TensorProto.INT64, "c": TensorProto.BOOL, "v": TensorProto.FLOAT}

    def infos(*names: str) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(n, types[n[0]], [1] if n[0] == "v" else []) for n in names]

    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    nodes = [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Add", ["v", "one"], ["v2"])]
    body = helper.make_graph(nodes, "body", infos("i", "c", "v"), infos("c2", "v2"), [one])
    loop = helper.make_node("Loop", ["i.trips", "c.going", "v.x"], ["v.y"], body=body)
    graph = helper.make_graph([loop], "g", infos("i.trips", "c.going", "v.x"), infos("v.y"))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10), path)
    return path


@pytest.fixture(scope="module")
def model(counting: Path) -> runtime.CompiledModel:
    return compile_model(counting, threads=1)


def values(trips: int) -> tuple[np.ndarray, ...]:
    return np.array(trips), np.array(True), np.zeros(1, np.float32)


@pytest.mark.parametrize("loaded", [False, True], ids=["in memory", "from a file"])
def test_an_endless_loop_is_interrupted(model: runtime.CompiledModel, loaded: bool, tmp_path: Path) -> None:
    if loaded:
        model.export_model(tmp_path / "m.so")
        model = runtime.load(tmp_path / "m.so", threads=1)
    for _ in range(2):
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.process_time()
        with pytest.raises(KeyboardInterrupt):
            model(*values(ENDLESS))
        assert time.process_time() - begin < 0.1 + 0.5  # the signal comes after 0.1 s at the earliest
        assert model(*values(1000))[0] == 1000


def test_an_endless_loop_is_cancelled(model: runtime.CompiledModel) -> None:
    request = model.create_infer_request()
    request.cancel()  # of nothing that runs
    threading.Timer(0.1, request.cancel).start()
    with pytest.raises(CancelledError):
        request.infer(values(ENDLESS))
    assert request.infer(values(7))[0] == 7
    request.start_async(values(ENDLESS))
    assert not request.wait(0.1)
    request.cancel()
    with pytest.raises(CancelledError):
        request.wait(5)
    assert request.infer(values(7))[0] == 7


def test_signals_that_raise_nothing_end_no_loop(model: runtime.CompiledModel) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: seen.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        result = model(*values(20_000_000))[0]  # a fifth of a second
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert result == 1 << 24 and len(seen) > 1  # f32 counts no further


PROGRAM = """
#include <stdlib.h>
#include "m.h"
static int asked;
static int32_t ask(void) { return ++asked == 2; }
int main(void) {
    const struct aot_model *m = AOT_M(AOT_ABI);
    static int64_t trips __attribute__((aligned(64))) = INT64_C(1) << 62, *symbols, dims[1] = {1};
    static char going __attribute__((aligned(64))) = 1;
    static float x[1] __attribute__((aligned(64))), y[1] __attribute__((aligned(64)));
    const void *in[] = {&trips, &going, x};
    void *out[] = {y};
    int64_t *cancel = (symbols = calloc(m->symbol_count, 8)) + m->symbol_count - 2;
    if (m->shapes(dims, symbols, dims)) return 1;
    struct aot_request r = {in, out, symbols, aligned_alloc(64, m->arena_size(symbols, 1)), 0, 0, 1, 0};
    cancel[1] = (int64_t)(intptr_t)ask;
    if (m->infer(&r) != AOT_CANCELLED || asked != 2) return 2;
    cancel[0] = 1;
    if (m->infer(&r) != AOT_CANCELLED || asked != 2) return 3;
    cancel[0] = 0;
    trips = 5;
    return m->infer(&r) || y[0] != 5 || !AOT_M_CANCELLABLE;
}
"""


def test_a_c_program_cancels(counting: Path, tmp_path: Path) -> None:
    arguments = ["compile", str(counting), "-o", str(tmp_path / "m.o"), "--header", str(tmp_path / "m.h")]
    assert CliRunner().invoke(cli.app, arguments).exit_code == 0
    (tmp_path / "main.c").write_text(PROGRAM)
    command = [*compiler("cc"), "-std=c11", "-Wall", "-Werror", "main.c", "m.o", "-o", "main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "main"], check=False, timeout=600).returncode == 0


@pytest.mark.parametrize("trips", [-1, -(1 << 63), 0, 1, 5])
def test_a_negative_trip_count_is_none(model: runtime.CompiledModel, trips: int) -> None:
    assert model(*values(trips))[0] == max(trips, 0)
