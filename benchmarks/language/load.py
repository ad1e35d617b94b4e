"""Many clients at a server of a language model for minutes, beside llama.cpp's: one table in Markdown.

`python -m benchmarks.language.load FOLDER --llama-server PATH [--clients 32] [--seconds 300] [--weights Q4_0]`

Weights and tokenizer have SmolLM2-135M's shape and are random; file and library are made in FOLDER and kept. The
servers take turns, of `--turn` seconds each, with the same requests: prompts of 16 to 512 tokens, a third of which
begin with the same 128; greedy answers of 8 to 128 tokens; one client in 20 goes before its answer ends. A client that
is refused (429) waits a second and asks again. Told are the times until the first token and between tokens, tokens a
second of all clients, processor time of the server a token of an answer, and the most memory that it took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket

import numpy as np

from benchmarks.language.peers import compiled
from benchmarks.language.random_gguf import SHAPES, write_random
from benchmarks.running.serving import number, processor_seconds

WORDS, SHARED = 40_000, 128  # tokens are below it; tokens that a third of all prompts begin with
START_SECONDS = 120
MODEL = "m"


@dataclass(frozen=True)
class Wanted:
    """A request: its prompt, and how many tokens of its answer are read, `tokens` of all."""

    prompt: list[int]
    tokens: int
    read: int


@dataclass
class Told:
    """Times, in milliseconds, and numbers of answers that clients measured at a server."""

    first: list[float] = field(default_factory=list[float])
    between: list[float] = field(default_factory=list[float])
    codes: Counter[str] = field(default_factory=Counter[str])
    answered: int = 0  # tokens of answers
    prompts: int = 0  # tokens of prompts
    seconds: float = 0.0
    processor: float = 0.0  # seconds


@dataclass
class Peer:
    """A server that runs."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    told: Told = field(default_factory=Told)
    sent: int = 0  # requests, by which each server gets the same ones


def wanted(number: int) -> Wanted:
    """Return request `number` of the series."""
    chance = random.Random(number)
    count = int(2 ** chance.uniform(4, 9))
    ids = [chance.randrange(256, WORDS) for _ in range(count)]
    if chance.random() < 1 / 3:
        ids[:SHARED] = [257 + k for k in range(min(SHARED, count - 1))]
    tokens = int(2 ** chance.uniform(3, 7))
    return Wanted(ids, tokens, chance.randrange(tokens) if chance.random() < 1 / 20 else tokens)


async def ask(peer: Peer, one: Wanted) -> None:
    """Send a request, and note when its tokens come."""
    body = {"model": MODEL, "prompt": one.prompt, "max_tokens": one.tokens, "temperature": 0, "stream": True}
    text = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(text)}"
    reader, writer = await asyncio.open_connection("127.0.0.1", peer.port)
    last, came = time.perf_counter(), 0
    try:
        writer.write(f"{head}\r\nconnection: close\r\n\r\n".encode() + text)
        code = (await reader.readline()).split()[1].decode()
        while code == "200" and came < one.read and (line := await reader.readline()):
            if b'"choices"' not in line or b'"text":""' in line:
                continue
            now = time.perf_counter()
            (peer.told.between if came else peer.told.first).append((now - last) * 1e3)
            peer.told.prompts += 0 if came else len(one.prompt)
            last, came, peer.told.answered = now, came + 1, peer.told.answered + 1
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    peer.told.codes["left" if code == "200" and came < one.tokens else code] += 1
    if code == "429":
        await asyncio.sleep(1)


async def turn(peer: Peer, clients: int, seconds: float) -> None:
    """Let clients ask for so many seconds; then they go."""
    begin, spent = time.perf_counter(), processor_seconds(peer.process.pid)

    async def client() -> None:
        while True:
            peer.sent += 1
            await ask(peer, wanted(peer.sent))

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())
    peer.told.seconds += time.perf_counter() - begin
    peer.told.processor += processor_seconds(peer.process.pid) - spent


@contextmanager
def running(name: str, command: Sequence[object], port: int) -> Iterator[Peer]:
    """A server as a process, once it answers."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_SECONDS
        while not _answers(port):
            assert process.poll() is None and time.monotonic() < end, f"{name} does not start: {command}"
            time.sleep(0.2)
        yield Peer(name, port, process)
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket() as one:
        one.connect(("127.0.0.1", port))
        one.sendall(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        return b" 200 " in one.recv(64)
    return False


def free_port() -> int:
    with socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def row(peer: Peer) -> str:
    """Return a line of the table."""
    told = peer.told
    most = number(r"VmHWM:\s+(\d+)", Path(f"/proc/{peer.process.pid}/status").read_text()) / 1e3
    first, between = (np.percentile(times, [50, 99]) for times in (told.first, told.between))
    cells = [
        f"{told.answered / told.seconds:.1f}",
        f"{told.prompts / told.seconds:.1f}",
        f"{told.processor * 1e3 / told.answered:.1f}",
        *(f"{n:.0f}" for n in (*first, *between)),
        f"{most:.0f}",
        ", ".join(f"{code}: {count}" for code, count in sorted(told.codes.items())),
    ]
    return f"| {peer.name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language.load", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--llama-server", type=Path, metavar="PATH", help="llama.cpp's; left out: ours alone")
    for option, default in (("clients", 32), ("sequences", 8), ("threads", 1), ("queue", 256), ("context", 1024)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=300, help="for each server")
    parser.add_argument("--turn", type=float, default=60)
    parser.add_argument("--weights", default="Q4_0")
    parser.add_argument("--no-prefixes", action="store_true", help="compute equal beginnings again")
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    gguf = args.folder / f"smollm2-{args.weights}-texts.gguf"
    if not gguf.exists():
        write_random(gguf, SHAPES["smollm2"], args.weights, texts=True)
    library = compiled(gguf, 2, [])
    ports = free_port(), free_port()
    ours: list[object] = [sys.executable, "-m", "aot", "serve", f"{MODEL}={library}", "--port", ports[0]]
    ours += ["--threads", args.threads, "--sequences", args.sequences, "--queue", args.queue]
    ours += ["--max-context", args.context, *(["--prefix-cache", 0] if args.no_prefixes else [])]
    theirs: list[object] = [args.llama_server, "-m", gguf, "--port", ports[1], "-t", args.threads, "-tb", args.threads]
    theirs += ["-np", args.sequences, "-c", args.sequences * args.context, "--threads-http", args.clients + 4]
    theirs += ["--no-cache-prompt"] if args.no_prefixes else []
    heads = ["answers, tokens/s", "prompts, tokens/s", "processor ms a token of an answer", "first token, ms: p50"]
    heads += ["p99", "between tokens, ms: p50", "p99", "memory, MB", "requests"]
    print("| server |", " | ".join(heads), "|\n" + "|--" * (1 + len(heads)) + "|", flush=True)
    with running("aot", ours, ports[0]) as one:
        if args.llama_server is None:
            peers = [one]
            _turns(peers, args)
        else:
            with running("llama.cpp", theirs, ports[1]) as other:
                peers = [one, other]
                _turns(peers, args)


def _turns(peers: list[Peer], args: argparse.Namespace) -> None:
    for peer in peers:
        asyncio.run(turn(peer, 2, 2))  # what is made once is made now
        peer.told = Told()
    for _ in range(max(1, round(args.seconds / args.turn))):
        for peer in peers:
            asyncio.run(turn(peer, args.clients, args.turn))
    for peer in peers:
        print(row(peer), flush=True)


if __name__ == "__main__":
    main()
