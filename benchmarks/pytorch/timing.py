"""Times networks compiled from .pt2, from ONNX files of the same weights, and by torch.compile, in one interleaved run.

    python -m benchmarks.pytorch.timing FOLDER/* --compile
    python -m benchmarks.pytorch.timing FOLDER/* [--torch VENV/bin/python] [--threads 1,2] [--rounds 10]

The folders are those of `benchmarks.pytorch.export --timed --onnx`. `--compile` makes the libraries and nothing else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

import numpy as np

from aot.compilation.driver import stages
from benchmarks.networks.folder import Folder
from benchmarks.pytorch.check import NEAR, SECONDS, difference, loaded
from benchmarks.timing.rounds import Worker, interleave, ratios, start

ROUTES = {"pt2": "model.pt2", "onnx": "model.onnx"}
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


def row(folder: Path, python: str | None, threads: int, rounds: int, cores: list[int]) -> str:
    """A line of the table: least times, and medians of the ratios inside of rounds."""
    workers = dict[str, Worker]()
    wanted = loaded(folder / "outputs_0.npz")
    try:
        for route in ROUTES:
            scratch = folder / f"{route}.scratch"
            scratch.mkdir(exist_ok=True)
            workers[route] = start("ours", library(folder, route), Folder(folder), threads, cores, scratch)
        path = folder / ROUTES["pt2"]
        if python:
            workers["inductor"] = start("inductor", path, Folder(folder), threads, cores, folder, python=python)
        for name, worker in workers.items():
            gap = difference(worker.outputs(), wanted)
            if not gap <= NEAR:
                raise SystemExit(f"{folder.name}: {name}: results within {NEAR:g}, got a difference of {gap:.1e}")
        interleave(list(workers.values()), rounds)
    finally:
        for worker in workers.values():
            worker.close()
    ours = workers["pt2"].rounds
    least = [f"{min(t for turn in w.rounds for t in turn) * 1e3:.3g}" for w in workers.values()]
    found = [ratios(ours, [workers[name].rounds]) for name in workers if name != "pt2"]
    shown = [f"{statistics.median(r):.2f} ({np.percentile(r, 10):.2f}–{np.percentile(r, 90):.2f})" for r in found]
    return f"| {folder.name} | {threads} | {' | '.join(least)} | {' | '.join(shown)} |"


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pytorch.timing", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--torch", help="a Python that has PyTorch; none: without torch.compile")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--compile", action="store_true", help="compile only")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    for folder in args.folders:
        if args.compile:
            compile_both(folder)
            continue
        for threads in map(int, args.threads.split(",")):
            print(row(folder, args.torch, threads, args.rounds, cores), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
