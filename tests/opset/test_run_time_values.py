"""Axes, blocks and shapes that are inputs: only run time knows their values."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from aot.compilation.driver import compile_model
from aot.ir.graph import Graph
from aot.ir.op import Op
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.movement.blocks import BatchToSpace, SpaceToBatch
from aot.opset.products.convolution import Convolution
from aot.opset.reduction.scan import CumProd, CumSum
from aot.options import CompileOptions
from aot.runtime.errors import UsageError
from aot.runtime.model import CompiledModel
from tests.properties.compiled import wrong
from tests.properties.drawing import Trial

FAST = CompileOptions(level=None)


def noise(*shape: int) -> Array:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


def ints(*values: int) -> Array:
    return np.array(values)


def compiled(trials: Sequence[Trial]) -> CompiledModel:
    """The trials in one network, an output for each."""
    graph = Graph("trials")
    for at, trial in enumerate(trials):
        ports = []
        for k, array in enumerate(a for a in trial.arrays if a is not None):
            name, dtype = f"x{at}_{k}", dtype_of(array)
            if k in trial.fixed:
                ports.append(graph.add(Constant(dtype), name=name, data=array).out_port(0))
            else:
                ports.append(graph.add(Parameter(dtype, array.shape), name=name).out_port(0))
        graph.add(Result(), graph.add(trial.op, *ports, name=f"trial{at}").out_port(0))
    return compile_model(graph, FAST, threads=1)


TRIALS = [
    *(Trial(CumSum(e, r), [noise(2, 3, 4), np.array(a)]) for e, r, a in ((False, True, 1), (True, False, -3))),
    Trial(CumSum(), [noise(2, 3), np.array([-1], np.int32)]),
    Trial(CumProd(), [noise(5), np.array(0)]),
    *(Trial(BatchToSpace(), [noise(4, 3), ints(1, b), ints(0, 1), ints(0, 0)]) for b in (1, 2, 4)),
    Trial(BatchToSpace(), [noise(4, 1, 2, 3), ints(1, 1, 2, 2), ints(0, 0, 1, 0), ints(0, 0, 0, 2)]),
    Trial(SpaceToBatch(), [noise(1, 3, 4), ints(1, 2, 3), ints(0, 1, 2), ints(0, 0, 0)], frozenset({1})),
    Trial(Convolution(pads_begin=(2,), pads_end=(2,)), [noise(1, 1, 0), noise(1, 1, 3)], frozenset({1})),
]


def test_values_of_run_time() -> None:
    model = compiled(TRIALS)
    found = model(*(array for trial in TRIALS for array in trial.given))
    failed = wrong(TRIALS, [np.asarray(found[n]) for n in range(len(model.outputs))])
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (BatchToSpace(), (ints(1, 0), ints(0, 0), ints(0, 0)), "block_shape must be at least 1"),
        (BatchToSpace(), (ints(1, 3), ints(0, 0), ints(0, 0)), "a dimension must divide by"),
        (BatchToSpace(), (ints(1, 9), ints(0, 0), ints(0, 0)), "a dimension must divide by"),
        (BatchToSpace(), (ints(2, 2), ints(0, 0), ints(0, 0)), "block_shape must be 1 for the batch"),
        (BatchToSpace(), (ints(1, 2), ints(0, -1), ints(0, 0)), "begin must be at least 0"),
        (BatchToSpace(), (ints(1, 2), ints(0, 0), ints(0, 9)), "dimension 1 must not be negative"),
        (SpaceToBatch(), (ints(1, 2), ints(0, -1), ints(0, 0)), "begin must be at least 0"),
    ],
)
def test_values_that_do_not_fit(op: Op, inputs: Sequence[Array], message: str) -> None:
    fixed = frozenset({1}) if isinstance(op, SpaceToBatch) else frozenset[int]()
    trial = Trial(op, [noise(4, 3), *inputs], fixed)
    with pytest.raises(UsageError, match=re.escape(f"{op.type} 'trial0': {message}")):
        compiled([trial])(*trial.given)
