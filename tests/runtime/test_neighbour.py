"""A process that takes one processor: two threads are not slower than one, and wait for nobody longer than needed."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import runtime
from tests.programs import built, chain

N = 1 << 20
X = np.ones(N, np.float32)
SLOWER = 1.1  # times take their turns, but on a shared machine no two are alike


@pytest.fixture
def neighbour() -> Iterator[None]:
    processor = min(os.sched_getaffinity(0))
    program = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        yield
        process.kill()


def milliseconds(model: runtime.CompiledModel) -> float:
    begin = time.perf_counter()
    for _ in range(20):
        model(X)
    return (time.perf_counter() - begin) / 20 * 1e3


@pytest.mark.perf
@pytest.mark.usefixtures("neighbour")
def test_two_threads_are_not_slower_than_one(tmp_path: Path) -> None:
    program = chain(n=N, calls=12)
    calls = tuple(replace(call, work=N, traffic=8 * N) for call in program.calls)
    built(replace(program, calls=calls)).write_shared(tmp_path / "m.so")
    one, two = (runtime.load(tmp_path / "m.so", threads=threads) for threads in (1, 2))
    for model in (one, two):
        milliseconds(model)
    pairs = [(milliseconds(one), milliseconds(two)) for _ in range(15)]
    assert statistics.median(b / a for a, b in pairs) < SLOWER, pairs
