"""Makes cases.npz: small TensorFlow Lite files, their inputs, and what LiteRT's reference kernels give for them.

python -m tests.frontends.tflite.make [NAME ...]        needs ai-edge-litert, tflite, flatbuffers

NAME: beginnings of cases that are made; the others stay as they are. Without names all are made.

The results of a file are those of `Interpreter` with BUILTIN_REF.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from tests.frontends.tflite import (
    array_cases,
    control_cases,
    element_cases,
    integer_recurrent_cases,
    layer_cases,
    quantized_cases,
    recurrent_cases,
)
from tests.frontends.tflite.case import CASES, Case
from tests.frontends.tflite.models import Net, Op, Tensor, constant, model

FAMILIES = (
    array_cases,
    control_cases,
    element_cases,
    layer_cases,
    quantized_cases,
    recurrent_cases,
    integer_recurrent_cases,
)  # their import fills the list
OUT = Path(__file__).with_name("cases.npz")


def file_of(case: Case) -> bytes:
    """The file of a case of one operator."""
    if isinstance(case.made, bytes):
        return case.made
    tensors: list[Tensor] = []
    for k, x in enumerate(case.inputs):
        if isinstance(x, Tensor):
            tensors.append(x)
        elif x is not None:
            made = constant(f"x{k}", x)
            made.data = None
            tensors.append(made)
    outs = [t if isinstance(t, Tensor) else Tensor(f"y{k}", t, []) for k, t in enumerate(case.outputs)]
    places, n = list[int](), 0
    for x in case.inputs:
        places.append(-1 if x is None else n)
        n += x is not None
    fed = [places[k] for k, x in enumerate(case.inputs) if isinstance(x, np.ndarray) or is_fed(x)]
    outputs = list(range(len(tensors), len(tensors) + len(outs)))
    op = Op(case.kind, places, outputs, case.options, case.fields, case.custom)
    return model(Net([*tensors, *outs], [op], fed, outputs))


def is_fed(x: Any) -> bool:
    return isinstance(x, Tensor) and x.data is None and not x.variable


def values_of(case: Case) -> list[np.ndarray]:
    return [x for x in case.inputs if isinstance(x, np.ndarray)] + list(case.values)


def results(file: bytes, values: Sequence[np.ndarray], runs: int = 1, kernels: str = "reference") -> list[np.ndarray]:
    """Return the outputs of the last run, by LiteRT's reference kernels where it has them."""
    others = (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,)
    for resolver in (OpResolverType.BUILTIN_REF, *others) if kernels == "reference" else others:
        try:
            interpreter = Interpreter(model_content=file, experimental_op_resolver_type=resolver)
            break
        except ValueError as error:
            failed = error
    else:
        raise failed
    for d, x in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.resize_tensor_input(d["index"], x.shape)
    interpreter.allocate_tensors()
    for _ in range(runs):
        for d, x in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(d["index"], x)
        interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def apart(case: Case) -> list[np.ndarray] | str:
    """The results, made in a process of its own: some kernels end it; the reason where there are none."""
    ours, theirs = multiprocessing.Pipe()

    def run() -> None:
        try:
            theirs.send(results(file_of(case), values_of(case), case.runs, case.kernels))
        except Exception as error:
            theirs.send(str(error))

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return "the process ended"
    finally:
        process.join()


def main() -> None:
    names = tuple(sys.argv[1:])
    found: dict[str, np.ndarray] = dict(np.load(OUT)) if names else {}
    for case in CASES:
        if names and not case.name.startswith(names):
            continue
        file, values, outs = file_of(case), values_of(case), apart(case)
        if isinstance(outs, str):
            sys.stdout.write(f"FAILED {case.name}: {outs[:200]}\n")
            continue
        found[f"{case.name}|runs"] = np.array(case.runs)
        found[f"{case.name}|file"] = np.frombuffer(file, np.uint8)
        found |= {f"{case.name}|x{k}": v for k, v in enumerate(values)}
        found |= {f"{case.name}|y{k}": v for k, v in enumerate(outs)}
    np.savez_compressed(OUT, **found)
    sys.stdout.write(f"{len(CASES)} cases, {OUT.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
