"""Each conversion of TensorFlow's operations has a case, but for a few."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

from aot.frontends.tf.registry import CONVERSIONS
from aot.frontends.tf.unsupported.reasons import REASON

OLD = {  # names that TensorFlow 2.21 does not run any more, of conversions that others have cases for
    *(f"Batch{kind}" for kind in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")),
    *(f"BatchMatrix{kind}" for kind in ("BandPart", "Diag", "DiagPart", "SetDiag", "Determinant", "Inverse", "Solve")),
    *("BatchMatrixTriangularSolve", "QuantizeAndDequantize", "TopK"),
}
WITHOUT_KERNEL = {"_FusedDepthwiseConv2dNative"}  # TensorFlow for CPUs has none
HANDED_ON = {"ResourceGather", "ResourceGatherNd"}  # variables are tensors by then: the cases of Gather, GatherNd
DRAWN = {"Multinomial", "TruncatedNormal"}  # of the right distribution, but other numbers


def tried() -> set[str]:
    """The operations that have cases."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("op_cases/*.zip"):
        with ZipFile(path) as archive:
            names = [case["name"] for cases in json.loads(archive.read("cases.json")).values() for case in cases]
        found |= {name.rpartition("-")[0] for name in names}
    return found


def test_conversions_have_cases() -> None:
    own = {k for k, f in CONVERSIONS.load().items() if ".control." not in f.__module__ and k not in REASON}
    assert sorted(own - tried() - OLD - WITHOUT_KERNEL - HANDED_ON - DRAWN) == []
