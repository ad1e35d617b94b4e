"""Prints the instructions of an inference, ours and a peer's: `python -m benchmarks.instructions MODEL...`.

It needs qemu-aarch64 with plugins (the package qemu-user; not qemu-user-static), a compiler of C, and a folder with
Python for AArch64, whose `lib`, `usr`, and `proc/cpuinfo` the emulator shows to it; packages beside that Python are
unpacked wheels of NumPy, ONNX Runtime and LiteRT. Libraries of llama.cpp come with @node-llama-cpp/linux-arm64, of npm,
and run what `benchmarks.instructions.decoder` writes, a prompt of 128 tokens, then a token.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.runtime.arrays.tensors import numpy_dtype
from aot.runtime.loading.library import read_manifest

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
PEERS = {".onnx": "onnxruntime", ".tflite": "litert", ".gguf": "llama.cpp"}
PROMPT = 128  # tokens


def plugin(folder: Path) -> Path:
    """Return the compiled plugin, in `folder`."""
    made = folder / "count.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", HERE / "count.c", "-o", made], check=True)
    return made


def counted(text: str) -> list[int]:
    """Return the instructions between counts in what a run has written."""
    return [after - before for before, after in pairwise(map(int, re.findall(r"^executed (\d+)$", text, re.M)))]


def inputs_of(model: Path, library: Path) -> dict[str, NDArray[np.generic]]:
    """Return random inputs, or the tokens of a prompt with the number of words."""
    dice, manifest = np.random.default_rng(0), read_manifest(library)
    if model.suffix != ".gguf":
        shapes = {x.name: [n for n in x.shape if isinstance(n, int)] for x in manifest.inputs}
        return {x.name: dice.uniform(0, 1, shapes[x.name]).astype(numpy_dtype(x)) for x in manifest.inputs}
    words = next(n for n in manifest.outputs[0].shape[-1:] if isinstance(n, int))
    return {"prompt": dice.integers(0, words, PROMPT), "words": np.array(words)}


def main(given: list[str] | None = None) -> None:
    """Print a row of Markdown for each model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="ONNX or TensorFlow Lite, sizes static")
    parser.add_argument("--root", type=Path, required=True, help="folder with /lib and /usr/bin/python3.11 for AArch64")
    parser.add_argument("--packages", type=Path, required=True, help="folder with unpacked wheels for AArch64")
    parser.add_argument("--llama", type=Path, default=Path(), help="folder with libraries of llama.cpp for AArch64")
    parser.add_argument("--emulator", default="qemu-aarch64")
    parser.add_argument("--cpu", default="neoverse-n1")
    parser.add_argument("--target", default="aarch64-v8.2")
    options = parser.parse_args(given)
    print("| network | ours, millions | peer | its, millions | ours over its |\n|--|--|--|--|--|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = [options.emulator, "-cpu", options.cpu, "-plugin", str(plugin(folder)), "-L", str(options.root)]
        command += ["-E", f"PYTHONPATH={options.packages}:{PROJECT}", "-E", f"LD_LIBRARY_PATH={options.llama}"]
        command += [str(options.root / "usr/bin/python3.11")]

        def run(runtime: str, model: Path) -> list[int]:
            inside = [*command, str(HERE / "inside.py"), runtime, str(model), str(folder / "inputs.npz")]
            return counted(subprocess.run(inside, capture_output=True, text=True, check=True).stderr)

        for model in options.models:
            stages(model, CompileOptions(target=options.target)).write_library(folder / "ours.so")
            np.savez(folder / "inputs.npz", allow_pickle=False, **inputs_of(model, folder / "ours.so"))
            peer = PEERS[model.suffix]
            language = ", language" if model.suffix == ".gguf" else ""
            each = zip(run(f"ours{language}", folder / "ours.so"), run(peer, model.absolute()), strict=True)
            for step, (ours, its) in zip((", prompt", ", token") if language else ("",), each, strict=True):
                name = f"{model.parent.name}/{model.stem}{step}"
                print(f"| {name} | {ours / 1e6:.2f} | {peer} | {its / 1e6:.2f} | {ours / its:.2f} |", flush=True)


if __name__ == "__main__":
    main()
