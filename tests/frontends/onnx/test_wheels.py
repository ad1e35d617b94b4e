"""Trained models from public wheels, against ONNX Runtime; skipped where they cannot be downloaded."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

import aot
from tests.frontends.onnx.models import Array, Numbers
from tests.frontends.onnx.oracle import session

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
NUMBERS = Numbers(3)
RNG, image = NUMBERS.rng, NUMBERS.f32
OF_RANGE = 1e-4


def page() -> Array:
    """Lines of dark strokes on white, where a detector finds text: on noise its probabilities are next to nothing."""
    made = np.ones((1, 3, 320, 480), np.float32)
    for top in range(24, 300, 56):
        for left in range(24, 440, 12):
            made[:, :, top : top + int(RNG.integers(14, 26)), left : left + int(RNG.integers(3, 9))] = -1
    return made


def voice() -> dict[str, Array]:
    return {"input": image(1, 512) * 0.1, "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000)}


OCR, MAGIKA, SILERO = "rapidocr-onnxruntime==1.4.4", "magika==1.0.3", "silero-vad==6.2.3"
MODELS = [
    (OCR, "ch_PP-OCRv4_det_infer.onnx", [{"x": page()}]),
    (OCR, "ch_PP-OCRv4_rec_infer.onnx", [{"x": image(1, 3, 48, 320)}, {"x": image(2, 3, 48, 200)}]),
    (MAGIKA, "model.onnx", [{"bytes": RNG.integers(0, 257, (n, 2048)).astype(np.int32)} for n in (1, 3)]),
    (SILERO, "silero_vad.onnx", [voice(), voice() | {"input": image(1, 256) * 0.1, "sr": np.array(8000)}]),
]


@cache
def wheel(package: str) -> Path:
    """The folder of an unpacked wheel."""
    folder = Path(mkdtemp())
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
    if subprocess.run(command, check=False, capture_output=True, timeout=300).returncode:
        pytest.skip(f"{package} cannot be downloaded")
    for path in folder.glob("*.whl"):
        zipfile.ZipFile(path).extractall(folder)
    return folder


@pytest.mark.parametrize(("package", "name", "feeds"), MODELS, ids=[m[1] for m in MODELS])
def test_models_of_packages_agree_with_onnx_runtime(package: str, name: str, feeds: list[dict[str, Array]]) -> None:
    """A model that is run with one size is compiled for it."""
    path = next(wheel(package).rglob(name))
    shapes = {name: array.shape for name, array in feeds[0].items()} if len(feeds) == 1 else {}
    compiled = aot.compile_model(path, shapes=shapes)
    running = session(path)
    for feed in feeds:
        found = compiled(feed)
        for i, wanted in enumerate(running.run(None, feed)):
            assert np.abs(np.asarray(found[i]) - wanted).max() <= OF_RANGE * np.abs(wanted).max()
