"""`aot cache`: entries of a cache of compiled models or kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import Exit, argument, echo, option
from aot.runtime.describe import size_text


def cache(
    action: Annotated[
        arg.CacheAction, argument(help="ls: list; verify: find damaged entries; gc: remove entries")
    ] = arg.CacheAction.LS,
    folder: Annotated[
        Path | None,
        argument(
            exists=True,
            file_okay=False,
            help="The cache_dir given to aot.compile_model; default: the store of kernels",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None, option(min=0, metavar="N", help="gc: keep at most N bytes, the entries used last")
    ] = None,
    max_days: Annotated[
        float | None, option(min=0, metavar="N", help="gc: remove entries that were not used for N days")
    ] = None,
    debug: arg.Debug = False,
) -> None:
    """List, check or shrink a cache of compiled models or kernels."""
    from aot.compilation import cache as compiled
    from aot.compilation import kernel_cache

    if folder is None:
        echo(kernel_cache.looked_after(action.value, max_bytes, max_days))
    elif action is arg.CacheAction.LS:
        echo("\n".join(map(compiled.describe, compiled.entries(folder))) or "no entries")
    elif action is arg.CacheAction.GC:
        for entry in compiled.collect(folder, max_bytes, max_days):
            echo(f"removed {entry.key}, {size_text(entry.bytes)}")
    else:
        damages = [f"{entry.key}: {reason}" for entry, reason in compiled.damaged(folder)]
        echo("\n".join(damages) or f"{len(compiled.entries(folder))} entries are whole")
        if damages:
            raise Exit(1)
