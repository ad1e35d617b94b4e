"""The packages that files of each format need beside those of the compiler."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from aot.runtime.errors import MissingError

EXTRAS = {  # the extra of a format, and its packages
    "ONNX": ("onnx", ("onnx",)),
    "TensorFlow": ("tf", ("tensorboard", "protobuf")),
    "TensorFlow Lite": ("tflite", ("tflite", "flatbuffers")),
    "Caffe": ("caffe", ("protobuf",)),
}
MODULES = {"protobuf": "google.protobuf"}  # import names of packages, where they differ


def check(path: Path, format: str) -> None:
    """Raise MissingError unless the packages that a file of this format needs are installed."""
    extra, packages = EXTRAS[format]
    if not all(_is_installed(MODULES.get(package, package)) for package in packages):
        needed = f"the package{'s' * (len(packages) > 1)} {' and '.join(packages)}"
        raise MissingError(f"{path.name}: {format} needs {needed}: pip install 'aot[{extra}]'")


def _is_installed(module: str) -> bool:
    """True if a module can be found; `find_spec` alone raises where its package is missing, too."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
