"""Number of inputs of operations: as their methods list them, or as the class declares."""

from __future__ import annotations

import pytest

from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.inference import arity
from aot.ir.op import RegionOp
from aot.ir.registry import all_operations
from aot.opset.control.infrastructure import Constant, Parameter
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

ANY_NUMBER = {"Concat", "Einsum", "ExperimentalDetectronROIFeatureExtractor", "PackedTrees"}
KNOWN = tuple(cls for cls in all_operations().values() if cls.__module__.startswith("aot."))
OURS = tuple(cls for cls in KNOWN if not issubclass(cls, RegionOp | Constant))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Relu", (1, 1)),
        ("Add", (2, 2)),
        ("Select", (3, 3)),
        ("FakeQuantize", (5, 5)),
        ("Slice", (4, 5)),
        ("HardSigmoid", (3, 3)),
        ("VariadicSplit", (3, 3)),
        ("Interpolate_4", (3, 4)),
        ("NonMaxSuppression", (2, 6)),
        ("Concat", (0, None)),
        ("If", (0, None)),
    ],
)
def test_counts_come_from_the_class(name: str, expected: tuple[int, int | None]) -> None:
    assert arity(all_operations()[name]) == expected


def test_only_these_take_any_number_of_inputs() -> None:
    assert {cls.__name__ for cls in OURS if arity(cls)[1] is None} == ANY_NUMBER


def test_more_inputs_than_an_operation_has_are_an_error_of_the_model() -> None:
    """The error comes for every operation, whatever else is wrong with the inputs."""
    for cls in OURS:
        most = arity(cls)[1]
        if most is None:
            continue
        graph = Graph()
        x = Builder(graph)(Parameter(DType.F32, (2, 3)))
        bare = object.__new__(cls)  # what is counted depends on no attribute
        with pytest.raises(ModelError, match=rf"{cls.stands_for or cls.type}: has .*inputs?, got {most + 1}"):
            _ = graph.add(bare, *[x] * (most + 1)).out_port(0).type
