"""Times one runtime's decoder, asked by lines of JSON: a program of its own, for the environment of that runtime.

python peer.py aot m.so ROWS CONTEXT       python peer.py llama.cpp m.gguf ROWS CONTEXT
{"prompt": 128, "tokens": 8}    ->    {"prompt": [seconds, seconds of processor], "tokens": [[…], …]}

Each of `ROWS` sequences, of at most `CONTEXT` tokens, is fed a prompt, then a token of each at a time. `ik_llama.cpp`
is the fork of that name, `ik_repacked` it with weights repacked while they are loaded, `openvino` the plug-in for
processors, with m.xml.
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

import numpy as np
from numpy.typing import NDArray

BATCH = 512  # tokens of a prompt that llama.cpp computes at once (its default)
WORDS = 40_000  # tokens are below it


class Decoder(Protocol):
    def feed(self, count: int) -> None:
        """Begin anew, and feed each sequence a prompt."""

    def step(self) -> None:
        """Append a token to each sequence, and compute the logits behind it."""


class Aot:
    """Our library, by the classes that a user has."""

    def __init__(self, path: str, rows: int, context: int) -> None:
        del context
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
    """llama.cpp or its fork by their own functions, as installed: their defaults but for the number of threads."""

    def __init__(self, path: str, rows: int, context: int, *, fork: bool = False, repacked: bool = False) -> None:
        self.api: Any = import_module("ik_llama_cpp._ctypes_api" if fork else "llama_cpp")
        api = self.api
        if not fork:
            self.log = api.llama_log_callback(lambda *_: None)
            api.llama_log_set(self.log, None)
        api.llama_backend_init()
        loading = api.llama_model_default_params()
        if repacked:
            loading.repack_tensors, loading.use_mmap = True, False
        self.model, self.fork = api.llama_model_load_from_file(path.encode(), loading), fork
        settings = api.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = rows * context, BATCH, BATCH
        settings.n_threads = settings.n_threads_batch = 1
        settings.n_seq_max, self.rows, self.past = rows, rows, 0
        self.context = api.llama_init_from_model(self.model, settings)
        self.tokens = api.llama_batch_init(BATCH, 0, 1)

    def feed(self, count: int) -> None:
        if self.fork:
            self.api.llama_kv_cache_clear(self.context)
        else:
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


class OpenVino:
    """OpenVINO's plug-in as installed: its defaults but for the number of threads."""

    def __init__(self, path: str, rows: int, context: int) -> None:
        del context
        core: Any = import_module("openvino").Core()
        self.request = core.compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
        self.rows, self.past = rows, 0

    def feed(self, count: int) -> None:
        self.request.reset_state()
        self.past = 0
        self.decode(np.array([[(7 * k + n) % WORDS for k in range(count)] for n in range(self.rows)]))

    def step(self) -> None:
        self.decode(np.full((self.rows, 1), 11))

    def decode(self, ids: NDArray[np.int64]) -> None:
        begin, self.past = self.past, self.past + ids.shape[1]
        places = np.tile(np.arange(begin, self.past), (self.rows, 1))
        given = {"input_ids": ids, "position_ids": places, "beam_idx": np.arange(self.rows, dtype=np.int32)}
        self.request.infer(given | {"attention_mask": np.ones((self.rows, self.past), np.int64)})


KINDS: dict[str, Callable[[str, int, int], Decoder]] = {
    "aot": Aot,
    "llama.cpp": LlamaCpp,
    "ik_llama.cpp": partial(LlamaCpp, fork=True),
    "ik_repacked": partial(LlamaCpp, fork=True, repacked=True),
    "openvino": OpenVino,
}


def timed(call: Callable[[], None]) -> tuple[float, float]:
    begin = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


def main() -> None:
    kind, path, rows, context = sys.argv[1:]
    decoder = KINDS[kind](path, int(rows), int(context))
    for line in sys.stdin:
        asked = json.loads(line)
        prompt = timed(partial(decoder.feed, asked["prompt"]))
        found = {"prompt": prompt, "tokens": [timed(decoder.step) for _ in range(asked["tokens"])]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
