"""The packages that files of TensorFlow Lite need."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from aot.runtime.errors import MissingError


def check(path: Path) -> None:
    """Raise MissingError unless the packages that a file needs are installed."""
    if find_spec("tflite") is None or find_spec("flatbuffers") is None:
        needed = "TensorFlow Lite needs the packages tflite and flatbuffers"
        raise MissingError(f"{path.name}: {needed}: pip install 'aot[tflite]'")
