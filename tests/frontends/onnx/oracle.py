"""ONNX Runtime as the oracle of small models, and numbers to give them. What imports this is skipped without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.frontends.onnx.models import Array

onnxruntime = pytest.importorskip("onnxruntime")


def session(path: Path, optimised: bool = True, threads: int = 1) -> Any:
    """A model in ONNX Runtime, on the CPU; not optimised, its nodes run as written. Threads wait by spinning."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def expected(path: Path, *inputs: Array, threads: int = 1) -> list[Array]:
    """Return the results of ONNX Runtime for the unoptimised model; `inputs` are in the model's order."""
    running = session(path, optimised=False, threads=threads)
    return running.run(None, {i.name: x for i, x in zip(running.get_inputs(), inputs, strict=True)})
