"""Tokens per second of `aot serve` for several clients at once.

`python -m benchmarks.language.streams m.so [--streams 1,2,4,8] [--tokens 64] [--threads 2]`

Each client asks for one completion of `--tokens` tokens, greedy, behind a prompt of its own length; all begin together.
Prints the tokens of all per second, prompts included, and whether each answer is the one that it gets alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from socket import socket

import httpx

READY_SECONDS, ANSWER_SECONDS = 60, 300


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language.streams", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--streams", default="1,2,4,8", help="clients at once")
    parser.add_argument("--tokens", type=int, default=64, help="of each answer, if no stop token comes")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    counts = [int(n) for n in args.streams.split(",")]
    with served(args.model, args.threads, max(counts)) as url:
        alone = [asked(url, args.model.stem, n, args.tokens) for n in range(max(counts))]
        for count in counts:
            begin = time.perf_counter()
            with ThreadPoolExecutor(count) as clients:
                found = list(clients.map(lambda n: asked(url, args.model.stem, n, args.tokens), range(count)))
            seconds = time.perf_counter() - begin
            tokens = sum(n for _, n in found)
            equal = "equal" if found == alone[:count] else "OTHER"
            print(f"{count} streams: {tokens / seconds:.1f} tokens/s, {equal} answers", flush=True)


@contextmanager
def served(model: Path, threads: int, sequences: int) -> Iterator[str]:
    """A server of the model until the block ends; gives the address of its API."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", port, "--threads", threads, "--sequences", sequences]
    server = subprocess.Popen([sys.executable, "-m", "aot", "serve", str(model), *map(str, options)])
    url = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(10 * READY_SECONDS):
            try:
                httpx.get(f"{url}/models")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


def asked(url: str, model: str, number: int, tokens: int) -> tuple[str, int]:
    """Return the text of an answer and its number of tokens."""
    prompt = "Once upon a time there was a king" + ", and a queen" * number
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
    found = httpx.post(f"{url}/completions", json=body, timeout=ANSWER_SECONDS).raise_for_status().json()
    return found["choices"][0]["text"], found["usage"]["completion_tokens"]


if __name__ == "__main__":
    main()
