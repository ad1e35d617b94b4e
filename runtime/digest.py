"""SHA-256 without OpenSSL where there is little to hash: loading that takes longer than all else about a model."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Protocol

_LITTLE = 1 << 20  # bytes; Python's own code takes 4 ms for them, OpenSSL 1 ms and 4 ms to load
_OWN = ("_sha2", "_sha256")  # from Python 3.12 on, and before; a Python may lack both


class Digest(Protocol):
    """A hash in the making."""

    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...


def sha256(size: int) -> Digest:
    """The hash of `size` bytes that are yet to come."""
    if size <= _LITTLE:
        for name in _OWN:
            with suppress(ImportError):
                return import_module(name).sha256()
    return import_module("hashlib").sha256()
