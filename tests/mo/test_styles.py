"""Extensions in the styles that people wrote them for Model Optimizer in: results are those of its IR.

`expected.npz` holds what OpenVINO computes of the IR that Model Optimizer 2024.6 writes for the same files
(`python -m benchmarks.model_optimizer.styles`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.tools.convert import convert_model
from tests.archives import arrays_of
from tests.frontends.onnx.models import Array
from tests.inferred import results_of
from tests.mo import style_models, tf_style_models

MODELS = {**style_models.MODELS, **tf_style_models.MODELS}
STYLES = Path(__file__).parent / "styles"
EXPECTED = arrays_of(STYLES / "expected.npz")
LEFT: dict[str, tuple[str, ...]] = {  # types that the extension takes out of the network
    "fold_scale": ("Multiply",),
    "focus": ("StridedSlice",),
    "hswish": ("Divide",),
    "mean_to_pool": ("ReduceMean",),
    "scope_edges": ("Sigmoid",),
    "tf_fold_scale": ("Multiply",),
    "tf_general": ("Exp", "Tanh"),
    "tf_middle_mean": ("ReduceMean",),
    "tf_points": ("Subtract", "Abs"),
    "tf_scaled_rows": ("Multiply",),
    "tf_scope_norm": ("ReduceMean", "SquaredDifference"),
}


def saved(folder: Path, name: str) -> tuple[Path, Array]:
    """Write the model of a folder of extensions; return its file and its input."""
    made, x = MODELS[name]
    path = folder / ("model.pb" if name.startswith("tf_") else "model.onnx")
    path.write_bytes(made.SerializeToString())
    return path, x


@pytest.mark.parametrize("name", MODELS)
def test_read_and_converted_models_compute_what_model_optimizers_do(tmp_path: Path, name: str) -> None:
    """By the references of the opset; `test_examples.py` and `test_bodies.py` compile such networks."""
    (path, x), folder = saved(tmp_path, name), STYLES / name
    options = CompileOptions(level=None, extensions=folder, transformations_config=tuple(folder.glob("*.json")))
    convert_model(path, tmp_path / "ir.xml", options)
    wanted = [EXPECTED[key] for key in sorted(EXPECTED) if key.partition(":")[0] == name]
    for model, given in ((path, options), (tmp_path / "ir.xml", CompileOptions(level=None))):
        found = results_of(stages(model, given).optimized, [x])
        assert [(v.shape, v.dtype) for v in found] == [(v.shape, v.dtype) for v in wanted]
        for value, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-4, atol=1e-5)
    text = (tmp_path / "ir.xml").read_text()
    assert not [kind for kind in LEFT.get(name, ()) if f'type="{kind}"' in text]
