"""Times decoders of known shapes with random weights beside llama.cpp: one run, one table in Markdown.

`python -m benchmarks.language.peers FOLDER --llama PYTHON [--shapes smollm2] [--weights Q4_0,Q8_0] [--rows 1,4]`

`PYTHON` is the interpreter of an environment with llama-cpp-python. Files and libraries are made in FOLDER and kept.
The runtimes take turns, with one thread each. A cell is milliseconds of processor time, ours and theirs, medians over
all turns, and how many times faster we are. A prompt is that of all rows; a token is one of each row.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.language.random_gguf import SHAPES, write_random

TOKENS = 8  # behind each prompt, in each turn
PROGRAM = Path(__file__).with_name("peer.py")
Times = dict[str, list[float]]  # milliseconds of prompts and of tokens


class Peer:
    """A process that times one runtime."""

    def __init__(self, python: str, kind: str, path: Path, rows: int) -> None:
        command = [python, str(PROGRAM), kind, str(path), str(rows)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, prompt: int, times: Times) -> None:
        """Add the times of a turn."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps({"prompt": prompt, "tokens": TOKENS}), file=self.process.stdin, flush=True)
        found = json.loads(self.process.stdout.readline())
        times["prompt"].append(found["prompt"][1] * 1e3)
        times["token"] += [processor * 1e3 for _, processor in found["tokens"]]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language.peers", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--llama", required=True, metavar="PYTHON")
    parser.add_argument("--shapes", default="smollm2,qwen3")
    parser.add_argument("--weights", default="Q4_0,Q4_K,Q8_0,BF16")
    parser.add_argument("--prompts", default="8,128,512", help="tokens of a prompt; 8 is for tokens at the begin")
    parser.add_argument("--rows", default="1,4", help="sequences at once")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--options", default="", help="more options of aot compile")
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    prompts = [int(n) for n in args.prompts.split(",")]
    heads = [f"{name} {n}" for n in prompts for name in ("prompt of", "token behind")]
    print("| shape, weights, rows |", " | ".join(heads), "|", flush=True)
    print("|--" * (1 + len(heads)) + "|", flush=True)
    for shape in args.shapes.split(","):
        for kind in args.weights.split(","):
            gguf = args.folder / f"{shape}-{kind}.gguf"
            if not gguf.exists():
                write_random(gguf, SHAPES[shape], kind)
            for rows in map(int, args.rows.split(",")):
                library = compiled(gguf, rows, args.options.split())
                cells = beside(gguf, library, args.llama, rows, prompts, args.turns)
                print(f"| {shape}, {kind}, {rows} |", " | ".join(cells), "|", flush=True)


def compiled(gguf: Path, rows: int, options: list[str]) -> Path:
    """Compile a file, unless that was done before."""
    more = [*options, *(["--row-lengths"] if rows > 1 else [])]
    library = gguf.with_name("".join([gguf.stem, *more, ".so"]))
    if not library.exists():
        command = [sys.executable, "-m", "aot", "compile", str(gguf), "-o", str(library), "--quiet", *more]
        subprocess.run(command, check=True)
    return library


def beside(gguf: Path, library: Path, python: str, rows: int, prompts: list[int], turns: int) -> list[str]:
    """Return the cells of a row of the table."""
    peers = [Peer(sys.executable, "aot", library, rows), Peer(python, "llama.cpp", gguf, rows)]
    try:
        cells: list[str] = []
        for prompt in prompts:
            found: list[Times] = [{"prompt": [], "token": []} for _ in peers]
            for turn in range(turns + 1):
                for peer, times in zip(peers, found, strict=True):
                    peer.ask(prompt, times if turn else {"prompt": [], "token": []})
            for name in ("prompt", "token"):
                ours, theirs = (median(times[name]) for times in found)
                cells.append(f"{ours:.1f}, {theirs:.1f}: {theirs / ours:.2f}")
        return cells
    finally:
        for peer in peers:
            peer.end()


if __name__ == "__main__":
    main()
