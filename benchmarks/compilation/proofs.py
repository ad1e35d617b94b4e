"""Counts why loads and stores of models stay inside of memory: obligations of their steps, by class.

    python -m benchmarks.compilation.proofs FOLDER...                    every model file below the folders
    python -m benchmarks.compilation.proofs --onnx-nodes --every 8       each eighth node test of the package onnx

An obligation is an index of a load or a store, or the name of a size (`aot dump --stage steps --proof` prints them).
Unknown ones are printed, each with its model. It exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from onnx.backend.test.case.node import collect_testcases

import aot
from aot.compilation.sources import as_file
from aot.ir.graph import Graph
from aot.lowering.ir.obligations import Proof
from aot.lowering.ir.proof import prove
from aot.runtime.errors import AotError

SUFFIXES = (".xml", ".onnx", ".tflite", ".pt2", ".gguf")


Model = tuple[str, Callable[[], AbstractContextManager[Path | str | Graph]]]


def files_below(folder: Path) -> list[Model]:
    """Return the model files below a folder."""
    files = [p for p in sorted(folder.rglob("*")) if p.suffix in SUFFIXES]
    return [(str(p.relative_to(folder)), partial(nullcontext, p)) for p in files]


def onnx_nodes() -> list[Model]:
    """Return the node tests of the package onnx."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the arrays that the tests are made of
        found = collect_testcases(None)
    return [(t.name, partial(as_file, t.model.SerializeToString())) for t in found if t.model is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--onnx-nodes", action="store_true")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    asked = parser.parse_args()
    models = [m for folder in asked.folders for m in files_below(folder)] + (onnx_nodes() if asked.onnx_nodes else [])
    counts, refused, used = Counter[Proof](), 0, models[:: asked.every]
    for name, model in used:
        try:
            with model() as file:
                found = prove(aot.stages(file).steps)
        except AotError:
            refused += 1
            continue
        counts.update(o.proof for o in found)
        for line in dict.fromkeys(str(o) for o in found if o.proof is Proof.UNKNOWN):
            sys.stdout.write(f"{name}: {line}\n")
    total = ", ".join(f"{counts[p]} {p.value}" for p in Proof)
    sys.stdout.write(f"{len(used)} models, {refused} of them refused: {total}\n")
    return int(counts[Proof.UNKNOWN] > 0)


if __name__ == "__main__":
    sys.exit(main())
