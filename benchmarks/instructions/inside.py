"""Runs a model in the emulated Python, with one runtime and one thread: `python inside.py RUNTIME MODEL INPUTS.npz`.

The emulator's plugin counts from one call of `os.getppid` to the next.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Run = Callable[[], object]
WARM_UP = 2


def ours(path: str, inputs: dict[str, Any]) -> Run:
    model = import_module("aot.runtime").load(path, threads=1)
    given = [inputs[info.name] for info in model.inputs]
    return lambda: model(*given)


def onnxruntime(path: str, inputs: dict[str, Any]) -> Run:
    ort = import_module("onnxruntime")
    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def litert(path: str, inputs: dict[str, Any]) -> Run:
    model = import_module("ai_edge_litert.interpreter").Interpreter(path, num_threads=1)
    model.allocate_tensors()
    places = [(info["index"], inputs[info["name"]]) for info in model.get_input_details()]
    outputs = [info["index"] for info in model.get_output_details()]

    def run() -> list[object]:
        for index, value in places:
            model.set_tensor(index, value)
        model.invoke()
        return [model.get_tensor(index) for index in outputs]

    return run


RUNTIMES = {"ours": ours, "onnxruntime": onnxruntime, "litert": litert}


def main(runtime: str, path: str, inputs: str) -> None:
    """Run the model a few times, the last time between two calls that the plugin sees."""
    run = RUNTIMES[runtime](path, dict(np.load(inputs)))
    for _ in range(WARM_UP):
        run()
    os.getppid()
    run()
    os.getppid()


if __name__ == "__main__":
    main(*sys.argv[1:])
