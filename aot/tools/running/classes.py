"""The classes that a classifier thinks likeliest, with their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aot.runtime.errors import UsageError
from aot.runtime.regular import read_file


def labels_of(path: Path | None) -> list[str]:
    """Return the names of classes, one a line; none without a file. UsageError for a file that is no text."""
    if path is None:
        return []
    try:
        return read_file(path, "labels").decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"labels: {path}: must be UTF-8, a name a line, got {error.reason}") from None


def likeliest(scores: NDArray[np.generic], count: int, labels: list[str]) -> list[str]:
    """Return a line for each of the `count` largest scores of each row: its number in the row, its name, the score.

    UsageError for strings and scalars, and for labels that are not as many as the classes.
    """
    if scores.ndim == 0 or scores.dtype.kind not in "biuf" or not scores.shape[-1]:
        raise UsageError(f"top: scores must be numbers along an axis, got {scores.dtype.name}{list(scores.shape)}")
    rows = scores.reshape(-1, scores.shape[-1])
    classes = rows.shape[1]
    if labels and len(labels) != classes:
        raise UsageError(f"labels: must be {classes}, one a class, got {len(labels)}")
    lines: list[str] = []
    for number, row in enumerate(rows):
        order = np.argsort(-row.astype(np.float64), kind="stable")[:count]
        lines += [f"row {number}"] if len(rows) > 1 else []
        lines += [f"  {k:5} {labels[k] + '  ' if labels else ''}{row[k]:.6g}" for k in order.tolist()]
    return lines
