"""Each operation against OpenVINO, 1 thread: `python -m benchmarks.ops [--filter RE] [--vary] [--rounds N] ..`.

Two processes, one for each runtime, on one core, take turns; the figure is the least processor time of an inference.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aot.runtime.errors import AotError
from benchmarks.networks.op_cases import cases
from benchmarks.networks.op_models import Case
from benchmarks.timing.engines import ENGINES
from benchmarks.timing.report import machine

TURN = 0.05  # seconds
RESULT, SHARE = 1e-3, 0.999  # of the largest value; of the elements, as some lie between two levels or integers
LIMIT = 1.5  # slower than this is marked


class Worker:
    """A runtime in a process of its own; a new one after a crash."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.process: subprocess.Popen[str] | None = None

    def ask(self, order: dict[str, object]) -> dict[str, Any]:
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.ops", "--serve", self.engine]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else {"failed": f"{self.engine} crashed"}

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def serve(engine: str) -> None:
    """Answers orders: {"load": path} infers once and keeps the results, {"turn": seconds} gives the least CPU time."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    run: Any = None
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if "load" in order:
                path = Path(order["load"])
                with np.load(path.parent / "inputs.npz") as inputs:
                    run, outputs = ENGINES[engine](path, dict(inputs), 1)
                np.savez(path.parent / f"{engine}.npz", *outputs())
                found: dict[str, object] = {}
            else:
                found = {"least": min(_times(run, order["turn"]))}
        except Exception as error:  # of a runtime: the next operation must not fall with it
            found = {"failed": str(error).strip().splitlines()[-1][:120]}
        print(json.dumps(found), file=answers, flush=True)


def _times(run: Any, seconds: float) -> Iterator[float]:
    end = time.perf_counter() + seconds
    for n in range(10**6):
        begin = time.process_time()
        run()
        yield time.process_time() - begin
        if n and time.perf_counter() > end:
            break


def compare(case: Case, workers: Sequence[Worker], rounds: int, scratch: Path, vary: bool) -> dict[str, Any]:
    """Least times in milliseconds, or what failed."""
    from aot.compilation.driver import stages  # noqa: PLC0415  (workers do without the compiler)

    case.write(scratch / "model", vary)
    np.savez(scratch / "inputs.npz", **case.given)  # type: ignore[arg-type]
    try:
        stages(scratch / "model.xml").built.write_shared(scratch / "model.so")
    except AotError as error:
        return {"failed": str(error)[:120]}
    for worker, file in zip(workers, ("model.so", "model.xml"), strict=True):
        if failed := worker.ask({"load": str(scratch / file)}).get("failed"):
            return {"failed": failed}
    if not _agree(scratch / "ours.npz", scratch / "openvino.npz"):
        return {"failed": "results differ"}
    turns = [[w.ask({"turn": TURN}) for w in workers] for _ in range(rounds)]
    if failed := next((t["failed"] for pair in turns for t in pair if "failed" in t), None):
        return {"failed": failed}
    ours, theirs = (1e3 * min(float(pair[k]["least"]) for pair in turns) for k in (0, 1))
    return {"ours": ours, "theirs": theirs}


def _agree(ours: Path, theirs: Path) -> bool:
    with np.load(ours) as a, np.load(theirs) as b:
        for key in a.files:
            x, y = a[key].astype(np.float64), b[key].astype(np.float64)
            if x.shape != y.shape or np.quantile(np.abs(x - y), SHARE) > RESULT * max(np.abs(y).max(initial=0), 1):
                return False
    return True


def row(name: str, found: dict[str, Any]) -> str:
    if "failed" in found:
        return f"| {name} | | | {found['failed']} |"
    ratio = found["theirs"] / found["ours"]
    mark = " **slow**" if ratio < 1 / LIMIT else ""
    return f"| {name} | {found['ours']:.3f} | {found['theirs']:.3f} | {ratio:.2f}{mark} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ops", description=__doc__)
    parser.add_argument("--filter", default="", help="regular expression, searched in `Type-opset note`")
    parser.add_argument("--vary", action="store_true", help="f32 inputs of sizes that run time tells, but axis 1")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--table", type=Path, help="write the table there too")
    parser.add_argument("--serve", choices=("ours", "openvino"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve)
        return 0
    workers = [Worker("ours"), Worker("openvino")]
    facts = machine()
    lines = [f"{facts}\n", "| operation | ours ms | OpenVINO ms | ratio |", "|--|--|--|--|"]
    print("\n".join(lines))
    with tempfile.TemporaryDirectory() as folder:
        for case in cases():
            if re.search(args.filter, case.name):
                lines.append(row(case.name, compare(case, workers, args.rounds, Path(folder), args.vary)))
                print(lines[-1], flush=True)
    for worker in workers:
        worker.close()
    if args.table:
        args.table.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
