"""Models of TensorFlow give TensorFlow's results: SavedModels, graphs, checkpoints, functions, loops, state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aot
from aot.ir.graph import Graph
from aot.runtime.errors import UsageError
from tests.cases import LOOSE
from tests.frontends.tf.tf_models import NAMES, calls_of, unpacked

pytest.importorskip("tensorboard")


@pytest.mark.parametrize("name", NAMES)
def test_models_give_the_results_of_tensorflow(name: str, tmp_path: Path) -> None:
    """Outputs have the names of signatures; without one, of nodes. State lives in a request."""
    request = aot.compile_model(unpacked(name, tmp_path)).create_infer_request()
    for inputs, outputs in calls_of(name):
        found = request.infer(inputs)
        for key, expected in outputs.items():
            assert found[key].shape == expected.shape
            assert LOOSE.allows(found[key], expected), f"{key}: {found[key]}, {expected}"


def test_signatures_are_chosen_by_name(tmp_path: Path) -> None:
    model = unpacked("signatures", tmp_path)
    x = np.array([1, 2], np.float32)
    assert aot.compile_model(model)(x)[0].tolist() == [2, 3]
    assert aot.compile_model(model, signature="triple")(x)[0].tolist() == [3, 6]
    with pytest.raises(UsageError, match=r"must be one of serving_default, triple, got 'other'"):
        aot.compile_model(model, signature="other")


def kinds(graph: Graph) -> set[str]:
    inside = [kinds(body) for node in graph.nodes.values() for body in node.regions.values()]
    return {node.type for node in graph.nodes.values()}.union(*inside)


@pytest.mark.parametrize(
    ("name", "kept"),
    [("loops", {"Loop", "If"}), ("frozen_conditions", {"If"}), ("text_nested", {"Loop", "If"}), ("cases", {"If"})],
)
def test_control_flow_becomes_that_of_the_opset(name: str, kept: set[str], tmp_path: Path) -> None:
    found = kinds(aot.stages(unpacked(name, tmp_path)).optimized)
    assert kept <= found
    assert not found & {"While", "Switch", "Merge", "Enter", "TensorListStack"}
