"""Archives of arrays, .npz: an open one holds its file until it is collected, and a later test is blamed for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def arrays_of(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return all arrays of an archive, which is closed again."""
    with np.load(path) as found:
        return dict(found)
