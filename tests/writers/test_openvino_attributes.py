"""Every case of every operation is written so that we, and OpenVINO, read what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from aot.frontends import read_model
from aot.ir.op import Op
from aot.ir.registry import definition_of
from aot.opset.control.state import Assign
from aot.opset.detection.suppression.suppression import NonMaxSuppression
from aot.opset.elementwise.activation import Relu
from aot.opset.elementwise.broadcasting import Broadcast, BroadcastMode
from aot.opset.elementwise.comparison import LogicalXor
from aot.opset.elementwise.conversion import Rounded
from aot.opset.elementwise.unary import Acosh
from aot.opset.estimators.trees import TreeEnsemble
from aot.opset.movement.padding import Pad
from aot.opset.movement.scatter import Combination, ScatterElementsUpdate, ScatterNDUpdate
from aot.opset.products.pool_windows import Rounding
from aot.opset.products.pooling import AvgPool, AvgPool_16, MaxPool, MaxPool_8
from aot.opset.reduction.normalization import MVN, MVN_1
from aot.opset.reduction.softmax import LogSoftmax, Softmax
from aot.writers.openvino import write
from aot.writers.openvino.forms import formless
from tests.writers.case_models import MODULES, NAME, cases, misread, network

# What OpenVINO's own checks do not take, though it means the same there; none of it comes out of a conversion.
REFUSED = {
    "Broadcast": "pdpd with another alignment",
    "CumSum": "no axis",
    "DFT": "f64",
    "GRUCell": "softplus",
    "GenerateProposals": "min_size other than 1, or no limit before suppression",
    "HardSigmoid": "scalars of shape [1]",
    "LSTMCell": "softsign",
    "Proposal": "sizes of images for each image",
    "RNNCell": "no bias",
    "ReduceLogicalAnd": "a scalar",
    "ReduceLogicalOr": "a scalar",
    "ReduceL1": "a scalar",
    "ReduceL2": "a scalar",
    "ReduceMax": "a scalar",
    "ReduceMean": "a scalar",
    "ReduceMin": "a scalar",
    "ReduceProd": "a scalar",
    "ReduceSum": "a scalar",
    "TopK": "k of shape [1]",
    "TreeEnsemble": "an operation of this project",
}
COUNTED_OUT = {"mode", "axis", "across_channels", "output_size"}  # attributes that OpenVINO sets by others, or by ranks


@pytest.mark.parametrize(
    ("op", "version"),
    [
        (Relu(), "opset1"),
        (LogicalXor(), "opset1"),
        (Acosh(), "opset4"),
        (MVN_1(), "opset2"),
        (MVN(), "opset6"),
        (AvgPool(), "opset1"),
        (AvgPool(rounding_type=Rounding.CEIL), "opset1"),
        (AvgPool(rounding_type=Rounding.CEIL_TORCH), "opset14"),
        (AvgPool_16(), "opset16"),
        (MaxPool(), "opset1"),
        (MaxPool(rounding_type=Rounding.CEIL_TORCH), None),
        (MaxPool_8(rounding_type=Rounding.CEIL), "opset8"),
        (MaxPool_8(rounding_type=Rounding.CEIL_TORCH), "opset14"),
        (Broadcast(BroadcastMode.EXPLICIT), "opset3"),
        (Broadcast(BroadcastMode.BIDIRECTIONAL), "opset3"),
        (Softmax(0), "opset1"),
        (Softmax(-1), "opset8"),
        (LogSoftmax(-1), "opset5"),
        (ScatterElementsUpdate(), "opset3"),
        (ScatterElementsUpdate(Combination.SUM), "opset12"),
        (ScatterElementsUpdate(Combination.NONE, False), "opset12"),
        (ScatterNDUpdate(), "opset4"),
        (ScatterNDUpdate(Combination.SUM), "opset15"),
        (Pad(), "opset12"),
        (NonMaxSuppression(), "opset9"),
        (Assign(), "opset6"),
        (TreeEnsemble(), "extension"),
        (Rounded(), None),
    ],
    ids=str,
)
def test_the_version_is_the_first_that_has_the_attributes(op: Op, version: str | None) -> None:
    assert definition_of(op) == version


@pytest.mark.parametrize("module", MODULES)
def test_written_attributes_are_read_back(module: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.xml", tmp_path / "second.xml"
    for name, case in cases(module):
        graph = network(case)
        if list(formless(graph)):
            continue
        write(graph, first)
        found = read_model(first)
        (node,) = (n for n in found.nodes.values() if n.name == NAME)
        assert node.op == case.op.written_out(), name
        write(found, second)
        assert second.read_bytes() == first.read_bytes(), name
        assert second.with_suffix(".bin").read_bytes() == first.with_suffix(".bin").read_bytes(), name


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # OpenVINO's own
@pytest.mark.parametrize("module", MODULES)
def test_openvino_reads_the_same_attributes(module: str, tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    core = ov.Core()
    for name, case in cases(module):
        graph = network(case)
        if list(formless(graph)):
            continue
        write(graph, tmp_path / "m.xml")
        try:
            theirs = core.read_model(tmp_path / "m.xml")
        except RuntimeError:
            if case.op.type in REFUSED:
                continue
            raise
        (node,) = (n for n in theirs.get_ops() if n.get_friendly_name() == NAME)
        if isinstance(case.op, Rounded):  # a Convert with a mark that OpenVINO skips
            assert node.get_type_name() == "Convert"
            continue
        wrong = misread(case.op, {k: v for k, v in node.get_attributes().items() if k not in COUNTED_OUT})
        assert not wrong, f"{name}: {wrong}"
