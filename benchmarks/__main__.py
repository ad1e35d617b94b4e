"""`python -m benchmarks MODELS... [--threads 1,2] [--rounds N] [--json out.json] [--plot out.svg]`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

from benchmarks.compilation.compiling import compile_apart
from benchmarks.networks.flops import gflop
from benchmarks.networks.folder import Folder
from benchmarks.timing.measure import measure
from benchmarks.timing.report import REPORT_VERSION, Row, machine, markdown, number


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, help="folders with model.xml, model.bin, in_*.npy")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas between")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--table", type=Path, help="write the table there too")
    parser.add_argument("--plot", type=Path, help="draw the ratios there (.svg or .png)")
    parser.add_argument("--libraries", type=Path, help="keep the compiled models there; those found there are used")
    parser.add_argument("--target", default="native", help="what ours is compiled for; peers take what there is")
    parser.add_argument("--precision", default="f32", help="what ours computes in; peers are told to use f32")
    parser.add_argument("--fast-math", action="store_true", help="ours uses the fastest sums of bf16")
    parser.add_argument("--as-installed", action="store_true", help="peers keep their defaults; errors are reported")
    return parser.parse_args(given)


def run(given: list[str] | None = None) -> int:
    """The exit code: 1 if anything failed."""
    args = arguments(given)
    cores = sorted(os.sched_getaffinity(0))
    threads = [int(n) for n in args.threads.split(",")]
    if max(threads) > len(cores):
        print(f"threads: at most {len(cores)}, the cores of this process, got {max(threads)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    facts = machine()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        libraries: Path = args.libraries or scratch
        libraries.mkdir(parents=True, exist_ok=True)
        folders = [Folder(path) for path in args.models]
        for folder in folders:
            folder.check()  # all of them, before anything is measured
        for folder in folders:
            rows += rows_of(folder, libraries, threads, cores, scratch, args)
    text = markdown(rows, args.as_installed)
    print(text)
    if args.table:
        args.table.write_text(text)
    if args.json:
        command = shlex.join(["python", "-m", "benchmarks", *(sys.argv[1:] if given is None else given)])
        report = {"version": REPORT_VERSION, "command": command, "machine": facts, "rows": rows}
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    if args.plot:
        from benchmarks.timing.plot import draw  # noqa: PLC0415  (matplotlib is needed for this only)

        draw(rows, args.plot)
    return 1 if any("failed" in row for row in rows) else 0


def rows_of(
    folder: Folder, libraries: Path, threads: list[int], cores: list[int], scratch: Path, args: argparse.Namespace
) -> list[Row]:
    """Compile once, then measure at each number of threads."""
    library: Path | None = libraries / f"{folder.name}.so"
    compiled: Row = {"weights_mb": folder.xml.with_suffix(".bin").stat().st_size / 1e6}
    failed: list[str] = []
    try:
        if library.exists():
            compiled |= {"so_mb": library.stat().st_size / 1e6}
        else:
            made = compile_apart(folder.xml, library, args.target, args.precision, fast_math=args.fast_math)
            compiled |= {
                "compile_s": made["compile_s"],
                "compile_rss_mb": number(made, "compile_rss") / 1e6,
                "so_mb": number(made, "so_bytes") / 1e6,
            }
    except RuntimeError as error:
        failed.append(f"ours: {error}")
        library = None
    work = gflop(folder.xml, {name: array.shape for name, array in folder.inputs().items()})
    rows: list[Row] = []
    for count in threads:
        row = measure(folder, library, count, cores, args.rounds, scratch, args.as_installed) | {"gflop": work}
        if "ours_min_ms" in row:
            row["gflops"] = work / number(row, "ours_min_ms") * 1e3
            row["percent_of_peak"] = 100 * number(row, "gflops") / number(row, "peak_gflops")
        if failed:
            row["failed"] = [*failed, *([str(e) for e in row.get("failed", [])])]  # type: ignore[attr-defined]
        rows.append(row | (compiled if count == threads[0] else {}))
        print(progress(rows[-1]), file=sys.stderr, flush=True)
    return rows


def progress(row: Row) -> str:
    times = " ".join(f"{e} {number(row, e + '_min_ms'):.3g}" for e in ("ours", "openvino", "onnxruntime"))
    rate = f"{number(row, 'ratio'):.2f} ({number(row, 'ratio_p10'):.2f}..{number(row, 'ratio_p90'):.2f})"
    percent = f"{number(row, 'percent_of_peak'):.0f} % of {number(row, 'peak_gflops'):.0f} GFLOP/s"
    cpu = f", by CPU time {number(row, 'cpu_ratio'):.2f}" if "cpu_ratio" in row else ""
    return f"{row['model']!s:16} {row['threads']}T  {times} ms  ratio {rate}{cpu}  {percent} {row.get('failed', '')}"


if __name__ == "__main__":
    sys.exit(run())
