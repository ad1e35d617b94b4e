"""The two files of a network of Caffe, which have one name, or of which each is the only one of its kind in the folder.

Importing this needs no package of the reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TEXT, WEIGHTS = ".prototxt", ".caffemodel"


def network_and_weights(path: Path, other: Path | None = None) -> tuple[Path | None, Path | None]:
    """Return the text and the weights of the network in a file of either kind, None for one that is missing.

    `other`: the file of the other kind; None: the one beside it.
    """
    text, weights = (path, other) if path.suffix == TEXT else (other, path)
    return text or _beside(path, TEXT, ("deploy",)), weights or _beside(path, WEIGHTS, ())


def _beside(path: Path, suffix: str, names: Sequence[str]) -> Path | None:
    """Return the file of the other kind: with the same name, with one of `names`, or the only one; None without it."""
    same = [path.with_suffix(suffix), *(path.with_name(name + suffix) for name in names)]
    beside = next((p for p in same if p.is_file()), None)
    alone = sorted(path.parent.glob(f"*{suffix}")) if beside is None else []
    return alone[0] if len(alone) == 1 else beside
