"""Compares the bytes that two versions of the compiler make: a change of speed alone must not change any.

    python -m benchmarks.compilation.same_bytes record before.json --models FOLDER      at the old commit
    python -m benchmarks.compilation.same_bytes compare before.json --models FOLDER     at the new one

Compiled are every network of `benchmarks.models`, the trained example, every model file below the folders given by
`--models`, and every operation case of `tests.cases`, in networks of at most `CASES` operations, for `--target`.
Operations are compiled without LLVM's passes: equal LLVM IR gives equal bytes. `compare` prints each model whose digest
differs and the processor time of both versions; it exits with 1 if any digest differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import openvino as ov

import benchmarks
from aot.compilation.driver import stages
from aot.ir.graph import Graph
from aot.options import CompileOptions
from aot.runtime.errors import AotError
from benchmarks.models import MODELS

CASES = 12  # operations in one network
SUFFIXES = (".xml", ".onnx")
EXAMPLE = Path(benchmarks.__file__).parent.parent / "examples" / "digits" / "model.xml"

Job = tuple[str, str, int]  # kind, file or module of cases, place of the first case
Entry = dict[str, str | float]


def jobs(folders: list[Path], networks: Path, operations: bool) -> Iterator[Job]:
    """What to compile; networks first, since they take longest."""
    files = [p for folder in folders for p in sorted(folder.rglob("*")) if p.suffix in SUFFIXES]
    yield from (("file", str(p), 0) for p in (*files, EXAMPLE))
    yield from (("network", str(networks / f"{name}.xml"), 0) for name in MODELS)
    if operations:
        from tests.opset.test_compiled import MODULES, cases_of  # noqa: PLC0415  (pytest is not needed for networks)

        for module in MODULES:
            for kind in ("static", "dynamic"):
                count = len(cases_of(module, kind == "dynamic"))
                yield from ((kind, module, first) for first in range(0, count, CASES))


def compiled(job: Job, target: str) -> tuple[str, Entry]:
    """The job's name; the SHA-256 of its library, or the error's text, and seconds of processor time."""
    kind, name, first = job
    with tempfile.TemporaryDirectory() as folder:
        model, level = _model(job, Path(folder))
        begin = sum(os.times()[:4])
        try:
            out = Path(folder) / "model.so"
            stages(model, CompileOptions(target=target, level=level)).built.write_shared(out)
            digest = hashlib.sha256(out.read_bytes()).hexdigest()
        except AotError as error:
            digest = f"{type(error).__name__}: {error}"
        seconds = sum(os.times()[:4]) - begin
    shown = "example" if name == str(EXAMPLE) else Path(name).stem if kind == "network" else name
    return f"{kind} {shown} {first}", {"digest": digest, "seconds": round(seconds, 3)}


def _model(job: Job, folder: Path) -> tuple[Path | Graph, int | None]:
    """The model of a job and the level of LLVM's passes."""
    kind, name, first = job
    if kind in ("file", "network"):
        return Path(name), 1
    from tests.opset.test_compiled import add, cases_of  # noqa: PLC0415  (pytest is not needed for networks)

    graph = Graph(name)
    for at, case in enumerate(cases_of(name, kind == "dynamic")[first : first + CASES]):
        add(graph, case, at)
    return graph, None


def run(folders: list[Path], processes: int, target: str, operations: bool = True) -> dict[str, Entry]:
    """Digests and seconds of all jobs by name."""
    found: dict[str, Entry] = {}
    with tempfile.TemporaryDirectory() as networks, ProcessPoolExecutor(processes) as pool:
        for name, make in MODELS.items():  # in one process and one order: OpenVINO numbers layers as they are made
            ov.save_model(make(), Path(networks) / f"{name}.xml", compress_to_fp16=False)
        todo = list(jobs(folders, Path(networks), operations))
        for done, (name, entry) in enumerate(pool.map(partial(compiled, target=target), todo), 1):
            found[name] = entry
            print(f"{done}/{len(todo)} {name} {entry['seconds']} s", file=sys.stderr, flush=True)
    return found


def differences(before: dict[str, Entry], after: dict[str, Entry]) -> list[str]:
    """The names of models whose digests differ or that only one of the two has."""
    names = sorted({*before, *after})
    return [n for n in names if before.get(n, {}).get("digest") != after.get(n, {}).get("digest")]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compilation.same_bytes", description=__doc__)
    parser.add_argument("mode", choices=("record", "compare"))
    parser.add_argument("file", type=Path, help="digests as JSON, written by record and read by compare")
    parser.add_argument("--models", type=Path, action="append", default=[], help="a folder with model files")
    parser.add_argument("--target", default="x86-64-v3", help="as of `aot compile`; several levels as x86-64-v2,v3")
    parser.add_argument("--networks-only", action="store_true", help="no operation cases")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    begin = time.perf_counter()
    found = run(args.models, args.processes, args.target, not args.networks_only)
    if args.mode == "record":
        args.file.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{len(found)} models recorded in {time.perf_counter() - begin:.0f} s")
        return
    before: dict[str, Entry] = json.loads(args.file.read_text())
    if args.networks_only:
        before = {name: entry for name, entry in before.items() if name in found}
    differing = differences(before, found)
    for name in differing:
        print(f"differs: {name}: {before.get(name)} before, {found.get(name)} now")
    old, new = (sum(float(e["seconds"]) for e in some.values()) for some in (before, found))
    print(f"{len(found) - len(differing)} of {len(found)} models equal; {old:.1f} s before, {new:.1f} s now")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
