"""The store of kernels, code and facts: in the user's cache folder, unless an option or the environment has another."""

from __future__ import annotations

import os
from pathlib import Path

from aot.codegen.llvm.object.store import Store
from aot.runtime.describe import size_text

VARIABLE = "AOT_KERNEL_CACHE"  # a folder, or `off`
OFF = "off"


def kernel_store(requested: Path | None = None) -> Store | None:
    """Return the store in the folder `requested`, else `$AOT_KERNEL_CACHE`, else the user's; None if it is `off`.

    It changes no byte of a library, so it is the one setting of a compilation that the environment has.
    """
    setting = str(requested or os.environ.get(VARIABLE, ""))
    folder = user_folder() if not setting else None if setting == OFF else Path(setting)
    return None if folder is None else Store(folder)


def user_folder() -> Path | None:
    """Return `$XDG_CACHE_HOME/aot/kernels` or `~/.cache/aot/kernels`; None for a user without a home."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = cache if cache.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "aot" / "kernels"


def looked_after(action: str, most_bytes: int | None = None, most_days: float | None = None) -> str:
    """Return a line about the store after an action: `ls`, `verify`, which removes damaged entries, or `gc`."""
    store = kernel_store()
    if store is None:
        return f"kernels: none are kept ({VARIABLE}={OFF})"
    done = ""
    if action == "verify":
        done = f"; {len(store.damaged())} were damaged and are removed"
    elif action == "gc":
        done = f"; {len(store.shrink(most_bytes, most_days))} are removed"
    entries = store.entries()
    return f"{store.folder}: {len(entries)} entries, {size_text(sum(entry.bytes for entry in entries))}{done}"
