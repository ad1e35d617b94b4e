"""Interleaves the workers: in each round every runtime infers for the same short while, one after the other.

    round 1   ours  openvino  onnxruntime  peak
    round 2   openvino  onnxruntime  peak  ours        the first place goes round

A change of clock or load in the middle of the run then meets all of them, and ratios are taken inside of a round.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks
from benchmarks.networks.folder import Array, Folder

TURN_SECONDS = 0.1  # of one runtime in one round, or one inference if that takes longer
PAUSE_SECONDS = 0.15  # for threads that spin after their work: those of ONNX Runtime do so for 60 ms and more
START_SECONDS = 300.0


class WorkerError(Exception):
    """A runtime failed; the text is the end of what it printed."""


@dataclass
class Worker:
    """The parent's end of a worker; `facts` is what it said after its first inference."""

    engine: str
    process: subprocess.Popen[str]
    log: Path
    results: Path
    facts: dict[str, float] = field(default_factory=dict)
    count: int = 1
    rounds: list[list[float]] = field(default_factory=list)
    cpu: list[list[float]] = field(default_factory=list)

    def ask(self, line: str) -> dict[str, Any]:
        """Send a line, wait for the answer; WorkerError if the worker died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.process.wait()
            lines = [x for x in self.log.read_text(errors="replace").splitlines() if x.strip()]
            raise WorkerError(f"{self.engine}: {lines[-1] if lines else 'ended'}")
        return json.loads(answer)

    def infer(self, count: int) -> tuple[list[float], list[float]]:
        """Seconds, and seconds of processor time, of `count` inferences after one that is not counted."""
        answer = self.ask(str(count + 1))
        return answer["seconds"][1:], answer["cpu"][1:]

    def outputs(self) -> list[Array]:
        """Of its first inference."""
        with np.load(self.results) as stored:
            return [stored[name] for name in stored.files]

    def close(self) -> None:
        """Ask it to end, and wait."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def start(
    engine: str,
    path: Path,
    folder: Folder,
    threads: int,
    cores: list[int],
    scratch: Path,
    as_installed: bool = False,
    python: str = sys.executable,
) -> Worker:
    """A worker after its first inference; WorkerError if it got not that far. Its files are in memory before.

    `as_installed`: the runtime keeps its defaults, whatever precision they mean. `python`: of the environment that the
    runtime is installed in.
    """
    for file in (path, path.with_suffix(".bin")):
        with suppress(FileNotFoundError):
            file.read_bytes()
    log, results = scratch / f"{engine}.log", scratch / f"{engine}.npz"
    with log.open("w") as errors:
        spawned = time.clock_gettime(time.CLOCK_MONOTONIC)
        process = subprocess.Popen(
            [python, "-m", "benchmarks.timing.worker"],
            cwd=Path(benchmarks.__file__).parent.parent,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    order = {
        "engine": engine,
        "path": str(path.resolve()),
        "threads": threads,
        "cores": cores[:threads],
        "spawned": spawned,
        "as_installed": as_installed,
        "outputs": str(results.resolve()),
        "inputs": {name: str(path.resolve()) for name, path in folder.files.items()},
    }
    worker = Worker(engine, process, log, results)
    try:
        worker.facts = worker.ask(json.dumps(order))
    except WorkerError:
        worker.close()
        raise
    return worker


def interleave(workers: list[Worker], rounds: int, turn: float = TURN_SECONDS) -> None:
    """Fills `Worker.rounds` with the seconds of every inference; counts are chosen so that a turn takes `turn` s."""
    for worker in workers:
        seconds = min(worker.infer(2)[0])
        worker.count = max(1, min(1000, round(turn / seconds)))
    for index in range(rounds):
        first = index % len(workers)
        for worker in workers[first:] + workers[:first]:
            time.sleep(PAUSE_SECONDS)
            seconds, cpu = worker.infer(worker.count)
            worker.rounds.append(seconds)
            worker.cpu.append(cpu)


def ratios(ours: list[list[float]], peers: list[list[list[float]]]) -> list[float]:
    """For each round: the fastest peer of that round over ours, by the medians of their turns."""
    medians = [list(map(statistics.median, rounds)) for rounds in peers]
    mine = list(map(statistics.median, ours))
    return [min(times) / own for own, *times in zip(mine, *medians, strict=True)]
