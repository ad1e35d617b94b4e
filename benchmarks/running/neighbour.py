"""One thread and two, while another process takes one processor: two may not be slower.

python -m benchmarks.running.neighbour
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

import runtime
from tests.programs import built, chain

N = 1 << 20
X = np.ones(N, np.float32)


@contextmanager
def neighbour() -> Iterator[None]:
    """Keep the first processor busy."""
    processor = min(os.sched_getaffinity(0))
    program = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        yield
        process.kill()


def milliseconds(model: runtime.CompiledModel) -> float:
    """Return the mean of 20 inferences."""
    begin = time.perf_counter()
    for _ in range(20):
        model(X)
    return (time.perf_counter() - begin) / 20 * 1e3


def main() -> None:
    """Print the medians of 15 pairs, and that of their quotients."""
    program = chain(n=N, calls=12)
    calls = tuple(replace(call, work=N, traffic=8 * N) for call in program.calls)
    with tempfile.TemporaryDirectory() as folder, neighbour():
        path = Path(folder) / "m.so"
        built(replace(program, calls=calls)).write_shared(path)
        one, two = (runtime.load(path, threads=threads) for threads in (1, 2))
        pairs = [(milliseconds(one), milliseconds(two)) for _ in range(16)][1:]
    ones, twos = zip(*pairs, strict=True)
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"one thread {statistics.median(ones):.2f} ms, two {statistics.median(twos):.2f} ms, quotient {ratio:.2f}")


if __name__ == "__main__":
    main()
