"""Libraries of other systems whose bytes are changed or missing."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

import runtime
from aot.runtime.errors import CorruptError, PlatformError, UsageError
from aot.runtime.loading.library import read_manifest, verify

HEADERS = 0x600  # bytes, in which every second file is changed


def unharmed_of(library: Path, path: Path, count: int = 400) -> int:
    """Write `count` damaged files to `path`, one after another, and return how many of them are still verified.

    Each is read as it was, or refused with a sentence: other errors leave this function.
    """
    whole, unharmed, told = library.read_bytes(), 0, read_manifest(library).json
    for seed in range(count):
        dice = np.random.default_rng(seed)
        found = bytearray(whole)
        for _ in range(int(dice.integers(1, 6))):
            at = int(dice.integers(HEADERS if seed % 2 else len(found)))
            found[at] = int(dice.choice([0, 255, found[at] ^ 1 << int(dice.integers(8))]))
        if seed % 5 == 0:
            found = found[: int(dice.integers(len(found)))]
        path.write_bytes(found)
        for read in (partial(read_manifest, whole=True), verify, runtime.load):
            with suppress(CorruptError, PlatformError, UsageError):
                assert read(path).json == told
                unharmed += read is verify
    return unharmed
