"""Control flow that only run time decides gives what the references give, the same bits at any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from aot.ir.interpret import interpret
from aot.ir.types import Array
from tests.dynamic.loops import NETWORKS, ROW, remembering
from tests.dynamic.networks import check, compiled


@pytest.mark.parametrize("name", NETWORKS)
def test_loops_equal_the_references(name: str) -> None:
    network = NETWORKS[name]
    model = compiled(network.make())
    for arrays in network.inputs:
        check(model, network.make(), arrays)


@pytest.mark.parametrize("name", ["nested_loops", "images", "branch_in_loop"])
def test_equal_bits_at_any_number_of_threads(name: str) -> None:
    network = NETWORKS[name]
    one, several = (compiled(network.make()) for _ in range(2))
    several.set_property({"INFERENCE_NUM_THREADS": 2})
    for arrays in network.inputs:
        a, b = one(list(arrays)), several(list(arrays))
        assert all(np.array_equal(a[i], b[i]) for i in range(len(one.outputs)))


def test_state_and_loops() -> None:
    request, kept = compiled(remembering()).create_infer_request(), dict[str, Array]()
    for n in (2, 0, 3):
        arrays = [np.array(n, np.int64), ROW]
        (expected,) = interpret(remembering(), arrays, state=kept)
        np.testing.assert_allclose(request.infer(arrays)[0], expected, rtol=1e-6)


def test_the_time_of_a_call_is_that_of_all_its_iterations() -> None:
    network = NETWORKS["exchanged"]
    request = compiled(network.make()).create_infer_request()
    request.enable_profiling()

    def seconds(n: int) -> float:
        request.infer([np.array(n, np.int64), *network.inputs[0][1:]])
        return sum(call.seconds for call in request.get_profiling_info())

    assert seconds(20_000) > 20 * seconds(20)
