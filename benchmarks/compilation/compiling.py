"""Compiles a model in a process of its own and says what that took.

python -m benchmarks.compilation.compiling XML SO TARGET PRECISION [fast]
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import benchmarks


def compile_apart(
    xml: Path, out: Path, target: str = "native", precision: str = "f32", *, fast_math: bool = False
) -> dict[str, object]:
    """{"compile_s", "compile_rss", "so_bytes"}; the memory is that of all its processes together, at its highest.

    RuntimeError with the last lines of what it printed, if it fails.
    """
    root = Path(benchmarks.__file__).parent.parent
    command = [
        sys.executable,
        "-m",
        "benchmarks.compilation.compiling",
        str(xml.resolve()),
        str(out.resolve()),
        target,
        precision,
    ]
    command += ["fast"] if fast_math else []
    child = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    most = [0]

    def watch() -> None:
        while child.poll() is None:
            most[0] = max(most[0], resident_with_children(child.pid))
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    printed, errors = child.communicate()
    watcher.join()
    if child.returncode:
        raise RuntimeError("compile: " + " | ".join(errors.strip().splitlines()[-2:]))
    facts = json.loads(printed)
    return {"compile_s": facts["seconds"], "compile_rss": max(most[0], facts["rss"]), "so_bytes": out.stat().st_size}


def resident_with_children(pid: int) -> int:
    """Bytes in memory of a process and of all that it started; files that they share count in each.

    A child that has not begun its own program yet is its parent's memory once more, and does not count.
    """
    total, waiting = 0, [(pid, "")]
    while waiting:
        one, parent = waiting.pop()
        try:
            program = Path(f"/proc/{one}/cmdline").read_text()
            status = Path(f"/proc/{one}/status").read_text()
            tasks = Path(f"/proc/{one}/task").iterdir()
            waiting += [(int(c), program) for t in tasks for c in (t / "children").read_text().split()]
        except (OSError, ProcessLookupError):
            continue
        if program != parent:
            total += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * 1024
    return total


def main() -> None:
    """The child: start of the compiler's import to the file's last byte."""
    begin = time.perf_counter()
    from aot.compilation.driver import stages  # noqa: PLC0415  (its time counts)
    from aot.options import CompileOptions  # noqa: PLC0415  (so does its)
    from benchmarks.timing.worker import peak_rss  # noqa: PLC0415  (so does its memory)

    xml, out, target, precision, *fast = sys.argv[1:]
    options = CompileOptions(target=target, precision=precision, fast_math=bool(fast))
    stages(xml, options).built.write_shared(Path(out))
    print(json.dumps({"seconds": time.perf_counter() - begin, "rss": peak_rss()}))


if __name__ == "__main__":
    main()
