"""Reliability: many threads on one handle, requests that come and go, processes that are killed, flipped bits."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import runtime
from runtime.errors import AotError
from runtime.library import verify

ROOT = Path(__file__).parents[2]
X = np.arange(1000, dtype=np.float32)


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def hammer(model: runtime.CompiledModel, threads: int, runs: int) -> list[str]:
    """Inferences in many threads at once; what went wrong."""
    wrong: list[str] = []

    def work(index: int) -> None:
        try:
            x, wanted = X * index, (X * index * 32).tobytes()
            for _ in range(runs):
                if model(x)[0].tobytes() != wanted:
                    raise ValueError("other bits")
        except Exception as error:
            wrong.append(repr(error))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return wrong


@pytest.mark.parametrize(
    ("threads", "runs"), [(16, 50), pytest.param(64, 10_000, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_many_threads_on_one_handle(chain_so: Path, threads: int, runs: int) -> None:
    model = runtime.load(chain_so, threads=2)
    assert hammer(model, threads, runs) == []


@pytest.mark.parametrize("seconds", [0.5, pytest.param(300, marks=pytest.mark.slow)], ids=["short", "long"])
def test_memory_stays_as_it_is(chain_so: Path, seconds: float) -> None:
    """Models, requests and queues come and go."""

    def turn() -> None:
        model = runtime.load(chain_so, threads=2)
        for _ in range(5):
            np.testing.assert_array_equal(model.create_infer_request().infer(X)[0], X * 32)
        queue = runtime.AsyncInferQueue(model, 2)
        for _ in range(4):
            queue.start_async(X)
        queue.wait_all()

    for _ in range(20):
        turn()
    before, end = resident(), time.monotonic() + seconds
    while time.monotonic() < end:
        turn()
    assert resident() - before < 8 << 20


def test_flipped_bits_anywhere_are_refused(chain_so: Path, tmp_path: Path) -> None:
    data, dice, path = chain_so.read_bytes(), random.Random(4), tmp_path / "a.so"
    for _ in range(100):
        bad = bytearray(data)
        bad[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(AotError):
            runtime.load(path, strict=True)
        with pytest.raises(AotError):
            verify(path)
    path.write_bytes(data)
    np.testing.assert_array_equal(runtime.load(path, strict=True)(X)[0], X * 32)


@pytest.mark.slow
def test_a_killed_compiler_leaves_no_half_output(tmp_path: Path) -> None:
    model, path = ROOT / "examples" / "digits" / "model.xml", tmp_path / "m.so"
    command = [sys.executable, "-m", "cli", "compile", str(model), "--weights", "external", "-o", str(path)]
    begin = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    whole = time.monotonic() - begin
    path.unlink()
    path.with_suffix(".weights").unlink()
    for i in range(12):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(whole * (0.45 + i * 0.05))
        process.kill()
        process.wait()
        if path.exists():
            verify(path)
            path.unlink()
