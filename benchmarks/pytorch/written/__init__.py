"""Networks written in a few lines of PyTorch, of the kinds that no package has in a small variant."""

from __future__ import annotations

from benchmarks.pytorch.network import Network
from benchmarks.pytorch.written import generation, pictures, points, sequences, sound, tables


def networks() -> list[Network]:
    """All of them."""
    return [network for kind in (tables, points, sequences, sound, pictures, generation) for network in kind.networks()]
