"""Store OpenCV's results of the cases: `python -m tests.frontends.caffe.make`, by a Python with OpenCV 4."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.frontends.caffe.cases import CASES, Case


def result(case: Case) -> list[Any]:
    """Return the tops of a case, as OpenCV computes them."""
    cv2: Any = importlib.import_module("cv2")
    with tempfile.TemporaryDirectory() as folder:
        path = case.write(Path(folder), *(case.asked or ()))
        net = cv2.dnn.readNetFromCaffe(str(path.with_suffix(".prototxt")), str(path))
    for i, x in enumerate(case.inputs):
        net.setInput(x, f"x{i}")
    found = net.forward()
    if case.kind == "DetectionOutput":
        found = found[:, :, found[0, 0, :, 2] > 0]  # behind the boxes it has rows of zeros
    return [found]


def main() -> None:
    kept: dict[str, Any] = {}
    for case in CASES:
        if case.wanted is None:
            kept |= {f"{case.name}.{i}": y for i, y in enumerate(result(case))}
    np.savez_compressed(Path(__file__).with_name("cases.npz"), **kept)


if __name__ == "__main__":
    main()
