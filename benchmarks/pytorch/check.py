"""Compiles exported networks, without PyTorch, and compares them with what PyTorch computed.

    python -m benchmarks.pytorch.check FOLDER/* [--threads 2] [--quiet]

The folders are those of `benchmarks.pytorch.export` and `benchmarks.pytorch.samples`. A difference is relative to the
largest number of an output. Each network has a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import aot
from aot.runtime.errors import AotError
from aot.runtime.model import CompiledModel

NEAR = 1e-4  # of the largest number of an output: f32 sums in another order
SECONDS = 600  # of one network, then its process is ended
RIGHT = "right"


def loaded(path: Path) -> list[np.ndarray]:
    with np.load(path) as stored:
        return [stored[name] for name in stored.files]


def plain(value: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs, all else as it is."""
    return np.stack([value.real, value.imag], -1) if np.iscomplexobj(value) else value


def difference(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest difference of all outputs, relative to the largest number of each; infinite for other shapes."""
    if [a.shape for a in found] != [b.shape for b in wanted]:
        return float("inf")
    worst = 0.0
    for given, right in zip(found, wanted, strict=True):
        a, b = given.astype(np.float64), right.astype(np.float64)
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return float("inf")
        gap = np.abs(a[finite] - b[finite]).max(initial=0)
        worst = max(worst, float(gap / max(np.abs(b[finite]).max(initial=0), 1e-6)))
    return worst


def outputs(model: CompiledModel, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of an inference, in order."""
    result = model(*inputs)
    return [np.asarray(result[i]) for i in range(len(model.outputs))]


def verdict(folder: Path, threads: int) -> tuple[str, str]:
    """The outcome for a network, and what there is to say of it."""
    begin = time.perf_counter()
    try:
        model = aot.compile_model(folder / "model.pt2", threads=threads, max_seconds=SECONDS)
    except AotError as error:
        return "refused", " | ".join(str(error).splitlines()[:6])
    seconds = time.perf_counter() - begin
    runs, gaps = sorted(folder.glob("inputs_*.npz")), list[float]()
    for run in runs:
        wanted = [plain(a) for a in loaded(run.with_name(run.name.replace("inputs", "outputs")))]
        try:
            found = outputs(model, [plain(a) for a in loaded(run)])
        except AotError as error:
            return "refused when run", str(error)
        gaps.append(difference(found, wanted))
        if not np.isfinite(gaps[-1]):
            shown = [[(a.dtype.name, a.shape) for a in arrays] for arrays in (wanted, found)]
            return "differs", f"expected {shown[0]}, got {shown[1]}"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    text = f"{max(gaps):.1e}, {len(runs)} inferences; compiled in {seconds:.1f} s, {memory:.1f} GB"
    return RIGHT if max(gaps) <= NEAR else "differs", text


def worker(folder: Path, threads: int, pipe: Connection) -> None:
    try:
        found = verdict(folder, threads)
    except Exception as error:  # it is what is looked for
        found = "fails", f"{type(error).__name__}: {error}"
    pipe.send(found)


def apart(folder: Path, threads: int) -> tuple[str, str]:
    """The verdict, found in a process of its own."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=worker, args=(folder, threads, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(SECONDS) else ("takes too long", "")
    except EOFError:
        return "ends the process", ""
    finally:
        process.kill()
        process.join()


def main() -> int:
    """0; 1 if a network is not compiled or differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pytorch.check", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quiet", action="store_true", help="print what is not right only")
    args = parser.parse_args()
    counts = Counter[str]()
    for folder in args.folders:
        outcome, text = apart(folder, args.threads)
        counts[outcome] += 1
        if outcome != RIGHT or not args.quiet:
            print(f"{outcome}: {folder.name}: {text}", flush=True)
    print(f"{counts.total()} networks: {', '.join(f'{n} {what}' for what, n in counts.most_common())}")
    return int(counts[RIGHT] < counts.total())


if __name__ == "__main__":
    sys.exit(main())
