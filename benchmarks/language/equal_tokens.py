"""Counts logits that depend on how tokens are given.

`python -m benchmarks.language.equal_tokens m.so [--tokens 10000]`

Random tokens in sequences of `--length` are given one by one with one thread; then in chunks, with several threads and
as rows of a batch. Prints of each way how many tokens have other logits than one by one, to the bit.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from hashlib import blake2b
from itertools import cycle
from pathlib import Path

import numpy as np

from aot.runtime import CompiledModel, load
from aot.runtime.arrays.tensors import Array

WAYS = [  # threads, chunks that take turns, rows of a batch
    (1, (1,), 1),
    (1, (7, 1, 30), 1),
    (2, (1,), 1),
    (2, (64, 3), 1),
    (3, (128, 1, 17), 1),
    (2, (256,), 1),
    (2, (5, 100), 4),
    (2, (1,), 8),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language.equal_tokens", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=10_000, help="tokens of all sequences together")
    parser.add_argument("--length", type=int, default=500, help="tokens of a sequence")
    args = parser.parse_args()
    words = load(args.model, threads=1).outputs[0].shape[-1]
    if not isinstance(words, int):
        parser.error(f"the last dimension of the logits must be the number of words, got {words}")
    shape = (max(1, args.tokens // args.length), args.length)
    ids = np.random.default_rng(0).integers(0, words, shape)
    wanted = None
    for threads, chunks, rows in WAYS:
        model = load(args.model, threads=threads)
        found = [h for at in range(0, len(ids), rows) for h in digests(model, ids[at : at + rows], chunks)]
        wanted = wanted or found
        wrong = sum(a != b for a, b in zip(found, wanted, strict=True))
        ways = f"{threads} threads, chunks of {', '.join(map(str, chunks))}, {rows} rows"
        print(f"{ways}: {wrong} of {len(found)} tokens differ", flush=True)


def digests(model: CompiledModel, ids: Array, chunks: tuple[int, ...]) -> list[bytes]:
    """Return a digest of the logits of each token of `ids` [rows, tokens], row by row."""
    request, names, past = model.create_infer_request(), {t.name for t in model.inputs}, 0
    found: list[list[bytes]] = [[] for _ in ids]
    for count in parts(ids.shape[1], chunks):
        feed = {
            "input_ids": ids[:, past : past + count],
            "attention_mask": np.ones((len(ids), past + count), np.int64),
            "position_ids": np.tile(np.arange(past, past + count), (len(ids), 1)),
            "beam_idx": np.arange(len(ids), dtype=np.int32),
        }
        logits = request.infer({name: a for name, a in feed.items() if name in names})[0]
        for row, tokens in zip(found, logits, strict=True):
            row += [blake2b(token.tobytes(), digest_size=16).digest() for token in tokens]
        past += count
    return [h for row in found for h in row]


def parts(length: int, chunks: tuple[int, ...]) -> Iterator[int]:
    """Yield chunks, in turns, until there are `length` tokens."""
    for count in cycle(chunks):
        yield min(count, length)
        length -= count
        if length <= 0:
            return


if __name__ == "__main__":
    main()
