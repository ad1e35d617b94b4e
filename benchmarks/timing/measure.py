"""One model at one number of threads: start the workers, check their results, interleave, sum up."""

from __future__ import annotations

import statistics
from math import inf
from pathlib import Path

from benchmarks.networks.folder import Folder, largest_error
from benchmarks.timing.report import Row, spread
from benchmarks.timing.rounds import Worker, WorkerError, interleave, ratios, start


def measure(
    folder: Folder,
    library: Path | None,
    threads: int,
    cores: list[int],
    rounds: int,
    scratch: Path,
    as_installed: bool = False,
) -> Row:
    """The row of the table; what failed is told in `failed`, and the rest is measured without it.

    `library` None: ours could not be compiled. Results further from the expected ones than the folder allows count as
    failed, but those of runtimes as they are installed are measured with their errors.
    """
    row: Row = {"model": folder.name, "threads": threads, "rounds": rounds}
    failed: list[str] = []
    workers: dict[str, Worker] = {}
    paths = {"openvino": folder.xml, "onnxruntime": folder.onnx, "ours": library, "peak": folder.xml}
    try:
        for engine, path in paths.items():
            if path is None or not path.exists():
                continue
            try:
                workers[engine] = start(engine, path, folder, threads, cores, scratch, as_installed)
            except WorkerError as error:
                failed.append(str(error))
        _check(folder, workers, row, failed, inf if as_installed else folder.tolerance)
        try:
            interleave(list(workers.values()), rounds)
            _sum_up(workers, row)
        except WorkerError as error:
            failed.append(str(error))
    finally:
        for worker in workers.values():
            worker.close()
    return row | ({"failed": failed} if failed else {})


def _check(folder: Folder, workers: dict[str, Worker], row: Row, failed: list[str], most: float) -> None:
    """Against the stored outputs, else OpenVINO's; a runtime that is wrong is not measured."""
    expected = folder.outputs()
    if not expected and "openvino" in workers:
        expected = workers["openvino"].outputs()
    for engine in [e for e in workers if e != "peak" and expected]:
        found = workers[engine].outputs()
        error = largest_error(found, expected) if len(found) == len(expected) else float("inf")
        row[f"{engine}_error"] = error
        if error > most:
            failed.append(f"{engine}: results differ by {error:.1e} of the largest output")
            workers.pop(engine).close()


def _sum_up(workers: dict[str, Worker], row: Row) -> None:
    for engine, worker in workers.items():
        times = [t for turn in worker.rounds for t in turn]
        facts = worker.facts
        row |= {
            f"{engine}_min_ms": min(times) * 1e3,
            f"{engine}_median_ms": statistics.median(times) * 1e3,
            f"{engine}_cpu_ms": statistics.median(t for turn in worker.cpu for t in turn) * 1e3,
            f"{engine}_load_ms": facts["load_s"] * 1e3,
            f"{engine}_first_ms": facts["first_s"] * 1e3,
            f"{engine}_import_ms": facts["import_s"] * 1e3,
            f"{engine}_start_s": facts["start_s"],
            f"{engine}_rss_mb": facts["rss"] / 1e6,
        }
    peers = [w for e, w in workers.items() if e not in ("ours", "peak")]
    if "ours" in workers and peers:
        ours = workers["ours"]
        found = ratios(ours.rounds, [w.rounds for w in peers])
        if row["threads"] == 1:  # with more, processor time counts waiting too
            row["cpu_ratio"] = spread(ratios(ours.cpu, [w.cpu for w in peers]))["median"]
        middle = spread(found)
        row |= {"ratio": middle["median"], "ratio_p10": middle["p10"], "ratio_p90": middle["p90"], "ratios": found}
    if "peak" in workers:
        flops = float(workers["peak"].outputs()[0][0])
        row["peak_gflops"] = flops / min(t for turn in workers["peak"].rounds for t in turn) / 1e9
