"""Pictures as inputs of a model: scaled to its size, RGB, 0 to 255, in the order of its axes."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aot.runtime.arrays.tensors import Array, numpy_dtype
from aot.runtime.errors import BudgetError, MissingError, UsageError
from aot.runtime.loading.manifest import TensorInfo
from aot.runtime.regular import read_file

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def is_picture(path: str) -> bool:
    """True if a path has the suffix of an image."""
    return path.lower().endswith(SUFFIXES)


def read_pictures(paths: Sequence[Path], info: TensorInfo, say: Callable[[str], object] = lambda text: None) -> Array:
    """Return pictures as rows of the input `info`: N,C,H,W or N,H,W,C with 1, 3 or 4 channels; sizes that vary are
    those of the first picture. `say` gets a sentence for each picture that is resized.

    Values are 0 to 255, which mean and scale of `aot compile` map to the numbers of the training. UsageError for
    an input of another form, and for a file that is no picture; MissingError without Pillow.
    """
    if find_spec("PIL") is None:
        raise MissingError("run: pictures need the package Pillow: pip install 'aot[pictures]'")
    image: Any = import_module("PIL.Image")
    first, channels, height, width = form_of(info)
    rows: list[Array] = []
    for path in paths:
        pixels, size = _read(image, path, channels, (width, height))
        if size != pixels.shape[1::-1]:
            order = f"{'N,C,H,W' if first else 'N,H,W,C'}, {_MODES[channels]}"
            sizes = f"from {size[0]} x {size[1]} to {pixels.shape[1]} x {pixels.shape[0]}"
            say(f"{path}: resized {sizes}, read as {order}")
        width, height = pixels.shape[1], pixels.shape[0]
        rows.append(pixels.transpose(2, 0, 1) if first else pixels)
    return np.ascontiguousarray(np.stack(rows), numpy_dtype(info))


class PictureForm(NamedTuple):
    """Order of the axes of an input for images, and its sizes; 0 for a size that varies."""

    channels_first: bool
    channels: int
    height: int
    width: int


def form_of(info: TensorInfo) -> PictureForm:
    """Return how an input takes images; UsageError for an input that takes none."""
    dims = [dim if isinstance(dim, int) else 0 for dim in info.shape]
    if len(dims) != 4 or not {dims[1], dims[3]} & _MODES.keys():
        raise UsageError(f"input '{info.name}': must be N,C,H,W or N,H,W,C for a picture, got {info}")
    if numpy_dtype(info).kind not in "uf" or info.dtype.value == "bf16":
        raise UsageError(f"input '{info.name}': must be u8 or a float type for a picture, got {info}")
    first = dims[1] in (1, 3) or dims[3] not in _MODES
    return PictureForm(True, *dims[1:]) if first else PictureForm(False, dims[3], *dims[1:3])


def _read(image: Any, path: Path, channels: int, size: tuple[int, int]) -> tuple[Array, tuple[int, int]]:
    """Return the pixels at `size` (width, height; 0: the image's own), and the image's own size."""
    data = io.BytesIO(read_file(path, "run"))
    try:
        opened = image.open(data).convert(_MODES[channels])
    except image.DecompressionBombError as error:
        raise BudgetError(f"run: {path}: {error}") from None
    except (OSError, ValueError, SyntaxError) as error:
        unknown = type(error).__name__ == "UnidentifiedImageError"  # whose text is the address of an object
        reason = "another file, or a damaged one" if unknown else error
        raise UsageError(f"run: {path}: must be a picture, got {reason}") from None
    target = (size[0] or opened.width, size[1] or opened.height)
    pixels = opened if opened.size == target else opened.resize(target, image.Resampling.BILINEAR)
    return np.asarray(pixels).reshape(target[1], target[0], channels), opened.size
