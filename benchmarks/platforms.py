"""Compares the outputs of libraries for all systems and processors, byte by byte, with those of x86-64-v3.

    python -m benchmarks.platforms results.json

Runs what the file lacks, adds it, and prints a table: networks of each kind, and every `STEP`th operation case of
`tests.cases` whose results are whole bytes, as C programs with 1, 2 and 5 threads. It needs qemu-user, wine, musl-gcc
and a processor with AVX-512; with --networks, which has more of them, on Arm only, a QEMU that has a Neoverse V1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from aot.codegen.llvm.build import Built
from aot.codegen.llvm.header import header_text
from aot.codegen.llvm.levels import Levels
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.graph import Graph
from aot.opset.movement.gather import Gather
from aot.options import CompileOptions
from aot.runtime.abi import QUERY_PREFIX
from aot.runtime.arrays.strings import encode
from aot.runtime.arrays.tensors import Array
from benchmarks.networks.kinds import kinds
from tests.cases import Case
from tests.codegen.llvm import test_windows as windows
from tests.codegen.llvm.test_cross import DIGITS, RUNNER, one_of, packed
from tests.codegen.llvm.test_macos import LOADER
from tests.compilers import compiler
from tests.dynamic import loops
from tests.frontends.gguf.networks import Network
from tests.lowering.numbers.test_group_sums import KINDS, ROUNDED, data
from tests.opset import test_compiled as cases
from tests.opset import test_strings as strings
from tests.passes.check import graph_of

THREADS = ("1", "2", "5")
CALLS = 3 * len(THREADS)
STEP, CASES = 5, 24  # of all operation cases, every fifth; in networks of so many
ENDS_QEMU = "ReduceL2.i32[3x4].const1"  # vfncvt.rtz.x.f.w fails an assertion of QEMU 7.2, which later ones mended
STORY = RUNNER.parents[2] / "examples" / "c" / "story.c"
LINKED = """
enum { RTLD_NOW, RTLD_LOCAL };
#define dlopen(path, flags) ((void)(flags), (void *)(path))
#define dlsym(library, name) ((void)(library), (void *)AOT_STORY)
"""
TOKENS = ["5", "1", "40", "7", "7", "63", "2"]
WAYS = (("0", "1"), ("0.8", "3"))  # temperature and seed


@dataclass(frozen=True)
class Machine:
    """A column of the table: the compiler of its C programs, and the emulator that runs them."""

    target: str
    compiler: str = "cc"
    emulator: tuple[str, ...] = ()

    @property
    def windows(self) -> bool:
        return self.target.startswith("windows")

    @property
    def macos(self) -> bool:
        return self.target.startswith("macos")


AARCH64 = ("aarch64-linux-gnu-gcc", ("qemu-aarch64-static", "-cpu"))
MACHINES = {
    "x86-64-v3": Machine("x86-64-v3"),
    "musl": Machine("x86-64-v3", "musl-gcc"),
    "Windows": Machine("windows-x86-64-v3", "x86_64-w64-mingw32-gcc", ("wine",)),
    "x86-64-v2": Machine("x86-64-v2"),
    "x86-64-v4": Machine("x86-64-v4"),
    "aarch64-v8": Machine("aarch64-v8", AARCH64[0], (*AARCH64[1], "cortex-a53")),
    "aarch64-v8.6": Machine("aarch64-v8.6", AARCH64[0], (*AARCH64[1], "max")),
    "macOS": Machine("macos-v8.6", AARCH64[0], (*AARCH64[1], "max")),  # by a loader of ours
    "Android": Machine("android-v8.6", AARCH64[0], (*AARCH64[1], "max")),  # with musl
    **{
        f"riscv64, {bits} bits": Machine(
            "riscv64-v",
            "riscv64-linux-gnu-gcc",
            ("qemu-riscv64-static", "-cpu", f"rv64,v=true,vlen={bits},vext_spec=v1.0"),
        )
        for bits in (128, 256)
    },
}
ARM = {
    f"{cpu}, -{level}": Machine(f"aarch64-{level}", AARCH64[0], (*AARCH64[1], cpu))
    for cpu, level in (("cortex-a76", "v8.2"), ("max", "v8.6"), ("neoverse-v1", "v8.6"))
}


@dataclass(frozen=True)
class Job:
    """A row of the table, or networks of one; `labels`: the operation case that gives each output."""

    make: Callable[[], Graph | Path]
    inputs: Sequence[Array]
    options: CompileOptions = field(default_factory=CompileOptions)
    labels: Sequence[str] = ()

    def built(self, target: str) -> Built | Levels:
        return stages(self.make(), replace(self.options, target=target)).built


Rows = Callable[[Path], Iterator[tuple[str, Job]]]


def is_run(case: Case) -> bool:
    """True if no result has a packed type, which NumPy's arrays do not have, and the emulators run the case."""
    return case.name != ENDS_QEMU and not any(r.dtype.bits % 8 for r in case.op.outputs(*case.operands()))


def networks(folder: Path) -> Iterator[tuple[str, Job]]:
    """Yield networks by name."""
    for name, (graph, inputs) in windows.MODELS.items():
        yield name, Job(graph, inputs, CompileOptions(precision=windows.PRECISION.get(name, "f32")))
    yield "digits", Job(lambda: DIGITS, [np.load(DIGITS.parent / "seven.npy")])
    for name in ("branch_in_loop", "cells"):
        yield f"loop {name}", Job(loops.NETWORKS[name].make, loops.NETWORKS[name].inputs[0])
    yield "state", Job(loops.remembering, [np.array(3), loops.ROW])
    yield "recurrent", Job(*windows.short("recurrent"))
    yield "int8 matmul", Job(*windows.quantized("matmul"))
    weights = KINDS["u4 in 64"]
    shape = (7, weights.length)
    yield (
        "u4 in groups",
        Job(lambda: graph_of(lambda b, x: weights.product(b, b.Abs(x)), shape), [data(*shape)], ROUNDED),
    )
    words = [strings.WORDS, np.array([5, 0])]
    yield "strings", Job(lambda: strings.graph_of(Gather(), words, [np.array(0)]), words)
    story = Network("llama", "Q4_0").write(folder / "story.gguf")
    yield "language model", Job(lambda: story, ())


def jobs(folder: Path) -> Iterator[tuple[str, Job]]:
    """Yield rows by name."""
    yield from networks(folder)
    every = [case for module in cases.MODULES for case in cases.cases_of(module, False)][::STEP]
    for first in range(0, len(every), CASES):
        some = [case for case in every[first : first + CASES] if is_run(case)]
        labels = [c.name for c in some for _ in c.op.outputs(*c.operands())]
        fed = [array for case in some for array in cases.fed(case)]
        yield f"cases {first}", Job(lambda some=some: cases.network(some)[0], fed, CompileOptions(level=None), labels)


def more_networks(folder: Path) -> Iterator[tuple[str, Job]]:
    """Yield networks by name, those of `kinds` behind the others."""
    yield from networks(folder)
    for name, make, inputs, options in kinds(folder):
        yield name, Job(make, inputs, options)


def parts(arrays: Sequence[Array]) -> list[Array]:
    """Return tensors as compiled code has them: three for each one of strings."""
    return [part for array in arrays for part in (encode(array) if array.dtype == object else (array,))]


def program(machine: Machine, made: Built | Levels, folder: Path, source: Path, name: str) -> list[str]:
    """Make a C program with the model, and return the command that runs it."""
    for header in {name, "network"}:
        (folder / f"{header}.h").write_text(header_text(made, name))
    ways = [f"-DQUERY={QUERY_PREFIX}{made.tag}", f"-I{folder}", str(source), "-o", str(folder / "program.exe")]
    if machine.windows:
        made.write_shared(folder / "m.dll")
        ways.append("-fms-extensions")
    elif machine.macos:
        made.write_shared(folder / "m.dylib")
        ways += ["-static", str(LOADER), '-DLIBRARY="m.dylib"', "-pthread"]
    else:
        made.write_object(folder / "m.o")
        ways += ["-static", str(folder / "m.o"), "-pthread"]
    (folder / "dlfcn.h").write_text(windows.DLFCN if machine.windows else LINKED)
    subprocess.run([*compiler(machine.compiler), *ways], check=True)
    return [*machine.emulator, str(folder / "program.exe")]


def run(command: Sequence[str], folder: Path) -> str:
    wine = {"WINEPREFIX": str(folder.parent / "wine"), "WINEDEBUG": "-all"}
    done = subprocess.run(command, cwd=folder, env={**os.environ, **wine}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.returncode}: {done.stderr}")
    return done.stdout


def outputs(machine: Machine, made: Built | Levels, job: Job, folder: Path) -> bytes:
    """Return the bytes of all outputs of three calls, or the tokens, which are equal for each number of threads."""
    if not job.inputs:
        told = program(machine, made, folder, STORY, "story")
        return "\n".join(run([*told, "m.dll", "40", *way, *TOKENS], folder) for way in WAYS).encode()
    (folder / "in").write_bytes(packed(parts(job.inputs)))
    told = program(machine, made, folder, RUNNER, "network")
    library = ["m.dll", QUERY_PREFIX + made.tag] if machine.windows else []
    run([*told, *library, "in", "out", *THREADS], folder)
    return one_of(len(THREADS), (folder / "out").read_bytes())


def reference(job: Job, folder: Path) -> list[Array]:
    """Return what the library of x86-64-v3 gives in this process, or the tokens of its C program."""
    made = job.built("x86-64-v3")
    if not job.inputs:
        return [np.frombuffer(outputs(MACHINES["x86-64-v3"], made, job, folder), np.uint8)]
    request = in_memory(made, threads=1).create_infer_request()
    return parts([y.copy() for _ in range(3) for y in request.infer(list(job.inputs)).to_tuple()])


def differences(found: bytes, expected: Sequence[Array], labels: Sequence[str]) -> dict[str, float | None]:
    """Return the largest difference of each output that differs, relative to its largest number; None: of integers."""
    if len(found) != sum(array.nbytes for array in expected):
        return {"sizes": None}
    wrong, at = dict[str, float | None](), 0
    for n, array in enumerate(expected):
        other = np.frombuffer(found, array.dtype, array.size, at).reshape(array.shape)
        at += array.nbytes
        if other.tobytes() == array.tobytes():
            continue
        label = labels[n % len(labels)] if labels else str(n)
        if array.dtype.kind in "fV":
            a, b = (np.nan_to_num(x.astype(np.float64)) for x in (array, other))
            wrong[label] = float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30))
        else:
            wrong[label] = None
    return wrong


def measure(path: Path, machines: Mapping[str, Machine], rows: Rows) -> dict[str, dict[str, dict[str, float | None]]]:
    """Run what the file lacks; differences by job and machine."""
    found = json.loads(path.read_text()) if path.exists() else {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder) / "program"
        place.mkdir()
        for name, job in rows(place):
            mine, made, expected = found.setdefault(name, {}), dict[str, Built | Levels](), list[Array]()
            for label, machine in machines.items():
                if label in mine:
                    continue
                expected = expected or reference(job, place)
                made.setdefault(machine.target, job.built(machine.target))
                try:
                    mine[label] = differences(outputs(machine, made[machine.target], job, place), expected, job.labels)
                except SystemExit as error:
                    print(error, file=sys.stderr)
                    mine[label] = {str(error)[-200:]: None}
                path.write_text(json.dumps(found, indent=1) + "\n")
                print(name, label, mine[label] or "equal", file=sys.stderr, flush=True)
    return found


def table(found: dict[str, dict[str, dict[str, float | None]]], machines: Collection[str]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield "| | " + " | ".join(machines) + " |"
    yield "|--" * (1 + len(machines)) + "|"
    counts = dict.fromkeys(machines, 0)
    for name, mine in found.items():
        if name.startswith("cases "):
            counts = {label: counts[label] + len(mine[label]) for label in machines}
        else:
            yield f"| {name} | " + " | ".join(_cell(mine[label]) for label in machines) + " |"
    yield "| operation cases that differ | " + " | ".join(map(str, counts.values())) + " |"


def _cell(differing: dict[str, float | None]) -> str:
    if not differing:
        return "="
    return "other" if None in differing.values() else f"{max(filter(None, differing.values())):.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.platforms", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", type=Path, help="differences as JSON: read, and written as they are found")
    parser.add_argument("--networks", action="store_true", help="more networks, on three processors of Arm")
    options = parser.parse_args()
    machines, rows = (ARM, more_networks) if options.networks else (MACHINES, jobs)
    print("\n".join(table(measure(options.file, machines, rows), machines)))


if __name__ == "__main__":
    main()
