"""Times the layers of `benchmarks.mca` on this machine, at each level that it has, one thread: `python -m
benchmarks.mca.measure [LAYERS] [--seconds 3]`. On a machine with Arm's processor, under ten minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from aot.codegen.llvm.host import parse_target
from aot.codegen.target import Target
from aot.compilation.jit import in_memory
from aot.ir.types import Array
from benchmarks.mca.layers import LAYERS, compiled

LEAST_RUNS = 5


def levels() -> list[str]:
    """Return the names of targets that this machine can run, the lowest first."""
    here = parse_target("native")
    names = here.machine.architecture.levels
    return [name for name in names if set(Target.parse(name).features) <= set(here.features)]


def least_time(model: Callable[[Array], object], x: Array, seconds: float) -> float:
    """Return the least time of an inference, in seconds."""
    end, least, count = time.perf_counter() + seconds, float("inf"), 0
    while count < LEAST_RUNS or time.perf_counter() < end:
        start = time.perf_counter()
        model(x)
        least, count = min(least, time.perf_counter() - start), count + 1
    return least


def main(given: list[str] | None = None) -> None:
    """Print a row of Markdown for each layer and level."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mca.measure", description=__doc__)
    parser.add_argument("layers", nargs="?", default="", help="part of the names of layers; all by default")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each row")
    options = parser.parse_args(given)
    print("| layer | level | least time, us | operations a nanosecond |\n|--|--|--|--|")
    for name in (n for n in LAYERS if options.layers in n):
        x = np.random.default_rng(0).standard_normal(LAYERS[name].shape).astype(np.float32)
        for level in levels():
            made = compiled(name, level)
            model = in_memory(made.built, threads=1)
            taken = least_time(model, x, options.seconds)
            work = sum(call.work for call in made.program.calls if isinstance(call.work, int))
            print(f"| {name} | {level} | {taken * 1e6:.1f} | {work / taken / 1e9:.1f} |", flush=True)


if __name__ == "__main__":
    main()
