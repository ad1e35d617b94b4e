"""Types of layers, as `--precision` states them: `bf16`, or by name `bf16,stem=f32,head.*=f32`."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import UsageError

F32, BF16, F16 = "f32", "bf16", "f16"
TYPES = (F32, BF16, F16)  # in order of priority, if patterns give the layers of a step several types
AUTO = "auto"  # found by data, before a compilation


@dataclass(frozen=True, slots=True)
class Precision:
    """`default`, and the type of layers by patterns of their names; the last pattern that matches decides."""

    default: str = F32
    layers: tuple[tuple[str, str], ...] = ()

    def has(self, kind: str) -> bool:
        """True if some layers compute in that type."""
        return kind in (self.default, *(t for _, t in self.layers))

    @property
    def computes_in_f32(self) -> bool:
        """True if all layers compute in f32."""
        return all(t == F32 for t in (self.default, *(t for _, t in self.layers)))

    def of(self, names: Iterable[str]) -> str:
        """Return the type of a step made of the layers `names`: patterns first, f32 before bf16 and f16."""
        types = {next((t for p, t in reversed(self.layers) if fnmatchcase(n, p)), "") for n in names} - {""}
        return next((t for t in TYPES if t in types), self.default)

    def unused(self, names: Iterable[str]) -> list[str]:
        """Return the patterns that no layer matches."""
        known = list(names)
        return [p for p, _ in self.layers if not any(fnmatchcase(n, p) for n in known)]


def is_auto(text: str | None) -> bool:
    """True if a search by data is to choose the types."""
    return text is not None and text.split(",", maxsplit=1)[0].strip() == AUTO


def without_auto(text: str | None) -> str | None:
    """Return the text with f32 in place of `auto`."""
    return text.replace(AUTO, F32, 1) if text is not None and is_auto(text) else text


def precision_of(text: str | None) -> Precision:
    """Read `TYPE` or `TYPE,PATTERN=TYPE,..`; patterns are shell patterns. UsageError for other texts.

    None is f32: a type that the weights imply has been chosen before.
    """
    if text is None:
        return Precision()
    default, *rest = (part.strip() for part in text.split(","))
    if is_auto(default):
        raise UsageError("precision: auto needs data: --data x.npz, or aot.find_precision(model, data) before")
    if "=" in default:
        default, rest = F32, [default, *rest]
    layers: list[tuple[str, str]] = []
    for part in rest:
        pattern, _, kind = part.rpartition("=")
        if not pattern or kind not in TYPES:
            raise UsageError(f"precision: a layer's is PATTERN={'|'.join(TYPES)}, got {part!r}")
        layers.append((pattern, kind))
    if default not in TYPES:
        raise UsageError(f"precision: one of {', '.join(TYPES)}, then PATTERN=TYPE for layers, got {text!r}")
    return Precision(default, tuple(layers))
