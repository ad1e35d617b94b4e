"""Times of compiling models without kept kernels: `python -m benchmarks.compilation.cold MODEL... [--before CHECKOUT]`.

Each is compiled by `aot compile` in processes of their own, those of both checkouts in turns; printed are the least
processor seconds of all processes of a run, the least seconds of the wall, and geometric means.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from math import exp, log
from pathlib import Path

import benchmarks

HERE = Path(benchmarks.__file__).parents[1]


def compile_once(checkout: Path, model: Path, folder: Path) -> tuple[float, float]:
    """Return the processor seconds and the seconds of the wall of a compilation by a checkout's `aot`."""
    command = [sys.executable, "-m", "aot", "compile", str(model.resolve()), "-o", str(folder / "m.so"), "--quiet"]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [*command, "--kernel-cache", "off"], cwd=checkout, env=os.environ | {"PYTHONPATH": str(checkout)}, check=True
    )
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def name_of(model: Path) -> str:
    """Return the name of a model: that of its folder, for `model.xml` and the like."""
    return model.parent.name if model.stem == "model" else model.name


def mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, values)) / len(values))


def row(name: str, times: list[tuple[float, float]]) -> str:
    """Return a row of the table: processor seconds, then those of the wall, of each checkout."""
    return (
        f"| {name} | " + " | ".join(f"{t:.2f}" for n in (0, 1) for t in (times[k][n] for k in range(len(times)))) + " |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compilation.cold", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--before", type=Path, help="another checkout, which is measured, too")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    checkouts = ([args.before.resolve()] if args.before else []) + [HERE]
    heads = ["before", "after"] if args.before else [""]
    print("| | " + " | ".join(f"{kind} {h}".strip() for kind in ("processor s", "wall s") for h in heads) + " |")
    print("|--" * (1 + 2 * len(heads)) + "|")
    found: list[list[tuple[float, float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            runs = [[compile_once(c, model, Path(folder)) for c in checkouts] for _ in range(args.runs)]
            found.append([(min(r[k][0] for r in runs), min(r[k][1] for r in runs)) for k in range(len(checkouts))])
            print(row(name_of(model), found[-1]), flush=True)
    means = [(mean([f[k][0] for f in found]), mean([f[k][1] for f in found])) for k in range(len(checkouts))]
    print(row("geometric mean", means))


if __name__ == "__main__":
    main()
