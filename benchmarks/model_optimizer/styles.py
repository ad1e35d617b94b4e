"""Extensions in Model Optimizer's style, run by Model Optimizer itself: what its IR computes, beside ours.

    python -m benchmarks.model_optimizer.styles MO [NAME ..] [--write]

MO is the program `mo` of `openvino-dev==2024.6.0`, in an environment of its own, which has the package tensorflow, too.
The extensions are those of `tests/mo/styles`; for it alone, names of releases before 2022 (`mo.ops`, `extensions.ops`)
become those of 2024. `--write` keeps what its IR computes as `expected.npz`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from openvino import Core

from aot.options import CompileOptions
from aot.runtime.errors import AotError
from aot.tools.convert import convert_model
from tests.mo.test_styles import EXPECTED, MODELS, STYLES, saved

OLD_NAMES = re.compile(r"^(\s*(?:from|import) )(mo|extensions)\.", re.MULTILINE)
SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}


def by_model_optimizer(mo: Path, model: Path, name: str, folder: Path) -> Path:
    """Return the IR that Model Optimizer writes. RuntimeError if it fails."""
    own = folder / "extensions" / name
    shutil.copytree(STYLES / name, own)
    for path in own.rglob("*.py"):
        path.write_text(OLD_NAMES.sub(r"\1openvino.tools.mo.", path.read_text()))
    config = ",".join(map(str, own.glob("*.json")))
    words = [mo, "--input_model", model, "--extensions", own, "-o", folder, "--model_name", "mo"]
    words += ["--use_legacy_frontend", "--compress_to_fp16=False"]
    words += ["--transformations_config", config] if config else []
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=clean, check=False)
    if not (folder / "mo.xml").is_file():
        raise RuntimeError(f"{name}: Model Optimizer: {(done.stdout + done.stderr)[-400:]}")
    return folder / "mo.xml"


def computed(path: Path, x: Any) -> list[Any]:
    """Return the outputs of an IR by OpenVINO."""
    request = Core().compile_model(path, "CPU", SETTINGS).create_infer_request()
    request.infer({0: x})
    return [np.array(tensor.data) for tensor in request.output_tensors]


def layers(path: Path) -> Counter[str]:
    """Count the types of an IR's layers, constants left out."""
    return Counter(e.get("type") for e in etree.parse(path).iter("layer") if e.get("type") != "Const")


def same(found: list[Any], wanted: list[Any]) -> bool:
    pairs = zip(found, wanted, strict=False)
    close = all(a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, 1e-4, 1e-5) for a, b in pairs)
    return close and len(found) == len(wanted)


def compare(mo: Path, name: str, folder: Path) -> list[Any]:
    """Print how our IR differs from Model Optimizer's; return what the latter computes."""
    model, x = saved(folder, name)
    theirs = by_model_optimizer(mo, model, name, folder)
    wanted = computed(theirs, x)
    config = tuple((STYLES / name).glob("*.json"))
    try:
        options = CompileOptions(extensions=STYLES / name, transformations_config=config)
        convert_model(model, folder / "ours.xml", options)
    except AotError as error:
        print(f"{name}: refused: {error}")
        return wanted
    ours = folder / "ours.xml"
    verdict = "equal" if same(computed(ours, x), wanted) else "differs"
    print(f"{name}: {verdict}; theirs alone: {dict(layers(theirs) - layers(ours))}, ours alone: ", end="")
    print(dict(layers(ours) - layers(theirs)), flush=True)
    return wanted


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare extensions in Model Optimizer with ours.")
    parser.add_argument("mo", type=Path)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found: dict[str, Any] = {}
    for name in args.names:
        with tempfile.TemporaryDirectory() as folder:
            found |= {f"{name}:{i}": value for i, value in enumerate(compare(args.mo, name, Path(folder)))}
    if args.write:
        others = {key: value for key, value in EXPECTED.items() if key.partition(":")[0] not in args.names}
        np.savez_compressed(STYLES / "expected.npz", **others, **found)


if __name__ == "__main__":
    main()
