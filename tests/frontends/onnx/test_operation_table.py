"""Each conversion of ONNX's operations has a case, but for a few."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime")

from aot.frontends.onnx.registry import CONVERSIONS
from tests.frontends.onnx.case import FAMILIES, groups

DRAWN = {  # of the right distribution, but other numbers: test_random_numbers.py
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
}
OF_THE_OPTIMISER = {  # ONNX Runtime has them in the domain of ONNX only, whose cases are those of the same functions
    "com.microsoft.LayerNormalization",
    "com.microsoft.SimplifiedLayerNormalization",
}
OF_INPUTS = {"interface.Sequence", "interface.Optional"}  # what the reader puts behind inputs: test_interface.py
NO_TENSOR = {"ai.onnx.ml.ZipMap"}  # it gives dictionaries; ours are the scores: test_tabular.py


def test_conversions_have_cases() -> None:
    tried = {one.op for family in FAMILIES for group in groups(family) for _, one in group}
    own = set(CONVERSIONS.load())
    assert sorted(own - tried - DRAWN - OF_THE_OPTIMISER - OF_INPUTS - NO_TENSOR) == []
    assert sorted(tried - own) == []
