"""The runner of lowering passes: runs them in order, times, counts and verifies them, and can stop between any two."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from operator import is_

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.traverse import Work
from aot.ir.types import Array
from aot.ir.values.deferred import stored_arrays
from aot.lowering.context import Context
from aot.lowering.ir.steps import LoopControl, Steps
from aot.lowering.ir.verify import verify_steps
from aot.lowering.pipeline import Lowering
from aot.runtime.arrays.pages import mapping_of, release
from aot.runtime.errors import AotError, InternalError

LOG = logging.getLogger(__name__)

Observer = Callable[["LoweringReport", Steps], None]


@dataclass(frozen=True, slots=True)
class LoweringReport:
    """Report of one lowering pass; `works` and `steps` are counted after it, in all blocks."""

    name: str
    milliseconds: float
    steps: int
    works: int
    new_works: int

    def __str__(self) -> str:
        what = f"{self.new_works} of {self.works} works new" if self.new_works else "unchanged"
        return f"{self.name}: {what}, {self.steps} steps ({self.milliseconds:.1f} ms)"


def run_lowering(
    steps: Steps,
    passes: Sequence[Lowering],
    context: Context,
    *,
    stop_after: int | None = None,
    observe: Observer | None = None,
    verify: bool = False,
) -> list[LoweringReport]:
    """Run `passes` on `steps`, which change in place.

    `stop_after`: after that many passes only required ones run. `observe` is called after each pass, with the steps.
    `verify`: check the steps before the first pass, after each that changes them, and after the last. Raises
    InternalError, which names the pass, for steps that a pass broke, and for two passes of one name; errors of other
    classes leave as they are, with a note that names the pass.
    """
    if doubles := [name for name, count in Counter(p.name for p in passes).items() if count > 1]:
        raise InternalError(f"lowering: a pass has a name of its own, got {', '.join(doubles)} twice")
    blocks = list(steps.blocks())  # passes may add blocks, which they finish themselves
    if verify:
        verify_steps(steps)
    reports: list[LoweringReport] = []
    known, seen, files = _works(steps), _parts(steps), _mapped_files(steps)
    for number, item in enumerate(passes):
        if stop_after is not None and number >= stop_after and not item.required:
            continue
        begin = time.perf_counter()
        for block in (steps,) if item.whole else blocks:
            _step(item, block, context)
        for block in steps.blocks():
            block.layouts = item.gives
        for file in files:
            release(file)  # what the pass has looked at
        elapsed = (time.perf_counter() - begin) * 1e3
        now = _works(steps)
        count = sum(len(b.steps) for b in steps.blocks())
        new = {w for i, w in now.items() if i not in known}
        new -= {w for i, w in known.items() if i not in now} if new else set()
        reports.append(LoweringReport(item.name, elapsed, count, len(now), len(new)))
        known = now
        LOG.info("%s", reports[-1])
        if verify:
            parts = _parts(steps)
            if len(parts) != len(seen) or not all(map(is_, parts, seen)):
                _check(item, steps)
            seen = parts
        if observe is not None:
            observe(reports[-1], steps)
    if verify:
        verify_steps(steps)
    return reports


def _step(item: Lowering, block: Steps, context: Context) -> None:
    if block.layouts is not item.needs:
        raise InternalError(f"{item.name}: needs {item.needs.value} layouts, got {block.layouts.value} ones")
    try:
        item.run(block, context)
    except AotError as error:
        error.add_note(f"in lowering pass {item.name}")
        raise


def _check(item: Lowering, steps: Steps) -> None:
    try:
        verify_steps(steps)
    except InternalError as error:
        raise InternalError(f"lowering pass {item.name} left broken steps: {error}") from error


def _mapped_files(steps: Steps) -> list[Array]:
    """Return the model's files that are mapped, as bytes."""
    stored = (array for v in steps.values.values() if v.data is not None for array in stored_arrays(v.data))
    mappings = {id(m): m for m in map(mapping_of, stored) if m is not None}
    return [np.frombuffer(m, np.uint8) for m in mappings.values()]


def _parts(steps: Steps) -> list[object]:
    """Return the objects that `verify_steps` reads, in step order. They are immutable, so identity shows a change."""
    parts: list[object] = [*steps.values.values(), *steps.outputs, *steps.symbols, *steps.sizes.meaning]
    for block in steps.blocks():
        parts.append(block.layouts)
        for step in block.steps:
            parts += (*step.works, *step.binds.values())
            if isinstance(step.control, LoopControl):
                parts += (*step.control.enters, *step.control.leaves, *step.control.start)
    return parts


def _works(steps: Steps) -> dict[int, Work]:
    """Return the works by identity: most stay the same objects, and hashes of the others cost a walk."""
    return {id(w): w for b in steps.blocks() for s in b.steps for w in s.works}
