"""Files on which the fuzzers found faults compile or are refused now, and one case of each fuzzer passes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.fuzz.case import Kept, kept
from tests.fuzz.reduce import fewest
from tests.fuzz.server import Limits, Outcome, run

pytest.importorskip("openvino")
pytest.importorskip("onnxruntime")

from tests.fuzz.fuzzers import FUZZERS

pytestmark = pytest.mark.filterwarnings("ignore")  # of the peers


def text(outcome: Outcome) -> str:
    return f"{outcome.kind} {outcome.code}" if outcome.kind == "refused" else outcome.kind


@pytest.fixture(scope="module")
def clean() -> Iterator[Executor]:
    """A process that forks for each case. The one of the tests may have threads and locks, which a fork would copy."""
    with pytest.MonkeyPatch.context() as patch, ProcessPoolExecutor(1, get_context("spawn")) as process:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            patch.setenv(name, "1")  # NumPy's threads would not outlive a fork
        yield process


def judged(case: Kept) -> Outcome:
    return run(lambda: FUZZERS[case.kind].judge(case.case))


def drawn(name: str, seed: int) -> Outcome:
    return run(lambda: FUZZERS[name].judge(FUZZERS[name].draw(seed)))


@pytest.mark.parametrize("case", kept(), ids=lambda c: c.name)
def test_found_cases_have_their_outcomes(case: Kept, clean: Executor) -> None:
    found = clean.submit(judged, case).result()
    assert text(found) == case.expected, found


@pytest.mark.parametrize("name", sorted(FUZZERS))
def test_cases_of_each_fuzzer_are_right(name: str, clean: Executor) -> None:
    found = clean.submit(drawn, name, 0).result()
    assert not found.finding, found


def test_the_same_seed_gives_the_same_case() -> None:
    for fuzzer in FUZZERS.values():
        assert dict(fuzzer.draw(5).files) == dict(fuzzer.draw(5).files), fuzzer.name


def test_ends_of_children_are_told_apart() -> None:
    def die() -> Outcome:
        ctypes.string_at(0)
        return Outcome("fine")

    def spin() -> Outcome:
        while True:
            pass

    def eat() -> Outcome:
        return Outcome("fine", str(len(bytearray(4 << 30))))

    assert run(lambda: Outcome("fine")).kind == "fine"
    assert run(die).key.startswith("crash SIGSEGV")
    assert run(spin, Limits(seconds=1)).kind == "hang"
    assert run(eat, Limits(memory=1 << 30)).kind == "memory"


def test_fewest_atoms() -> None:
    def holds(left: Sequence[int]) -> bool:
        return {3, 11} <= set(left)

    assert fewest(range(20), holds) == [3, 11]
