"""Fixtures and options of all tests: lowering passes are checked one by one, and goldens can be written anew.

LLVM takes most of a compilation's time. Tests that are not about code run its code generator with the lowest effort and
none of its passes, and take kernels and modules that their process has compiled before. The code that users get have
the tests in `DEFAULT_CODE`, those with the marker `default_code`, one in `SAMPLE` of the others, all with
--default-code, and every process that tests start.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Generator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

import aot.compilation.graph_passes
import aot.compilation.stages
from aot.codegen.llvm.object import kernel_module, optimize, parts, workers
from aot.codegen.target import Target
from aot.compilation.kernel_cache import VARIABLE
from aot.lowering.run import LoweringReport, run_lowering
from aot.passes.run import RunReport, run_items

# no bound of time, which a busy machine exceeds, and the same cases in every run
settings.register_profile("aot", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("aot")
# Hypothesis would draw constants of the sources of all loaded modules, which differ by run, and take it 10 s to read
providers._get_local_constants = Constants

TOUR = "tests/project/test_docs.py::test_snippets_run[docs/develop/tour.md]"  # shows machine code
DEFAULT_CODE = (
    "tests/codegen/ir/",
    "tests/codegen/llvm/",
    "tests/whole/test_end_to_end.py",
    "tests/whole/test_openvino.py",
    TOUR,
)
SAMPLE = 32
_STORES: list[Path] = []  # of kernels, that this process has made
_COMPILE_MODULE = optimize.compile_module
_compile_plain = lru_cache(maxsize=256)(partial(_COMPILE_MODULE, level=None))
_emit_once = lru_cache(maxsize=1024)(kernel_module.emit)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the goldens that differ, and fail")
    parser.addoption("--quick", action="store_true", help="one case of each test")
    parser.addoption("--smoke", action="store_true", help="one test of each file")
    parser.addoption("--default-code", action="store_true", help="compile with the effort of LLVM that users get")


def pytest_configure() -> None:
    """Let all processes of a run share a store of kernels, which it begins without, unless the environment has one."""
    if VARIABLE not in os.environ:
        _STORES.append(Path(tempfile.mkdtemp(prefix="aot-tests-")))
        os.environ[VARIABLE] = str(_STORES[0])


def pytest_unconfigure() -> None:
    """Remove the store of the run."""
    for folder in _STORES:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the middle case of each parametrised test with --quick, of each file with --smoke."""
    if not (config.getoption("--quick") or config.getoption("--smoke")):
        return
    end = "::" if config.getoption("--smoke") else "["
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition(end)[0], []).append(item)
    kept = {id(c[len(c) // 2]) for c in cases.values()}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no garbage collector walk through the modules and tests that come, none of which is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking through modules and tests, which stay, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, *gc.get_threshold()[1:])  # nor often through what tests keep in caches


def pytest_sessionfinish() -> None:
    """Let plugins that are imported for the summary see all objects again."""
    gc.unfreeze()


def _has_default_code(item: pytest.Item) -> bool:
    return (
        bool(item.config.getoption("--default-code"))
        or item.nodeid.startswith(DEFAULT_CODE)
        or item.get_closest_marker("default_code") is not None
        or crc32(item.nodeid.encode()) % SAMPLE == 0
    )


def _compile_once(text: str, target: Target, level: int | None = 1) -> bytes:
    """Compile a module without LLVM's passes, unless this process has done so before."""
    del level
    return _compile_plain(text, target)


def _run_verified(*args: Any, **options: Any) -> list[LoweringReport]:
    return run_lowering(*args, **options | {"verify": True})


def _run_items_verified(*args: Any, **options: Any) -> RunReport:
    return run_items(*args, **options | {"check_each": True})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Choose LLVM's effort before the first fixture of a test compiles, and check graphs and steps as --verify."""
    is_default = _has_default_code(item)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aot.compilation.stages, "run_lowering", _run_verified)
        patch.setattr(aot.compilation.graph_passes, "run_items", _run_items_verified)
        if not is_default:
            patch.setattr(optimize, "EFFORT", 0)
            patch.setattr(kernel_module, "compile_module", _compile_once)
            patch.setattr(parts, "compile_module", _compile_once)
            patch.setattr(kernel_module, "emit", _emit_once)
            patch.setattr(workers, "MAX_PROCESSES", 0)  # beside this one: they would not know the effort
        return (yield)
