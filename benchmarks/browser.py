"""ONNX files as WebAssembly against onnxruntime-web, in Node.js: `python -m benchmarks.browser PEER MODEL.onnx...`.

PEER is the folder of its package: `npm install onnxruntime-web` makes node_modules/onnxruntime-web. Each network gets a
process, in which modules for `wasm`, for `wasm-relaxed` and the peer run in turn on the same inputs. Times are least
ones: of the processor with one thread, by the clock with more. Loading is that of files in memory, to the end of the
first run. `--libraries FOLDER` keeps what is compiled, and takes what is there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aot.codegen.llvm.callers import loader_files
from aot.runtime.arrays.tensors import numpy_dtype
from aot.runtime.loading.library import read_manifest
from aot.runtime.loading.manifest import TensorInfo
from benchmarks.compilation.compiling import compile_apart

PROGRAM = Path(__file__).with_suffix(".mjs")
TARGETS = ("wasm", "wasm-relaxed")
Row = dict[str, Any]


def values(info: TensorInfo, size: int) -> np.ndarray[Any, Any]:
    """Return noise, small whole numbers, or ones for a mask. `size`: of dimensions that vary, but the first."""
    shape = [n if isinstance(n, int) else size if k else 1 for k, n in enumerate(info.shape)]
    dice, dtype = np.random.default_rng(0), numpy_dtype(info)
    if dtype.kind == "f":
        return dice.standard_normal(shape).astype(dtype)
    return (np.ones(shape) if "mask" in info.name else dice.integers(0, 100, shape)).astype(dtype)


def measure(model: Path, peer: Path, folder: Path, threads: int, rounds: int, size: int) -> Row:
    """Return a row of figures about a network; AssertionError where results of the runtimes differ."""
    suffix = "-threads" if threads > 1 else ""
    modules = {target: folder / f"{model.stem}.{target}{suffix}.wasm" for target in TARGETS}
    for target, module in modules.items():
        if not module.exists():
            compile_apart(model, module, target=target + suffix)
    for path, text in loader_files(folder / "model.mjs").items():
        path.write_text(text, encoding="utf-8")
    inputs: list[Row] = []
    for k, info in enumerate(read_manifest(modules["wasm"]).inputs):
        array = values(info, size)
        (folder / f"{model.stem}.in{k}").write_bytes(array.tobytes())
        kind = info.dtype.name.lower()
        inputs.append({"name": info.name, "dtype": kind, "shape": array.shape, "file": f"{model.stem}.in{k}"})
    job: Row = {"model": str(model.resolve()), "peer": str(peer.resolve()), "threads": threads, "rounds": rounds}
    job |= {"folder": str(folder.resolve()), "inputs": inputs, "modules": {t: m.name for t, m in modules.items()}}
    command = ["node", "--experimental-wasm-relaxed-simd", str(PROGRAM), json.dumps(job)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"{model}: {ran.stderr[-2000:]}")
    return {"name": model.stem, **json.loads(ran.stdout.splitlines()[-1])}


def printed(rows: Sequence[Row]) -> str:
    """Return the table of networks, with geometric means."""
    lines = ["| network | `wasm` | `wasm-relaxed` | onnxruntime-web | times as fast | loading, first run | differ by |"]
    lines.append("|--|--|--|--|--|--|--|")
    for row in rows:
        *ours, other = (row["times"][name] for name in (*TARGETS, "peer"))
        ratios = ", ".join(f"{other / time:.2f}" for time in ours)
        loads = f"{row['loads']['wasm']:.0f}, there {row['loads']['peer']:.0f}"
        cells = [row["name"], *(f"{t:.3g}" for t in (*ours, other)), ratios, loads, f"{row['error']:.0e}"]
        lines.append(f"| {' | '.join(cells)} |")
    means = (statistics.geometric_mean(r["times"]["peer"] / r["times"][t] for r in rows) for t in TARGETS)
    return "\n".join([*lines, "", f"geometric mean: {', '.join(f'{mean:.2f}' for mean in means)}"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.browser", description=__doc__)
    parser.add_argument("peer", type=Path)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--size", type=int, default=64, help="of dimensions that vary")
    parser.add_argument("--libraries", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.libraries or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows: list[Row] = []
        for model in args.models:
            rows.append(measure(model, args.peer, folder, args.threads, args.rounds, args.size))
            print(json.dumps(rows[-1]), flush=True)
    print(printed(rows))


if __name__ == "__main__":
    main()
