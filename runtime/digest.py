"""SHA-256, whose library is loaded with the first model: it takes a third of the time of `import runtime`."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol


class Digest(Protocol):
    """A hash in the making."""

    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...


def sha256(data: bytes = b"") -> Digest:
    """As `hashlib.sha256`."""
    return import_module("hashlib").sha256(data)
