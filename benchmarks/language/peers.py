"""Times decoders of known shapes with random weights beside other runtimes: one run, one table in Markdown.

`python -m benchmarks.language.peers FOLDER --peer llama.cpp=PYTHON [--shapes smollm2] [--weights Q4_0] [--rows 1,4]`

`PYTHON` is the interpreter of an environment that has the runtime, one of those of `benchmarks/language/peer.py`. Files
and libraries are made in FOLDER and kept. The runtimes take turns, with one thread each. A cell is milliseconds of
processor time, medians over all turns, and how many times faster we are. A prompt is that of all rows; a token is one
of each row, and its column has the share of the memory's speed at which we read weights then: a sum of 256 MB, which
takes turns with the runtimes, is all of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.language.random_gguf import SHAPES, write_random

TOKENS = 8  # behind each prompt, in each turn
PROGRAM = Path(__file__).with_name("peer.py")
Times = dict[str, list[float]]  # milliseconds of prompts and of tokens


class Peer:
    """A process that times one runtime."""

    def __init__(self, python: str, kind: str, path: Path, rows: int, context: int) -> None:
        command = [python, str(PROGRAM), kind, str(path), str(rows), str(context)]
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
    parser.add_argument("--peer", action="append", default=[], metavar="RUNTIME=PYTHON")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--weights", default="Q4_0,Q4_K,Q8_0,BF16")
    parser.add_argument("--prompts", default="8,128,512", help="tokens of a prompt; 8 is for tokens at the begin")
    parser.add_argument("--rows", default="1,4", help="sequences at once")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--options", default="", help="more options of aot compile")
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    prompts = [int(n) for n in args.prompts.split(",")]
    heads = [f"{name} {n}" for n in prompts for name in ("prompt of", "token behind")]
    print("| shape, weights, rows | |", " | ".join(heads), "|", flush=True)
    print("|--" * (2 + len(heads)) + "|", flush=True)
    others = [tuple(peer.split("=", 1)) for peer in args.peer]
    for shape in args.shapes.split(","):
        for kind in args.weights.split(","):
            gguf = args.folder / f"{shape}-{kind}.gguf"
            if not gguf.exists():
                write_random(gguf, SHAPES[shape], kind)
            for rows in map(int, args.rows.split(",")):
                library = compiled(gguf, rows, args.options.split())
                lines = beside(gguf, library, others, rows, prompts, args.turns)
                for name, cells in zip(["ours", *(kind for kind, _ in others)], lines, strict=True):
                    first = f"{shape}, {kind}, {rows}" if name == "ours" else ""
                    print(f"| {first} | {name} |", " | ".join(cells), "|", flush=True)


def compiled(gguf: Path, rows: int, options: list[str]) -> Path:
    """Compile a file, unless that was done before."""
    more = [*options, *(["--row-lengths"] if rows > 1 else [])]
    library = gguf.with_name("".join([gguf.stem, *more, ".so"]))
    if not library.exists():
        command = [sys.executable, "-m", "aot", "compile", str(gguf), "-o", str(library), "--quiet", *more]
        subprocess.run(command, check=True)
    return library


def as_graph(gguf: Path) -> Path:
    """Convert a file to OpenVINO IR, unless that was done before."""
    graph = gguf.with_suffix(".xml")
    if not graph.exists():
        subprocess.run([sys.executable, "-m", "aot", "convert", str(gguf), "-o", str(graph)], check=True)
    return graph


def beside(
    gguf: Path, library: Path, others: list[tuple[str, ...]], rows: int, prompts: list[int], turns: int
) -> list[list[str]]:
    """Return the cells of each runtime, ours first."""
    context = max(prompts) + 2 * TOKENS
    peers = [Peer(sys.executable, "aot", library, rows, context)]
    peers += [
        Peer(python, kind, as_graph(gguf) if kind == "openvino" else gguf, rows, context) for kind, python in others
    ]
    memory = np.ones(1 << 25, np.int64)
    lines: list[list[str]] = [[] for _ in peers]
    try:
        for prompt in prompts:
            found: list[Times] = [{"prompt": [], "token": []} for _ in peers]
            speeds: list[float] = []
            for turn in range(turns + 1):
                for peer, times in zip(peers, found, strict=True):
                    peer.ask(prompt, times if turn else {"prompt": [], "token": []})
                begin = time.process_time()
                memory.sum()
                speeds.append(memory.nbytes / (time.process_time() - begin))
            for name in ("prompt", "token"):
                ours, *theirs = (median(times[name]) for times in found)
                share = gguf.stat().st_size / (ours * 1e-3) / max(speeds)
                lines[0].append(f"{ours:.1f}, {share:.0%}" if name == "token" else f"{ours:.1f}")
                for line, one in zip(lines[1:], theirs, strict=True):
                    line.append(f"{one:.1f}: {one / ours:.2f}")
        return lines
    finally:
        for peer in peers:
            peer.end()


if __name__ == "__main__":
    main()
