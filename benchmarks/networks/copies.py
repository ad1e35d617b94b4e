"""Folders of networks that are made of other folders' networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from benchmarks.networks.folder import Folder, placed

CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


def results(model: ov.Model, folder: Folder) -> list[NDArray[Any]]:
    """What OpenVINO makes of the folder's inputs."""
    compiled = ov.Core().compile_model(model, "CPU", CONFIG)
    names = [{*p.get_names(), p.get_node().get_friendly_name()} for p in compiled.inputs]
    return list(compiled(placed(names, folder.inputs())).values())


def save(model: ov.Model, folder: Folder, out: Path, source: str, **meta: object) -> None:
    """A folder with the same inputs, and with OpenVINO's results."""
    out.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, out / "model.xml", compress_to_fp16=False)
    for name, data in folder.inputs().items():
        np.save(out / f"in_{name}.npy", data)
    for i, array in enumerate(results(ov.Core().read_model(out / "model.xml"), folder)):
        np.save(out / f"out_{i}.npy", array)
    facts = {"source": source, "inputs": [{"name": name} for name in folder.files]} | meta
    (out / "meta.json").write_text(json.dumps(facts) + "\n")
    print(out)
