"""Threads: equal bits for any number of them, many callers at once, resizing, forks."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

import runtime
from aot.runtime.errors import BusyError
from aot.runtime.machine import default_threads
from tests.programs import built, chain
from tests.waiting import becomes_true

pytestmark = pytest.mark.default_code  # the pool of threads as users have it
X = np.arange(1000, dtype=np.float32)


def thread_ids() -> set[str]:
    """Threads of this process, as the system numbers them; a list of it ends early where one of them ends meanwhile."""
    before, found = set[str](), set(os.listdir("/proc/self/task"))
    while found != before:
        before, found = found, set(os.listdir("/proc/self/task"))
    return found


def all_end(started: set[str]) -> bool:
    """True if these threads end within two minutes: the system lists them a little longer than their pool lives."""
    gc.collect()
    return becomes_true(lambda: not started & thread_ids())


def test_equal_bits_for_any_number_of_threads(chain_so: Path) -> None:
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    expected = runtime.load(chain_so, threads=1)(x)[0].tobytes()
    for threads in (2, 3, 7):
        model = runtime.load(chain_so, threads=threads)
        assert {model(x)[0].tobytes() for _ in range(50)} == {expected}


def test_many_callers_of_one_model(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=3)
    wrong: list[int] = []

    def call(seed: int) -> None:
        for i in range(100):
            x = X + seed * 1000 + i
            if not np.array_equal(model(x)[0], x * 32):
                wrong.append(seed)

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(20)]  # more than the pool has slots for
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


@pytest.mark.slow
def test_models_share_a_pool(chain_so: Path, varying_so: Path, tmp_path: Path) -> None:
    before = thread_ids()
    # copies: a library remembers how fast its calls were shared, and the first ones are
    first = runtime.load(copy(chain_so, tmp_path), threads=3)
    second = runtime.load(copy(varying_so, tmp_path), pool=first.pool)
    for _ in range(20):
        np.testing.assert_array_equal(second(X, np.zeros((1000, 4), np.float32))[0], np.tile(X * 3, 2))
        np.testing.assert_array_equal(first(X)[0], X * 32)
    assert len(thread_ids() - before) == 2
    del first  # its code is what the threads run: it stays as long as the pool is in use
    np.testing.assert_array_equal(second(X, np.zeros((1000, 4), np.float32))[0], np.tile(X * 3, 2))


def processor(thread: int) -> int:
    """Return the processor on which a thread runs, or ran last."""
    stat = Path(f"/proc/self/task/{thread}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[36])


def free_again(worker: int, allowed: set[int]) -> bool:
    """True once a worker may run anywhere: it is bound to its place for a moment after the caller has returned."""
    return becomes_true(lambda: os.sched_getaffinity(worker) == allowed)


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_a_caller_leaves_the_processor_of_a_sleeping_worker(tmp_path: Path) -> None:
    program = chain(calls=5)
    calls = tuple(replace(call, work=1 << 20) for call in program.calls)
    code = built(replace(program, calls=calls))
    allowed = os.sched_getaffinity(0)
    apart = 0
    for turn in range(5):  # others may take the free processor meanwhile
        code.write_shared(tmp_path / f"{turn}.so")  # its first call is shared
        before = thread_ids()
        model = runtime.load(tmp_path / f"{turn}.so", threads=2)
        model(X)
        (worker,) = map(int, thread_ids() - before)
        time.sleep(0.05)
        taken = processor(worker)
        os.sched_setaffinity(0, {taken})
        os.sched_setaffinity(0, allowed)
        np.testing.assert_array_equal(model(X)[0], X * 32)
        apart += processor(threading.get_native_id()) != taken
        assert os.sched_getaffinity(0) == allowed
        assert free_again(worker, allowed)
        del model
        assert all_end({str(worker)})
    assert apart >= 3


def test_the_number_of_threads_may_change_between_inferences(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=4)
    for threads in (4, 1, 2, 6, 1, 3):
        model.threads = threads
        np.testing.assert_array_equal(model(X)[0], X * 32)
    assert model.threads == 3


def test_resize_while_others_call(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=2)
    stop = threading.Event()
    right: list[bool] = []

    def call() -> None:
        while not stop.is_set():
            right.append(np.array_equal(model(X)[0], X * 32))

    caller = threading.Thread(target=call)
    caller.start()
    for threads in (1, 4, 2, 5, 1, 3) * 5:
        model.threads = threads
    stop.set()
    caller.join()
    assert right
    assert all(right)


def test_forked_child_and_its_parent_go_on(chain_so: Path) -> None:
    model = runtime.load(chain_so, threads=3)
    model(X)
    child = os.fork()
    if child == 0:
        good = all(np.array_equal(model(X)[0], X * 32) for _ in range(20))
        os._exit(0 if good else 1)
    for _ in range(20):
        np.testing.assert_array_equal(model(X)[0], X * 32)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.slow
def test_no_thread_before_it_is_needed(chain_so: Path) -> None:
    """In a process of its own: a library in which sharing has not paid, beside busy processes, starts no threads."""
    program = (
        "import os, sys, time, numpy as np, runtime\n"
        "count = lambda: len(os.listdir('/proc/self/task'))\n"
        "first = count(); model = runtime.load(sys.argv[1], threads=3); loaded = count()\n"
        "model(np.arange(1000, dtype=np.float32)); called = count(); del model\n"
        "until = time.monotonic() + 120\n"
        "while count() > first and time.monotonic() < until: time.sleep(0.01)\n"
        "print(loaded - first, called - first, count() - first)\n"
    )
    command = [sys.executable, "-c", program, chain_so]
    assert subprocess.check_output(command, cwd=Path(__file__).parents[2], text=True) == "0 2 0\n"


def test_small_models_wake_nobody(tmp_path: Path) -> None:
    built(replace(chain(), calls=tuple(replace(c, work=2000, traffic=8000) for c in chain().calls))).write_shared(
        tmp_path / "m.so"
    )
    before = thread_ids()
    model = runtime.load(tmp_path / "m.so", threads=3)
    np.testing.assert_array_equal(model(X)[0], X * 4)
    assert thread_ids() <= before


def test_request_runs_one_inference_at_a_time(chain_so: Path) -> None:
    request = runtime.load(chain_so, threads=1).create_infer_request()

    class Reenters:
        """Calls the request while it binds its inputs."""

        def __array__(self, *args: object, **options: object) -> np.ndarray:
            with pytest.raises(BusyError, match="one inference at a time"):
                request.infer(X)
            return X

    np.testing.assert_array_equal(request.infer(Reenters())[0], request.infer(X)[0])


IDLES = """
import sys
import time

import numpy as np

import runtime

x = np.arange(1000, dtype=np.float32)
model = runtime.load(sys.argv[1], threads=4)
queue = runtime.AsyncInferQueue(model, 3)
for _ in range(20):
    model(x)
    queue.start_async(x)
queue.wait_all()
time.sleep(0.05)
before = time.process_time()
time.sleep(0.5)
print(time.process_time() - before)
"""


def test_idle_threads_take_no_time(chain_so: Path) -> None:
    """In a process of its own, which runs no threads of other tests."""
    ran = subprocess.run([sys.executable, "-c", IDLES, str(chain_so)], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 0.02  # seconds of the processor


def test_processors_taken_away(chain_so: Path) -> None:
    """The threads of a pool go on where they may: fewer processors than threads, then as many as before."""
    model, mine = runtime.load(chain_so, threads=3), os.sched_getaffinity(0)
    model(X)
    try:
        for allowed in ({min(mine)}, {max(mine)}, mine):
            allow(allowed)
            for _ in range(20):
                np.testing.assert_array_equal(model(X)[0], X * 32)
            fresh = runtime.load(chain_so)
            assert fresh.threads == default_threads() <= max(len(allowed), asked_threads())
            np.testing.assert_array_equal(fresh(X)[0], X * 32)
    finally:
        allow(mine)


def allow(processors: set[int]) -> None:
    """To all threads of this process; some may end meanwhile."""
    for thread in thread_ids():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), processors)


def asked_threads() -> int:
    """By the environment."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() else 0
