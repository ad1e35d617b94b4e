"""Actors of Ray that infer: memory, time to load and rows a second, for compiled code and for ONNX Runtime.

python -m benchmarks.running.actors --actors 16 --rows 256       needs ray, psutil and the extra bench
"""

from __future__ import annotations

import argparse
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import aot
from aot.runtime.predictor import Predictor
from benchmarks.running.serving import WIDTHS, perceptron

NAME = "mlp_1024_2048_2048_1000"


class Actor:
    """One model in one process."""

    def __init__(self, engine: str, path: str) -> None:
        self.process = psutil.Process()
        before, begin = self.process.memory_full_info(), time.perf_counter()
        if engine == "aot":
            predictor = Predictor(path)
            self.infer = lambda x: predictor({"x": x})
        else:
            onnxruntime: Any = import_module("onnxruntime")
            begin = time.perf_counter()  # without the import
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
            self.infer = lambda x: session.run(None, {"x": x})
        self.seconds, self.before = time.perf_counter() - begin, before

    def work(self, rows: int, times: int) -> tuple[float, int, int]:
        """Infer, and return the seconds of loading, and how much larger the process has become: PSS and USS."""
        x = np.ones((rows, WIDTHS[NAME][0]), np.float32)
        for _ in range(times):
            self.infer(x)
        now = self.process.memory_full_info()
        return self.seconds, now.pss - self.before.pss, now.uss - self.before.uss


def measure(ray: Any, engine: str, path: Path, actors: int, rows: int, times: int) -> str:
    """Return a line of the table."""
    kind = ray.remote(num_cpus=0.05)(Actor)
    crew = [kind.remote(engine, str(path)) for _ in range(actors)]
    ray.get([actor.work.remote(1, 1) for actor in crew])
    begin = time.perf_counter()
    ray.get([actor.work.remote(rows, times) for actor in crew])
    spent = time.perf_counter() - begin
    found = ray.get([actor.work.remote(1, 1) for actor in crew])  # while all are there
    seconds, pss, uss = (float(np.median(column)) for column in zip(*found, strict=True))
    rate = actors * rows * times / spent
    return f"| {engine} | {seconds * 1e3:.0f} | {pss / 1e6:.1f} | {uss / 1e6:.1f} | {rate:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("actors", 16), ("rows", 256), ("times", 20)):
        parser.add_argument(f"--{option}", type=int, default=default)
    given = parser.parse_args()
    ray: Any = import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as name:
        source, library = Path(name) / "m.onnx", Path(name) / "m.so"
        perceptron(source, WIDTHS[NAME])
        aot.compile_model(source, output=library)
        print("| engine | load, ms | PSS an actor, MB | USS an actor, MB | rows/s of all |\n|--|--|--|--|--|")
        for engine, path in (("aot", library), ("onnxruntime", source)):
            print(measure(ray, engine, path, given.actors, given.rows, given.times), flush=True)


if __name__ == "__main__":
    main()
