"""The measured search: with a clock of the test's own, what it chooses and keeps; that results stay what they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.host import parse_target
from aot.codegen.schedules.candidates import candidates
from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.compilation.search.tuning import Run, Tuning, kernel_key
from aot.lowering.program.build_program import ProgramBuilder
from aot.lowering.program.kernel_sources import Pick
from aot.options import CompileOptions
from aot.runtime.errors import CorruptError
from tests import networks

NATIVE = parse_target("native")


class Clock:
    """A second passes with each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


class Measured:
    """Stands in for the machine: in the model of each turn, a form takes what `seconds` says of its schedule."""

    def __init__(self, asked: Compilation, seconds: Callable[[tuple[Schedule, ...], Schedule], float]) -> None:
        self.asked, self.seconds, self.turns = asked, seconds, 0

    def __call__(self, pick: Pick) -> Run:
        self.turns += 1
        times: dict[str, float] = {}

        def noted(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
            found = pick(work, target, constants)
            times[kernel_key(work, constants)] = self.seconds(candidates(work, target, constants), found)
            return found

        ProgramBuilder(self.asked.optimized, self.asked.steps, NATIVE, noted).build()
        return lambda: times


def later_is_faster(tried: tuple[Schedule, ...], s: Schedule) -> float:
    return 1.0 / (1 + tried.index(s))


@pytest.fixture(scope="module")
def asked() -> Compilation:
    made = stages(networks.picture())
    assert made.program.kernels
    return made


def searched(asked: Compilation, path: Path | None = None, seconds: float = 1000) -> Tuning:
    made = Tuning(NATIVE, path)
    made.search(seconds, Measured(asked, later_is_faster), Clock())
    made.save()
    return made


def test_the_fastest_is_chosen_and_kept(asked: Compilation, tmp_path: Path) -> None:
    made = searched(asked, tmp_path / "tune.json")
    gains = [choice["ratio"] for choice in made.choices.values()]
    assert len(gains) > 2
    assert all(isinstance(ratio, float) and ratio < 0.6 for ratio in gains)
    assert Tuning(NATIVE, tmp_path / "tune.json").choices == made.choices


def test_no_gain_keeps_the_cost_model(asked: Compilation) -> None:
    made = Tuning(NATIVE)
    made.search(1000, Measured(asked, lambda tried, s: 1.0 if s == tried[0] else 0.99), Clock())
    assert made.choices
    assert all(choice["ratio"] == 1.0 for choice in made.choices.values())
    again = ProgramBuilder(asked.optimized, asked.steps, NATIVE, made.pick)
    assert [k.body for k in again.build().kernels] == [k.body for k in asked.program.kernels]


def test_it_ends_in_time(asked: Compilation) -> None:
    few, many = Measured(asked, later_is_faster), Measured(asked, later_is_faster)
    Tuning(NATIVE).search(2.5, few, Clock())
    Tuning(NATIVE).search(1000, many, Clock())
    assert (few.turns, many.turns > 5) == (4, True)  # as it is, two candidates, what came out


def test_known_schedules_are_not_measured_again(asked: Compilation, tmp_path: Path) -> None:
    searched(asked, tmp_path / "tune.json")
    measured = Measured(asked, later_is_faster)
    Tuning(NATIVE, tmp_path / "tune.json").search(1000, measured, Clock())
    assert measured.turns == 2


def test_tuned_results_are_right_at_any_number_of_threads(asked: Compilation, tmp_path: Path) -> None:
    path = tmp_path / "tune.json"
    searched(asked, path)
    graph = networks.picture()
    tuned = stages(graph, CompileOptions(tune_file=path))
    x = np.random.default_rng(0).standard_normal((1, 3, 18, 17)).astype(np.float32)
    found = [np.array(in_memory(tuned.built, threads)(x)[0]) for threads in (1, 2)]
    assert tuned.built.manifest["options"]["tuned"] == len(tuned.tuning.used) > 0  # type: ignore[index]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], np.array(in_memory(asked.built)(x)[0]), rtol=1e-5, atol=1e-6)


def test_equal_files_give_equal_bytes(asked: Compilation, tmp_path: Path) -> None:
    path = tmp_path / "tune.json"
    searched(asked, path)
    one, other = (stages(networks.picture(), CompileOptions(tune_file=path)).built for _ in range(2))
    assert (one.tag, one.code) == (other.tag, other.code)


def test_a_real_search(tmp_path: Path) -> None:
    path = tmp_path / "tune.json"
    made = stages(networks.text(), CompileOptions(tune=0.2, tune_file=path))
    assert made.built.tag
    choices = json.loads(path.read_text())["choices"]
    assert all(0 < one["ratio"] <= 1 for forms in choices.values() for one in forms.values())
    assert any(forms for forms in choices.values())


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "[" * 100_000, '{"a":' * 100_000, "", "\\ud800", "3", "NaN"),
        *('{"version": 2, "choices": {}}', '{"version": 1, "choices": {"t": {"f": 3}}}'),
        *('{"version": 1, "choices": []}', '{"version": 1, "choices": {"t": []}}'),
    ],
)
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "tune.json"
    path.write_text(text)
    with pytest.raises(CorruptError, match=r"tune: tune\.json"):
        Tuning(NATIVE, path)


@pytest.mark.slow
def test_a_schedule_that_is_no_candidate_is_passed_over(asked: Compilation, tmp_path: Path) -> None:
    path = tmp_path / "tune.json"
    made = searched(asked, path)
    for choice in made.choices.values():
        choice["schedule"] = "order[oc p] tile[p:1000]"
    made.save()
    tuned = stages(networks.picture(), CompileOptions(tune_file=path))
    assert tuned.built.code == asked.built.code
    assert not tuned.tuning.used
