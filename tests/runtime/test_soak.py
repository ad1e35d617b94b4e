"""Reliability: many threads on one handle, requests that come and go, processes that are killed, flipped bits."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.runtime.errors import AotError
from aot.runtime.loading.library import read_manifest, verify
from aot.runtime.loading.seal import seal
from benchmarks.running.soak import soak

pytestmark = pytest.mark.default_code
ROOT = Path(__file__).parents[2]
X = np.arange(1000, dtype=np.float32)


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
    ("threads", "runs"), [(16, 50), pytest.param(64, 1_000, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_many_threads_on_one_handle(chain_so: Path, threads: int, runs: int) -> None:
    """For seconds; `python -m benchmarks.running.soak` does it for minutes."""
    model = runtime.load(chain_so, threads=2)
    assert hammer(model, threads, runs) == []


@pytest.mark.slow
def test_models_requests_and_queues_come_and_go(chain_so: Path) -> None:
    """For a moment; `python -m benchmarks.running.soak` does it for minutes, and says what memory does."""
    done = soak(chain_so, 2)
    assert done.errors == [] and done.inferences > 100


def flipped(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << dice.randrange(8)]) + data[place + 1 :]


def cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def zeroed(data: bytes, dice: random.Random) -> bytes:
    return overwritten(data, dice, bytes)


def noisy(data: bytes, dice: random.Random) -> bytes:
    return overwritten(data, dice, dice.randbytes)


def moved(data: bytes, dice: random.Random) -> bytes:
    place, size = dice.randrange(64, len(data) - 100), dice.randrange(1, 100)
    return data[:place] + data[place + size :] + data[place : place + size]


def longer(data: bytes, dice: random.Random) -> bytes:
    return data + dice.randbytes(dice.randrange(1, 1000))


def overwritten(data: bytes, dice: random.Random, make: Callable[[int], bytes]) -> bytes:
    place, size = dice.randrange(len(data) - 100), dice.randrange(1, 100)
    return data[:place] + make(size) + data[place + size :]


@pytest.mark.parametrize("harm", [flipped, cut, zeroed, noisy, moved, longer], ids=lambda harm: harm.__name__)
def test_mutilated_files_are_refused(chain_so: Path, tmp_path: Path, harm: Callable[..., bytes]) -> None:
    data, dice, path = chain_so.read_bytes(), random.Random(4), tmp_path / "a.so"
    for _ in range(100):
        bad = harm(data, dice)
        while bad == data:
            bad = harm(data, dice)
        path.write_bytes(bad)
        with pytest.raises(AotError):
            runtime.load(path, strict=True)
        with pytest.raises(AotError):
            verify(path)
    path.write_bytes(data)
    np.testing.assert_array_equal(runtime.load(path, strict=True)(X)[0], X * 32)


def test_mutilated_manifests_are_refused(chain_so: Path, tmp_path: Path) -> None:
    """Manifests have a valid digest, so that only their reader can refuse them."""
    dice, path, good = random.Random(5), tmp_path / "a.so", read_manifest(chain_so).json
    text = json.dumps(good, sort_keys=True, separators=(",", ":")).encode()
    junk: tuple[object, ...] = (None, True, -1, 1 << 70, 1.5, "x", "../x", [], [None], {}, {"a": [1]})
    told_only = {"hash", "embedded", "toolchain", "options", "triple", "weights"}
    refused = 0
    for _ in range(100):
        tree = json.loads(text)
        tree["hash"] = ""
        key = dice.choice([k for k in tree if k not in told_only])
        tree[key] = dice.choice(junk)
        changed = json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()
        if len(changed) > len(text):
            continue
        path.write_bytes(chain_so.read_bytes().replace(text, changed.ljust(len(text))))
        seal(path)
        try:
            runtime.load(path)
        except AotError:
            refused += 1
    assert refused > 60  # others are right by chance: a name, no calls


KILLED = """
import os, signal, sys
import aot

left, replace = int(sys.argv[1]), os.replace


def replace_or_die(*paths, **folders):
    global left
    if not folders:  # in which kernels are kept
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
    replace(*paths, **folders)


os.replace = replace_or_die
aot.compile_model("examples/digits/model.xml", output=sys.argv[2], external_weights=True)
"""


@pytest.mark.slow
def test_a_killed_compiler_leaves_no_half_output(tmp_path: Path) -> None:
    """Killed before each file gets its name, a hidden one first: nothing is there, then the weights, then both."""
    library, weights = tmp_path / "m.so", tmp_path / "m.weights"
    for done in range(4):
        finished = subprocess.run([sys.executable, "-c", KILLED, str(done), str(library)], cwd=ROOT, check=False)
        assert finished.returncode == (0 if done == 3 else -signal.SIGKILL)
        assert (weights.exists(), library.exists()) == (done > 1, done == 3)
    verify(library)
