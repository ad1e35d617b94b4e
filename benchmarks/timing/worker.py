"""One runtime in one process, pinned to its cores: loads, infers once, then works when it is told to.

<-- {"engine", "path", "inputs", "cores", "threads", "spawned", "as_installed"}   first line
--> {"import_s", "load_s", "first_s", "start_s", "rss", "outputs"}
<-- 5                                                             infer five times
--> {"seconds": [0.0101, 0.0100, ...], "cpu": [0.0099, ...]}      of each: by the clock, and of processor time
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.timing.engines import AS_INSTALLED, ENGINES

MODULES = {"ours": "runtime", "inductor": "torch", "peak": "aot.codegen.llvm.peak"}


def serve() -> None:
    """Until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a runtime prints must not get between the answers
    order = json.loads(sys.stdin.readline())
    os.sched_setaffinity(0, order["cores"])
    inputs = {name: np.load(path) for name, path in order["inputs"].items()}
    engine = order["engine"]
    t0 = time.perf_counter()
    __import__(MODULES.get(engine, engine))
    t1 = time.perf_counter()
    engines = AS_INSTALLED if order["as_installed"] else ENGINES
    run, outputs = engines[engine](Path(order["path"]), inputs, order["threads"])
    t2 = time.perf_counter()
    run()
    t3 = time.perf_counter()
    start = time.clock_gettime(time.CLOCK_MONOTONIC) - order["spawned"]
    rss = peak_rss()
    np.savez(order["outputs"], *outputs())
    facts = {"import_s": t1 - t0, "load_s": t2 - t1, "first_s": t3 - t2, "start_s": start, "rss": rss}
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        seconds: list[float] = []
        cpu: list[float] = []
        for _ in range(int(line)):
            spent, begin = time.process_time(), time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
            cpu.append(time.process_time() - spent)
        print(json.dumps({"seconds": seconds, "cpu": cpu}), file=answers, flush=True)


def peak_rss() -> int:
    """Most memory this process ever had, in bytes; not the parent's, as `getrusage` would count."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    serve()
