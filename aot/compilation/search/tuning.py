"""A measured search: times schedules where they will run, in the whole model, and keeps the fastest in a file.

    the model as the cost model has it    k0  k1  k2 ...      } round by round, one after the other:
    each form with its first candidate    k0' k1' k2' ...     } time of each form against the same round's
    each form with its second one ...

    {"version": 1, "choices": {target: {form: {"schedule": "order[h c w ...", "ratio": 0.8, ...}}}}

Only what `aot.codegen.schedules.candidates` gives is tried, and only that is taken from a file: whatever the file says,
a choice is legal and gives the same bits for any number of threads. One that the compiler no longer knows is passed
over.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, cast

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Buffer
from aot.codegen.ir.printer import definition_text, schedule_text
from aot.codegen.ir.schedule import Schedule
from aot.codegen.ir.traverse import reads, writes
from aot.codegen.nest.nest import units
from aot.codegen.schedules.candidates import candidates
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.lowering.program.kernel_parameters import standalone_kernel
from aot.lowering.program.kernel_sources import Pick
from aot.runtime.atomic import replacing
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.machine import missing_features
from aot.runtime.regular import read_file

FILE_VERSION = 1
ROUNDS = 9
MAX_TIME_RATIO = 0.97  # greatest time of a choice, relative to the cost model's: a smaller gain may be noise
_UNITS_PER_CORE = 2  # units of work for each core that threads need to share the work

Run = Callable[[], Mapping[str, float]]  # one inference: the seconds of each form
Measure = Callable[[Pick], Run]  # the model with these schedules
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """A definition and its candidate schedules, the cost model's choice first."""

    work: Definition
    tried: tuple[Schedule, ...]


class Tuning:
    """Measured choices for one target; `used`: those that `pick` returned."""

    def __init__(self, target: Target, path: Path | None = None) -> None:
        """Read `path`, if it exists; CorruptError if it is no file of choices."""
        self._target, self._path = target, path
        self._file: dict[str, dict[str, dict[str, object]]] = _read(path) if path is not None and path.exists() else {}
        self.choices = self._file.setdefault(target_key(target), {})
        self.used: set[str] = set()

    def pick(self, work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
        """Return the fastest measured schedule, else the cost model's choice."""
        if not self.choices:
            return choose(work, target, constants)
        key = kernel_key(work, constants)
        recorded = self.choices.get(key, {}).get("schedule")
        for schedule in candidates(work, target, constants) if recorded is not None else ():
            if schedule_text(schedule) == recorded:
                self.used.add(key)
                return schedule
        return choose(work, target, constants)

    def search(
        self,
        seconds: float,
        measure: Measure,
        clock: Callable[[], float] = time.perf_counter,
        progress: Progress | None = None,
    ) -> None:
        """Measure schedules of the forms without a choice for about `seconds`, and the fastest of each once more.

        UsageError for a target that this machine cannot run.
        """
        missing = missing_features(self._target.isa_features)
        if missing:
            raise UsageError(f"tune: the target runs on this machine, got one that needs {', '.join(missing)}")
        end = clock() + seconds
        forms: dict[str, SearchSpace] = {}
        base = measure(lambda work, target, constants: self._first(forms, work, constants))
        max_tried = max((len(f.tried) for f in forms.values()), default=1)
        best_turns: dict[str, tuple[float, int]] = dict.fromkeys(forms, (1.0, 0))
        for turn in range(1, max_tried):
            if clock() >= end:
                break
            ratios = _ratios(base, measure(self._picking(forms, lambda key, n=turn: n)))
            for key, form in forms.items():
                if turn < len(form.tried) and key in ratios:
                    best_turns[key] = min(best_turns[key], (ratios[key], turn))
            if progress is not None:
                progress(turn, max_tried - 1)
        ratios = _ratios(base, measure(self._picking(forms, lambda key: best_turns[key][1])))
        for key, form in forms.items():
            self._keep(key, form, best_turns[key][1], ratios.get(key, 1.0))

    def _first(self, forms: dict[str, SearchSpace], work: Definition | Group, constants: frozenset[str]) -> Schedule:
        key = kernel_key(work, constants)
        if isinstance(work, Definition) and key not in self.choices and key not in forms:
            tried = self._tried(work, constants)
            if len(tried) > 1:
                forms[key] = SearchSpace(work, tried)
        return self.pick(work, self._target, constants)

    def _tried(self, work: Definition, constants: frozenset[str]) -> tuple[Schedule, ...]:
        """Return the candidates that have as many units for threads as the first one."""
        schedules = candidates(work, self._target, constants)
        if len(schedules) == 1:
            return schedules
        shares = [typical(units(standalone_kernel(work, s, constants))) for s in schedules]
        least = min(shares[0], _UNITS_PER_CORE * self._target.cores)
        return tuple(s for s, share in zip(schedules, shares, strict=True) if share >= least)

    def _picking(self, forms: Mapping[str, SearchSpace], turn: Callable[[str], int]) -> Pick:
        def pick(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
            key = kernel_key(work, constants)
            if key in forms and turn(key) < len(forms[key].tried):
                return forms[key].tried[turn(key)]
            return self.pick(work, target, constants)

        return pick

    def _keep(self, key: str, form: SearchSpace, turn: int, ratio: float) -> None:
        fastest, ratio = (turn, ratio) if ratio < MAX_TIME_RATIO else (0, 1.0)
        self.choices[key] = {
            "form": definition_text(form.work),
            "schedule": schedule_text(form.tried[fastest]),
            "ratio": round(ratio, 3),
            "tried": len(form.tried),
        }

    def save(self) -> None:
        """Write the file, with its former entries for other targets and forms."""
        if self._path is None:
            return
        text = json.dumps({"version": FILE_VERSION, "choices": self._file}, indent=1, sort_keys=True) + "\n"
        with replacing(self._path) as path:
            path.write_text(text, encoding="utf-8")


def _ratios(base: Run, run: Run) -> dict[str, float]:
    """Return the ratio of the time in `run` to that in `base` for each form: the median over the rounds."""
    rounds = [(base(), run()) for _ in range(ROUNDS)]
    keys = set(rounds[0][0]) & set(rounds[0][1])
    return {key: median(own[key] / max(old[key], 1e-9) for old, own in rounds) for key in keys}


def kernel_key(work: Definition | Group, constants: frozenset[str]) -> str:
    """Return the key of a definition: its formula, types and strides, and the sizes known at compile time."""
    text = [definition_text(work), *map(_geometry, _buffers(work)), *sorted(constants)]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


def target_key(target: Target) -> str:
    """Return the processor's name, and a hash of all that schedules depend on."""
    return f"{target.cpu} {hashlib.sha256(repr(target).encode()).hexdigest()[:8]}"


def _geometry(b: Buffer) -> str:
    return f"{b.name} {b.dtype.value} {b.shape} {b.strides} {b.origin} {b.align}"


def _buffers(work: Definition | Group) -> list[Buffer]:
    return list(dict.fromkeys([*writes(work), *(x.buffer for x in reads(work))]))


def _read(path: Path) -> dict[str, dict[str, dict[str, object]]]:
    data = read_file(path, "tune")
    try:
        tree: Any = json.loads(data)
        version, choices = tree["version"], tree["choices"]
        well = all(isinstance(one, dict) for forms in choices.values() for one in forms.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptError(f"tune: {path.name}: must be a file that --tune wrote, got another one") from error
    if version != FILE_VERSION or not well:
        raise CorruptError(f"tune: {path.name}: must have version {FILE_VERSION}, got {version}")
    return cast("dict[str, dict[str, dict[str, object]]]", choices)
