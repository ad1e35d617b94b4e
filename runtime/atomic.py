"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A new, empty file beside `path` that takes its name in the end; after an exception it is gone.

    A process that is killed leaves at most a hidden file `.NAME.*`, never half of `path`.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    made = Path(name)
    try:
        yield made
        umask = os.umask(0)
        os.umask(umask)
        made.chmod(0o777 & ~umask if path.suffix == ".so" else 0o666 & ~umask)
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
