"""OpenVINO computes from what is written what the operations mean: a case of each operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.ir.types import Array
from aot.writers.openvino import write
from aot.writers.openvino.forms import formless
from tests.cases import Case
from tests.writers.case_models import MODULES, cases, given, network

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore"),  # OpenVINO's own
]

# What OpenVINO's CPU plugin cannot run, or gets wrong; its reader has the attributes right (test_openvino_attributes).
CANNOT_RUN = {
    "AdaptiveMaxPool": "indices of i64",
    "BGRtoNV12": "not implemented",
    "BinaryConvolution": "bits are converted to bytes, which fails",
    "CTCLoss": "ends the process",
    "ErfInv": "less exact",
    "FakeConvert": "values beyond the range",
    "GatherTree": "steps beyond the length are not written",
    "GroupedMatMul": "not implemented",
    "HardSigmoid": "scalars of shape [1]",
    "LSTMCell_1": "peepholes; may end the process",
    "NonMaxSuppression_1": "as many rows as boxes",
    "RGBtoNV12": "not implemented",
    "RNNCell": "may end the process",
    "ScatterUpdate": "negative indices",
    "SparseFillEmptyRows": "rows in any order",
    "TopK_1": "k of shape [1]",
    "TreeEnsemble": "an operation of this project",
}


def first_cases(module: str) -> list[tuple[str, Case]]:
    """The first case of each operation of a module that the plugin can run and IR has a form for."""
    found: dict[str, tuple[str, Case]] = {}
    for name, case in cases(module):
        kind = type(case.op).__name__
        if kind in CANNOT_RUN or list(formless(network(case))):
            continue
        found.setdefault(kind, (name, case))
    return list(found.values())


def computed(core: Any, path: Path, inputs: list[Array]) -> list[Array]:
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    found = core.compile_model(path, "CPU", settings)(inputs)
    return [np.array(found[i]) for i in range(len(found))]


@pytest.mark.parametrize("module", MODULES)
def test_values_are_those_of_the_reference(module: str, tmp_path: Path) -> None:
    core = pytest.importorskip("openvino").Core()
    for name, case in first_cases(module):
        write(network(case), tmp_path / "m.xml")
        outputs = computed(core, tmp_path / "m.xml", given(case))
        for found, expected in zip(outputs, case.op.evaluate(*case.arrays), strict=True):
            assert found.shape == expected.shape, name
            assert case.tolerance.allows(found.astype(expected.dtype), expected), f"{name}: {found}\n{expected}"
