"""Pages of mapped files are given back, and what is in the arrays stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from aot.runtime.arrays.pages import release

SIZE = 8 << 20
SHRINKS = """
import sys
import numpy as np
from aot.runtime.arrays.pages import release

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssFile"))

data = np.asarray(np.memmap(sys.argv[1], np.uint8, mode="r"))
part = data[5000:].view(np.uint8)[: len(data) // 2 * 2 - 8000].reshape(2, -1)
total = int(part.sum(dtype=np.int64))
before = resident()
release(part)
assert before - resident() > len(data) * 3 // 4, (before, resident())
assert int(part.sum(dtype=np.int64)) == total
"""


def test_pages_of_a_file_are_given_back(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(np.random.default_rng(0).bytes(SIZE))
    subprocess.run([sys.executable, "-c", SHRINKS, str(file)], check=True)


def test_changed_pages_survive_release(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(bytes(SIZE))
    data = np.memmap(file, np.uint8, mode="c")  # its changed pages are nowhere else
    data[:] = 1
    release(data)
    assert data.min() == 1


def test_arrays_of_no_file_stay() -> None:
    data = np.arange(1 << 16)
    release(data)
    release(data[:0])
    assert data[-1] == (1 << 16) - 1
