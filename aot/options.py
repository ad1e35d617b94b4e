"""What a compilation is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Event = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """`target`: `native`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4` or `aarch64`.

    `layouts`: pairs of an input's name and the layout its data comes in, `NHWC`; `level`: None leaves LLVM's passes out
    (compiles faster at nearly equal speed); `print_after`: names of passes, or `all`, whose result goes to `on_dump`;
    `on_event(stage, done, total)` reports progress; `save_temps`: a folder for every stage's text.
    """

    target: str = "native"
    layouts: tuple[tuple[str, str], ...] = ()
    level: int | None = 1
    print_after: tuple[str, ...] = ()
    stop_after_rewrite: int | None = None
    save_temps: Path | None = None
    on_event: Event | None = None
    on_dump: Callable[[str, str], None] | None = None
