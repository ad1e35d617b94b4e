"""`aot.export` and the backend of torch.compile; those that run PyTorch need it installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from aot.pytorch import exporting
from aot.pytorch.backend import aot_backend
from aot.runtime.errors import MissingError, ModelError, UsageError


def network(torch: Any) -> Any:
    torch.manual_seed(1)
    layers = torch.nn
    return layers.Sequential(layers.Conv2d(3, 4, 3), layers.BatchNorm2d(4), layers.ReLU(), layers.Flatten(1)).eval()


def test_missing_pytorch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match=r"aot\[torch\]"):
        aot.export(object(), ())


def test_export_compiles_and_compares(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(2, 3, 8, 8)
    sizes = ({0: torch.export.Dim("batch", min=1, max=8)},)
    made = aot.export(network(torch), (x,), dynamic_shapes=sizes, output=tmp_path / "m.so")
    assert made.path == tmp_path / "m.so"
    assert made.difference is not None
    assert made.difference < 1e-5
    assert np.asarray(made.model(np.zeros((5, 3, 8, 8), np.float32))[made.model.outputs[0].name]).shape[0] == 5


def test_export_refuses_training_and_differences() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(2, 3, 8, 8)
    with pytest.raises(UsageError, match="eval"):
        aot.export(network(torch).train(), (x,))
    with pytest.raises(ModelError, match="difference"):
        aot.export(network(torch), (x,), tolerance=-1.0)


def test_backend_gives_what_eager_gives() -> None:
    torch = pytest.importorskip("torch")
    module = network(torch)
    compiled = torch.compile(module, backend=aot_backend)
    with torch.no_grad():
        for batch in (2, 3):
            x = torch.randn(batch, 3, 8, 8)
            assert torch.allclose(compiled(x), module(x), atol=1e-5)
    with pytest.raises(UsageError, match="no_grad"):
        compiled(torch.randn(2, 3, 8, 8))
