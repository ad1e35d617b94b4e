"""Times one runtime's decoder, asked by lines of JSON: a program of its own, for the environment of that runtime.

python peer.py aot m.so ROWS          python peer.py llama.cpp m.gguf ROWS
{"prompt": 128, "tokens": 8}    ->    {"prompt": [seconds, seconds of processor], "tokens": [[…], …]}

Each of `ROWS` sequences is fed a prompt, then a token of each at a time.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Protocol

CONTEXT, BATCH = 1280, 512  # tokens of a sequence, and of a prompt that llama.cpp computes at once (its default)
WORDS = 40_000  # tokens are below it


class Decoder(Protocol):
    def feed(self, count: int) -> None:
        """Begin anew, and feed each sequence a prompt."""

    def step(self) -> None:
        """Append a token to each sequence, and compute the logits behind it."""


class Aot:
    """Our library, by the classes that a user has."""

    def __init__(self, path: str, rows: int) -> None:
        self.runtime: Any = import_module("aot.runtime")
        self.model, self.rows = self.runtime.load(path, threads=1), rows
        self.generators = [self.runtime.Generator(self.model) for _ in range(rows)]
        self.batch: Any = None

    def feed(self, count: int) -> None:
        self.batch = None if self.rows == 1 else self.runtime.Batch(self.model)
        for n, generator in enumerate(self.generators):
            generator.reset()
            generator.feed([(7 * k + n) % WORDS for k in range(count)])
            if self.batch is not None:
                self.batch.add(generator)

    def step(self) -> None:
        if self.batch is None:
            self.generators[0].feed([11])
        else:
            self.batch.step([11] * self.rows)


class LlamaCpp:
    """llama.cpp by its own functions, as installed: its defaults but for the number of threads."""

    def __init__(self, path: str, rows: int) -> None:
        self.api: Any = import_module("llama_cpp")
        api = self.api
        self.log = api.llama_log_callback(lambda *_: None)
        api.llama_log_set(self.log, None)
        api.llama_backend_init()
        self.model = api.llama_model_load_from_file(path.encode(), api.llama_model_default_params())
        settings = api.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = rows * CONTEXT, BATCH, BATCH
        settings.n_threads = settings.n_threads_batch = 1
        settings.n_seq_max, self.rows, self.past = rows, rows, 0
        self.context = api.llama_init_from_model(self.model, settings)
        self.tokens = api.llama_batch_init(BATCH, 0, 1)

    def feed(self, count: int) -> None:
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        every = [(7 * k + n, k, n, k == count - 1) for n in range(self.rows) for k in range(count)]
        for at in range(0, len(every), BATCH):
            self.decode(every[at : at + BATCH])
        self.past = count

    def step(self) -> None:
        self.decode([(11, self.past, n, True) for n in range(self.rows)])
        self.past += 1

    def decode(self, tokens: list[tuple[int, int, int, bool]]) -> None:
        batch = self.tokens
        batch.n_tokens = len(tokens)
        for i, (token, place, row, asked) in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token % WORDS, place, 1
            batch.seq_id[i][0], batch.logits[i] = row, asked
        if self.api.llama_decode(self.context, batch):
            raise RuntimeError("llama_decode")
        ctypes.cast(self.api.llama_get_logits_ith(self.context, -1), ctypes.c_void_p)


KINDS: dict[str, Callable[[str, int], Decoder]] = {"aot": Aot, "llama.cpp": LlamaCpp}


def timed(call: Callable[[], None]) -> tuple[float, float]:
    begin = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


def main() -> None:
    kind, path, rows = sys.argv[1:]
    decoder = KINDS[kind](path, int(rows))
    for line in sys.stdin:
        asked = json.loads(line)
        prompt = timed(partial(decoder.feed, asked["prompt"]))
        found = {"prompt": prompt, "tokens": [timed(decoder.step) for _ in range(asked["tokens"])]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
