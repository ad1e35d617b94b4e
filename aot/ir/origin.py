"""Origin of a node."""

from __future__ import annotations

from aot.codegen.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Layers and file of a node; kept through every rewrite, so that errors and profiles name the user's layers."""

    layers: tuple[str, ...] = ()
    file: str = ""

    def __or__(self, other: Origin) -> Origin:
        return Origin(tuple(dict.fromkeys((*self.layers, *other.layers))), self.file or other.file)

    def __str__(self) -> str:
        return "+".join(self.layers)
