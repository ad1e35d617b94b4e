"""Memory of results: taken again when nobody refers to it, and never before."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from aot.runtime import CompiledModel
from aot.runtime.inference.outputs import Outputs
from tests.passes.check import graph_of

LARGE, SMALL = 1 << 15, 1 << 8  # elements


def model(count: int) -> CompiledModel:
    """Twice the input, and its negative."""

    def make(b: Builder, x: OutPort) -> tuple[OutPort, OutPort]:
        return b.Add(x, x), b.Negative(x)

    return in_memory(stages(graph_of(make, (count,)), CompileOptions(level=None)).built, threads=1)


def data(n: int, count: int = LARGE) -> Any:
    return np.full(count, n, np.float32)


def places(found: Outputs) -> tuple[int, int]:
    return found[0].ctypes.data, found[1].ctypes.data


def test_a_loop_that_keeps_the_last_results_takes_turns() -> None:
    request, seen, kept = model(LARGE).create_infer_request(), set[tuple[int, int]](), None
    for n in range(20):
        kept = request.infer(data(n))
        assert kept[0][0] == 2 * n
        assert kept[1][-1] == -n
        seen.add(places(kept))
    assert len(seen) <= 3


KEPT: dict[str, Callable[[Outputs], Any]] = {
    "all": lambda y: y,
    "tuple": lambda y: y.to_tuple(),
    "dict": lambda y: y.to_dict(),
    "array": lambda y: y[1],
    "part": lambda y: y[1][5:100],
    "reshaped": lambda y: y[1].reshape(2, -1)[:, ::2],
    "memoryview": lambda y: memoryview(y[1]),
    "frombuffer": lambda y: np.frombuffer(y[1], np.uint8),
    "dlpack": lambda y: np.from_dlpack(y[1]),
    "iterator": lambda y: y[1].flat,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KEPT)
def test_results_in_use_do_not_change(kind: str) -> None:
    gc.freeze()  # what the tests before this one keep in caches: the collections below would walk through it
    request = model(LARGE).create_infer_request()
    kept: list[Any] = []
    for n in range(8):
        kept.append(KEPT[kind](request.infer(data(n + 1))))
        gc.collect()

    def last(x: Any) -> float:
        if isinstance(x, dict | Outputs):
            x = list(x.values())
        x = np.asarray(x[1] if isinstance(x, list | tuple) else x)
        return float(np.ascontiguousarray(x).view(np.float32).reshape(-1)[-1])

    assert [last(x) for x in kept] == [-(n + 1) for n in range(8)]


def test_results_of_the_request_stay_while_the_next_inference_is_refused() -> None:
    request = model(LARGE).create_infer_request()
    for n in range(5):
        request.infer(data(n))
        with pytest.raises(ValueError, match="expected"):
            request.infer(data(7, SMALL))
        assert request.results[0][0] == 2 * n


def test_arrays_of_the_user_are_only_written_while_they_are_set() -> None:
    request, mine = model(LARGE).create_infer_request(), np.zeros(LARGE, np.float32)
    for n in range(3):
        request.infer(data(n))
    request.set_output_tensor(0, mine)
    for n in range(4):
        request.infer(data(n))
    assert mine[0] == 6
    request.set_output_tensor(0, None)
    for n in range(10, 16):
        request.infer(data(n))
    assert mine[0] == 6


def test_memory_is_given_back() -> None:
    request = model(LARGE).create_infer_request()
    owner = weakref.ref(request.infer(data(1))[0])
    request.infer(data(2))
    assert owner() is not None
    request.release_memory()
    assert owner() is None
    assert request.infer(data(2))[0][0] == 4


def test_small_results_are_new_arrays() -> None:
    request = model(SMALL).create_infer_request()
    kept = [request.infer(data(n, SMALL))[0] for n in range(6)]
    assert [y[0] for y in kept] == [2 * n for n in range(6)]
