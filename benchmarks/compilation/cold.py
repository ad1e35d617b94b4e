"""Times of compiling models without kept kernels: `python -m benchmarks.compilation.cold MODEL... [--before CHECKOUT]`.

Each is compiled by `aot compile` in processes of their own, those of both checkouts in turns; printed are the least
processor seconds of all processes of a run, the least seconds of the wall, and geometric means. With `--memory`: the
greatest memory of all processes of a run together, in MB, without pages of files.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from math import exp, log
from pathlib import Path
from statistics import fmean

import benchmarks

HERE = Path(benchmarks.__file__).parents[1]


def command_of(model: Path, folder: Path) -> list[str]:
    """Return the command that compiles a model."""
    return [sys.executable, "-m", "aot", "compile", str(model.resolve()), "-o", str(folder / "m.so"), "--quiet"]


def environment_of(checkout: Path) -> dict[str, str]:
    """Return the environment in which Python imports a checkout, which keeps no kernels."""
    return os.environ | {"PYTHONPATH": str(checkout), "AOT_KERNEL_CACHE": "off"}


def times_of(checkout: Path, model: Path, folder: Path) -> tuple[float, ...]:
    """Return the processor seconds and the seconds of the wall of a compilation by a checkout's `aot`."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command_of(model, folder), cwd=checkout, env=environment_of(checkout), check=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def processes_below(process: int) -> list[int]:
    """Return a process and all that it and these have started, as Linux tells."""
    try:
        started = [p for t in Path(f"/proc/{process}/task").iterdir() for p in (t / "children").read_text().split()]
    except OSError:  # it has ended
        return []
    return [process, *(below for p in started for below in processes_below(int(p)))]


def anonymous_memory(process: int) -> float:
    """Return the MB of a process that no file has; what several processes share counts in parts."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:"))) / 1024


def memory_of(checkout: Path, model: Path, folder: Path) -> tuple[float, ...]:
    """Return the greatest memory of a compilation by a checkout's `aot`, seen every 10 ms."""
    with subprocess.Popen(command_of(model, folder), cwd=checkout, env=environment_of(checkout)) as process:
        most = 0.0
        while process.poll() is None:
            most = max(most, sum(map(anonymous_memory, processes_below(process.pid))))
            time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"{model} is not compiled")
    return (most,)


def name_of(model: Path) -> str:
    """Return the name of a model: that of its folder, for `model.xml` and the like."""
    return model.parent.name if model.stem == "model" else model.name


def mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    return exp(fmean(map(log, values)))


def row(name: str, figures: list[tuple[float, ...]]) -> str:
    """Return a row of the table: each figure, of each checkout."""
    return (
        f"| {name} | " + " | ".join(f"{value:.2f}" for of_all in zip(*figures, strict=True) for value in of_all) + " |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compilation.cold", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--before", type=Path, help="another checkout, which is measured, too")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", action="store_true", help="measure memory in place of time")
    args = parser.parse_args()
    checkouts = ([args.before.resolve()] if args.before else []) + [HERE]
    heads = ["before", "after"] if args.before else [""]
    kinds, measure = (("memory MB",), memory_of) if args.memory else (("processor s", "wall s"), times_of)
    print("| | " + " | ".join(f"{kind} {h}".strip() for kind in kinds for h in heads) + " |")
    print("|--" * (1 + len(kinds) * len(heads)) + "|")
    measured: list[list[tuple[float, ...]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            runs = [[measure(c, model, Path(folder)) for c in checkouts] for _ in range(args.runs)]
            measured.append(
                [tuple(map(min, zip(*of_checkout, strict=True))) for of_checkout in zip(*runs, strict=True)]
            )
            print(row(name_of(model), measured[-1]), flush=True)
    print(
        row(
            "geometric mean",
            [tuple(map(mean, zip(*of_checkout, strict=True))) for of_checkout in zip(*measured, strict=True)],
        )
    )


if __name__ == "__main__":
    main()
