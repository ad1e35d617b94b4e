"""Complex numbers reach the conversions that are registered for them, and no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from aot.runtime.errors import UnsupportedError
from tests.frontends.tf.graphs import graph, written

X = np.array([0.5, -2], np.float32)
OWN = """
from aot.frontends.tf.registry import tf
from aot.frontends.conversion.node_context import Value

@tf("Own"{mark})
def own(node, x{annotation}):
    return node.build.Add(*x.ports)
"""


def network(kind: str, place: Path) -> Path:
    """y = kind(x + 3 x i)"""
    steps = [("Add", "twice", "x", "x"), ("Add", "thrice", "twice", "x"), ("Complex", "c", "x", "thrice")]
    return written(place, graph(*steps, (kind, "y", "c")))


@pytest.mark.parametrize("annotation", ["", ": Value", ": 'Number'"])
@pytest.mark.parametrize("takes", [True, False])
def test_the_registration_says_what_a_conversion_takes(tmp_path: Path, annotation: str, takes: bool) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN.format(mark=", takes_complex=True" if takes else "", annotation=annotation))
    made = stages(network("Own", tmp_path), CompileOptions(level=None, extensions=file))
    if not takes:
        with pytest.raises(UnsupportedError, match="Own: complex numbers are not supported"):
            _ = made.optimized
        return
    np.testing.assert_allclose(interpret(made.optimized, [X])[0], 4 * X)


@pytest.mark.parametrize("kind", ["Relu", "Sqrt", "Softmax", "RFFT"])
def test_conversions_of_real_numbers_refuse_them(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{kind}: complex numbers are not supported"):
        _ = stages(network(kind, tmp_path), CompileOptions(level=None)).optimized
