"""Times networks compiled from .pt2, from ONNX files of the same weights, by torch.compile, and in other runtimes.

All of them run in turns.

    python -m benchmarks.pytorch.timing FOLDER/* --compile
    python -m benchmarks.pytorch.timing FOLDER/* [--torch VENV/bin/python] [--peers] [--threads 1,2] [--hold]

The folders are those of `benchmarks.pytorch.export --timed --onnx`. `--compile` makes the libraries and nothing else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aot.compilation.driver import stages
from benchmarks.networks.folder import Folder
from benchmarks.pytorch.check import NEAR, SECONDS, difference, loaded
from benchmarks.timing.rounds import Worker, interleave, ratios, start

ROUTES = {"pt2": "model.pt2", "onnx": "model.onnx"}
PEERS = ("openvino", "onnxruntime")  # they read the ONNX file
INPUTS = "inputs_0.npz"


def library(folder: Path, route: str) -> Path:
    return folder / f"{route}.so"


def compile_both(folder: Path) -> None:
    """Compile both files of a network, and write its inputs as the workers read them."""
    for route, file in ROUTES.items():
        if (folder / file).exists() and not library(folder, route).exists():
            stages(folder / file, max_seconds=SECONDS).built.write_shared(library(folder, route))
    for i, array in enumerate(loaded(folder / INPUTS)):
        np.save(folder / f"in_{i}.npy", array)


@dataclass
class Row:
    """A network on a number of threads; `workers`: the runtimes that were started for it, by name."""

    folder: Path
    threads: int
    workers: dict[str, Worker] = field(default_factory=dict[str, Worker])

    def begin(self, python: str | None, peers: bool, cores: list[int]) -> None:
        """Start the runtimes, which infer once. SystemExit if one of them gives other results than PyTorch."""
        folder, wanted = self.folder, loaded(self.folder / "outputs_0.npz")
        for name in (*ROUTES, *(["inductor"] if python else []), *(PEERS if peers else ())):
            scratch = folder / f"{name}.scratch"
            scratch.mkdir(exist_ok=True)
            file = folder / ROUTES["onnx" if name in PEERS else "pt2"]
            engine, path = ("ours", library(folder, name)) if name in ROUTES else (name, file)
            given = engine, path, Folder(folder), self.threads, cores, scratch
            self.workers[name] = start(*given, python=python if python and name == "inductor" else sys.executable)
            gap = difference(self.workers[name].outputs(), wanted)
            if not gap <= NEAR:
                raise SystemExit(f"{folder.name}: {name}: results within {NEAR:g}, got a difference of {gap:.1e}")

    def measure(self, rounds: int) -> str:
        """Return a line of the table: least times, and medians of the ratios inside of rounds."""
        workers = self.workers
        interleave(list(workers.values()), rounds)
        ours = workers["pt2"].rounds
        least = [f"{min(t for turn in w.rounds for t in turn) * 1e3:.3g}" for w in workers.values()]
        found = [ratios(ours, [workers[name].rounds]) for name in workers if name != "pt2"]
        shown = [f"{statistics.median(r):.2f} ({np.percentile(r, 10):.2f}–{np.percentile(r, 90):.2f})" for r in found]
        return f"| {self.folder.name} | {self.threads} | {' | '.join(least)} | {' | '.join(shown)} |"

    def end(self) -> None:
        for worker in self.workers.values():
            worker.close()


def measure(rows: list[Row], python: str | None, peers: bool, rounds: int, hold: bool) -> None:
    """Print a line for each row. `hold`: all runtimes start first, then a line of standard input is waited for."""
    cores = sorted(os.sched_getaffinity(0))
    try:
        if hold:
            for row in rows:
                row.begin(python, peers, cores)
            print("all runtimes have started: Enter begins", flush=True)
            sys.stdin.readline()
        for row in rows:
            if not hold:
                row.begin(python, peers, cores)
            print(row.measure(rounds), flush=True)
            row.end()
    finally:
        for row in rows:
            row.end()


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pytorch.timing", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--torch", help="a Python that has PyTorch; none: without torch.compile")
    parser.add_argument("--peers", action="store_true", help="time OpenVINO (f32) and ONNX Runtime, too")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--compile", action="store_true", help="compile only")
    parser.add_argument("--hold", action="store_true", help="start all, torch.compile takes minutes; measure at Enter")
    args = parser.parse_args()
    if args.compile:
        for folder in args.folders:
            compile_both(folder)
        return 0
    rows = [Row(folder, threads) for folder in args.folders for threads in map(int, args.threads.split(","))]
    measure(rows, args.torch, args.peers, args.rounds, args.hold)
    return 0


if __name__ == "__main__":
    sys.exit(main())
