"""Limits of a compilation: what stops it, in a library and on the command line, and what is refused before."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from aot.codegen.dataclass import COMPLETING
from aot.codegen.llvm.object import workers
from aot.codegen.llvm.object.kernel_module import KernelModule
from aot.codegen.llvm.object.workers import Workers
from aot.codegen.target import Target
from aot.compilation.driver import compile_model
from aot.compilation.limits.budget import MEMORY, SECONDS, Budget
from aot.compilation.limits.clock import Clock
from aot.ir.graph import Graph
from aot.opset.control.infrastructure import Parameter
from aot.options import CompileOptions
from aot.options.texts import bytes_of
from aot.runtime.abi import DType
from aot.runtime.errors import BudgetError, UsageError
from tests.programs import scale_kernel
from tests.waiting import becomes_true, until

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "examples" / "digits" / "model.xml"


def endless() -> None:
    while True:
        time.sleep(0.001)


def hungry() -> None:
    kept: list[bytearray] = []
    while True:
        kept.append(bytearray(b"x" * (1 << 20)))


@pytest.mark.parametrize(
    ("work", "limits", "rule"),
    [
        (endless, (None, 0.2), r"at most 0 s \(--max-seconds\)"),
        (hungry, (50 << 20, None), r"at most 52.4 MB of memory \(--max-memory\)"),
        (lambda: bytearray(1 << 60), (None, None), "more memory than there is"),
    ],
    ids=["time", "memory", "one allocation"],
)
def test_work_that_exceeds_the_budget_ends(
    work: Callable[[], object], limits: tuple[int | None, float | None], rule: str
) -> None:
    with pytest.raises(BudgetError, match=rule):
        Budget(*limits).run(work)


def test_a_class_whose_methods_are_being_written_is_finished_first() -> None:
    written = list[int]()

    def work() -> None:
        with COMPLETING:
            for n in range(30):
                time.sleep(0.01)
                written.append(n)
        endless()

    with pytest.raises(BudgetError):
        Budget(None, 0.1).run(work)
    assert len(written) == 30


def test_deep_recursion_is_over_budget() -> None:
    def deeper(n: int) -> int:
        return deeper(n + 1) + 1

    with pytest.raises(BudgetError, match="too deep a recursion"):
        Budget().run(lambda: deeper(0))


def test_no_handler_of_the_model_s_faults_swallows_it() -> None:
    def stubborn() -> None:
        while True:
            with suppress(Exception):
                endless()

    with pytest.raises(BudgetError):
        Budget(None, 0.2).run(stubborn)


def test_time_outside_of_the_budget_does_not_count_and_time_inside_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Stopped:
        """A clock that `take` alone moves."""

        def __init__(self, *, waits: bool) -> None:
            self.begin = now

        @property
        def wall(self) -> float:
            return now - self.begin

        seconds = wall

    def take(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("aot.compilation.limits.budget.Clock", Stopped)
    budget = Budget(None, 5)
    for _ in range(2):
        budget.run(lambda: take(2))
        take(3)
    assert not budget.excess(0.9) and budget.excess(1.1)
    with pytest.raises(BudgetError):
        budget.run(lambda: (take(2), endless()))


def test_work_within_the_budget_may_nest_and_leaves_nothing_behind() -> None:
    budget = Budget(None, 5)
    assert budget.run(lambda: budget.run(lambda: 3)) == 3
    with pytest.raises(KeyError):
        budget.run(lambda: {}["x"])
    time.sleep(0.2)  # no exception comes late


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the one that the interpreter drops
def test_an_excess_inside_of_a_finalizer_is_not_lost() -> None:
    """The interpreter drops what is raised there: the exception waits, and work that ended in between is refused."""
    slow = threading.Event()

    def collect(phase: str, info: dict[str, int]) -> None:
        slow.wait(0.4)

    def work() -> int:
        gc.callbacks.append(collect)
        try:
            return gc.collect(0)
        finally:
            gc.callbacks.remove(collect)

    with pytest.raises(BudgetError, match="--max-seconds"):
        Budget(None, 0.1).run(work)


def test_the_layer_is_named() -> None:
    graph = Graph()
    node = graph.add(Parameter(DType.F32, (2,)), name="conv1")

    def work(node: object = node) -> None:
        endless()

    with pytest.raises(BudgetError, match="in layer 'conv1'"):
        Budget(None, 0.2).run(work)


def test_defaults_grow_with_the_model() -> None:
    budget = Budget()
    budget.allow(100_000_000, 1000)
    assert budget.memory == MEMORY + 10 * 100_000_000
    assert budget.seconds > SECONDS + 50
    budget = Budget(1000, 2.0)
    budget.allow(100_000_000, 1000)
    assert (budget.memory, budget.seconds) == (1000, 2.0)


def test_time_without_a_processor_counts_little() -> None:
    """Seconds of other programs, unless the user asked for seconds of the wall; a child's seconds are the process's."""
    wall, own = Clock(waits=False), Clock(waits=True)
    time.sleep(0.5)
    assert own.seconds < 0.25 and wall.seconds >= 0.5
    before = own.seconds
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        becomes_true(lambda: own.seconds >= before + 0.4, limit=300)
        running = own.seconds
        child.kill()
    assert 0.4 <= running - before <= own.seconds <= own.wall


def test_a_starved_compilation_goes_on() -> None:
    budget = Budget()
    budget.seconds = 0.3  # as if this were the default
    budget.run(lambda: time.sleep(0.6))
    with pytest.raises(BudgetError, match="at most 0 s"):
        budget.run(endless)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the error may come between `open` and `with`
def test_compile_keeps_to_its_options() -> None:
    with pytest.raises(BudgetError, match="--max-seconds"):
        compile_model(MODEL, CompileOptions(max_seconds=0.005))
    with pytest.raises(UsageError, match="max_memory must be above 0, got 0"):
        CompileOptions(max_memory=0)


def test_processes_that_compile_end_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTH_STARTING", 0)
    compiling = Workers(processes=1)
    kernel, target = scale_kernel("k", 100), Target.parse("x86-64-v3")

    def fail() -> None:
        with compiling:
            compiling.submit(KernelModule(kernel, target, None, False))
            until(lambda: compiling.running)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert all(process.wait(5) is not None for process in compiling.running)


@pytest.mark.parametrize(
    ("text", "size"),
    [("500MB", 500_000_000), ("2GiB", 2 << 30), ("1.5 GB", 1_500_000_000), ("4096", 4096), ("7k", 7000)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1GB", "many", "1e9", "5XB"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="max-memory: must be a size"):
        bytes_of(text)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


ENDED = """
import os, signal, sys
from aot.commands.line.command import supervised
sys.exit(supervised(lambda **_: {}))
"""


@pytest.mark.parametrize(
    ("does", "code", "said"),
    [
        ("sys.exit(3)", 3, ""),
        ("None", 0, ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", 6, "memory was short"),
        ("os.kill(os.getpid(), signal.SIGALRM)", 6, "--max-seconds"),
        ("os.abort()", 6, "--max-memory"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 1, "Segmentation fault"),
    ],
)
def test_a_command_that_ends_suddenly_has_an_exit_code_and_a_sentence(does: str, code: int, said: str) -> None:
    ran = python(ENDED.format(does))
    assert ran.returncode == code
    assert said in ran.stderr


def test_the_command_line_ends_what_holds_the_interpreter(tmp_path: Path) -> None:
    """The alarm of the process ends even one call that never returns to Python."""
    code = (
        "import sys, time, aot.compilation.limits.budget as b; b.GRACE = 0.2\n"
        "from aot.commands.line.command import supervised\n"
        "held = lambda: b.ctypes.PyDLL(None).sleep(60)\n"
        "sys.exit(supervised(lambda **_: b.Budget(None, 0.3, hard=True).run(held)))"
    )
    begin = time.monotonic()
    ran = python(code)
    assert ran.returncode == 6 and "--max-seconds" in ran.stderr
    assert time.monotonic() - begin < 30


TRACED = """
import sys, threading, time
from contextlib import suppress
from aot.compilation.limits import budget
from aot.compilation.limits.clock import Clock

class Exceeded:
    seconds = 1.0

    def excess(self, elapsed):
        return "too much"

    def postpone(self, elapsed):
        pass

watch = budget._Watch(Exceeded(), threading.get_ident(), Clock(waits=False))
with suppress(budget._Over):
    watch.start()
    end = time.monotonic() + 60
    while time.monotonic() < end:  # the exception ends it between two instructions
        time.sleep(0.001)
    sys.exit("no exception came")
sys.settrace(lambda *event: None)
watch.stop()
watch.stop()
sys.settrace(None)

def traced():
    return 1

sys.settrace(lambda *event: None)
traced()
sys.settrace(None)
"""


def test_functions_can_be_traced_after_an_excess() -> None:
    """CPython 3.11 repeats the first instruction of a traced function while it asks for a dropped exception."""
    subprocess.run([sys.executable, "-c", TRACED], check=True, cwd=ROOT, timeout=600)
