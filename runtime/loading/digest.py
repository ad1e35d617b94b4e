"""SHA-256 without OpenSSL for small inputs: loading OpenSSL takes longer than all other steps of loading a model."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import Protocol

_PYTHON_BYTES = 1 << 20  # bytes; Python's own code takes 4 ms for them, OpenSSL 1 ms after 4 ms of loading
_PYTHON_MODULE = "_sha2" if sys.version_info >= (3, 12) else "_sha256"  # an installation may lack it


class Digest(Protocol):
    """A hash under construction."""

    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...


def sha256(size: int) -> Digest:
    """Return a hash object for `size` bytes that will be added."""
    if size <= _PYTHON_BYTES:
        with suppress(ImportError):
            return import_module(_PYTHON_MODULE).sha256()
    return import_module("hashlib").sha256()
