"""Beginnings of sequences with their keys and values, so that equal ones are computed once.

tokens  ->  blocks of BLOCK  ->  a hash of each block and of all before it  ->  keys and values of its tokens

prefixes = PrefixCache(model, 512 << 20)
kept = prefixes.begin(generator, ids)      the longest beginning that is known is copied
logits = generator.feed(ids[kept:])        the same bits as of all tokens
prefixes.keep(generator)
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path

import numpy as np

from aot.runtime.arrays.tensors import Array, numpy_dtype
from aot.runtime.generation.generator import Generator
from aot.runtime.loading.manifest import VariableInfo
from aot.runtime.model import CompiledModel
from aot.text.prefix_files import PrefixFiles

ON_DISK = 8
BLOCK = 32  # tokens: copying them takes a hundredth of the time of computing them
_HASH_BYTES = 16


class PrefixCache:
    """Blocks of one model's sequences, those that were used last, within a number of bytes; for any number of threads.

    Logits of a token do not depend on how the tokens before it were given, so a sequence that begins with kept blocks
    goes on with the same bits. Nothing is kept of a model with a variable that does not grow in place, token by token.
    """

    def __init__(self, model: CompiledModel, most: int, folder: Path | None = None) -> None:
        """`most`: bytes of all blocks; `folder`: keeps `ON_DISK` times as many. UsageError for no folder."""
        infos = model.manifest.variables
        self._axes = [info.cache.axis for info in infos if info.cache is not None]
        self._most, self._bytes = most if len(self._axes) == len(infos) else 0, 0
        self._files: PrefixFiles | None = None
        if folder is not None and self._most:
            empty = [_empty(info, axis) for info, axis in zip(infos, self._axes, strict=True)]
            self._files = PrefixFiles(folder, model.manifest.tag, empty, ON_DISK * most)
        self._blocks: OrderedDict[bytes, tuple[Array, ...]] = OrderedDict()  # those that were used last come last
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks."""
        return self._bytes

    def begin(self, generator: Generator, ids: Sequence[int], adapter: bytes = b"") -> int:
        """Replace a generator's tokens by the longest known beginning of `ids`, and return its number of tokens.

        `adapter`: a digest of the generator's; keys and values of others differ.
        One token at least is left to feed, whose logits are needed.
        """
        keys = list(_hashes(ids[:-1], adapter))
        self._remember(keys)
        with self._lock:
            known = list(takewhile(self._blocks.__contains__, keys))
            blocks = [self._blocks[key] for key in known]
            self._touch(known)
        count = len(known) * BLOCK
        if blocks:
            parts = zip(zip(*blocks, strict=True), self._axes, strict=True)
            generator.replace(ids[:count], [np.concatenate(arrays, axis) for arrays, axis in parts])
        return count

    def keep(self, generator: Generator, adapter: bytes = b"") -> None:
        """Keep the whole blocks of a generator's tokens, as many of the first ones as there is room for."""
        keys = list(_hashes(generator.tokens, adapter)) if self._most else []
        if not keys:
            return
        states = generator.request.query_state()
        size = sum(state.part(0, BLOCK).nbytes for state in states)
        keys = keys[: self._most // size]
        with self._lock:
            new = [n for n, key in enumerate(keys) if key not in self._blocks]
        blocks = {keys[n]: tuple(state.part(n * BLOCK, (n + 1) * BLOCK) for state in states) for n in new}
        self._add(blocks, keys)
        if self._files is not None:
            for key, block in blocks.items():
                self._files.write(key, block)

    def _remember(self, keys: Sequence[bytes]) -> None:
        """Read the blocks of a beginning that only the folder has."""
        if self._files is None:
            return
        blocks: dict[bytes, tuple[Array, ...]] = {}
        for key in keys:
            with self._lock:
                if key in self._blocks:
                    continue
            block = self._files.read(key)
            if block is None:
                break
            blocks[key] = block
        self._add(blocks, keys)

    def _add(self, blocks: dict[bytes, tuple[Array, ...]], keys: Sequence[bytes]) -> None:
        """Add blocks; the blocks of `keys`, of one sequence, are evicted last if there is no room."""
        with self._lock:
            for key in blocks.keys() - self._blocks.keys():
                self._bytes += sum(part.nbytes for part in blocks[key])
            self._blocks |= blocks
            self._touch([key for key in keys if key in self._blocks])
            while self._bytes > self._most:
                self._bytes -= sum(part.nbytes for part in self._blocks.popitem(last=False)[1])

    def _touch(self, keys: Sequence[bytes]) -> None:
        """Make blocks of one sequence the last ones: its end, of no use without its beginning, goes before that."""
        for key in reversed(keys):
            self._blocks.move_to_end(key)


def _empty(info: VariableInfo, axis: int) -> Array:
    """Return an array of the shape and the type of a variable's part of a block."""
    sizes = [n if isinstance(n, int) else 1 for n in info.tensor.shape]
    sizes[axis] = BLOCK
    return np.empty(sizes, numpy_dtype(info.tensor))


def _hashes(ids: Sequence[int], adapter: bytes) -> Iterator[bytes]:
    """Yield the hash of each whole block and all tokens before it."""
    digest = adapter
    for at in range(0, len(ids) // BLOCK * BLOCK, BLOCK):
        digest = blake2b(digest + np.array(ids[at : at + BLOCK], np.int64).tobytes(), digest_size=_HASH_BYTES).digest()
        yield digest
